"""A filter of rows with other lifetimes becomes a filter of the rows as they were."""

from __future__ import annotations

from streamdsl.expr.nodes import Expr, reads_lifetime
from streamdsl.plan.node import Node
from streamdsl.rewrite.pushing import Below, pushed
from streamdsl.rewrite.rule import Setting
from streamdsl.rewrite.sessions import shows_the_same


def push_filter_below_lifetimes(node: Node, setting: Setting) -> Node | None:
    """Move a filter on the payload below an operator that changes lifetimes and keeps payloads.

    Where the operator may drop rows (`clip_interval`, a shift beyond the end of time), or decides by whole payloads (`distinct`,
    `stitch`), conditions move that cannot fail. A condition as `e.v == 1` is the same for equal payloads, such as 1 and 1.0.
    CTIs and ids stay; `stitch` numbers its rows, which are then fewer. Sessions: `chop` shows pieces as the high water reaches
    their cells, so a filter moves below it only where no push shows it (see `shows_the_same`).

    Law: `where(p)(alter(s)) == alter(where(p)(s))`, as `alter` treats each row, or all rows with a payload, by themselves.

    Before and after:

    >>> import streamdsl as sd
    >>> from streamdsl.plan.explain import explain
    >>> trips = sd.source("trips")
    >>> before = trips.alter_duration(60).where(lambda e: e.fare > 7)
    >>> print(explain(before.plan(), "reference"))
    where_1 e.fare > 7 [duration 60]  <denotation>
    └─ alter_lifetime_1 [LE, LE + 60) [duration 60]  <denotation>
       └─ source:trips  <denotation>
    >>> print(explain(push_filter_below_lifetimes(before.plan(), Setting()), "reference"))
    alter_lifetime_1 [LE, LE + 60) [duration 60]  <denotation>
    └─ where_1 e.fare > 7  <denotation>
       └─ source:trips  <denotation>

    Must not fire: on conditions that read the lifetime, on those that can fail where rows are dropped, and below `to_edges`,
    where a row ends as the next starts.

    >>> lasting = trips.alter_duration(60).where(lambda e, life: life.le > 7)
    >>> clipped = trips.clip_interval(0, 60).where(lambda e: e.fare > 7)
    >>> edges = trips.to_edges().where(lambda e: e.fare == 7)
    >>> [push_filter_below_lifetimes(query.plan(), Setting()) for query in (lasting, clipped, edges)]
    [None, None, None]
    """
    return pushed(node, setting, _below)


def _below(node: Node, condition: Expr, setting: Setting) -> Below | None:
    if node.filter_below is None or reads_lifetime(condition) or (node.opens_cells and not shows_the_same(node, setting.mode)):
        return None
    return Below({0: condition}, node.filter_below)
