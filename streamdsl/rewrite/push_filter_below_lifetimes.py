"""Predicate pushdown below operators that change lifetimes and keep payloads."""

from __future__ import annotations

from streamdsl.expr.nodes import Expr, reads_lifetime
from streamdsl.plan.node import Node
from streamdsl.rewrite.pushing import Below, pushed
from streamdsl.rewrite.rule import RuleContext
from streamdsl.rewrite.session_visibility import shows_the_same


def push_filter_below_lifetimes(node: Node, setting: RuleContext) -> Node | None:
    """Move a filter on the payload below an operator that changes lifetimes and keeps payloads.

    If the operator may drop rows (`clip_interval`, a shift beyond the end of time), or combines rows with equal payloads
    (`distinct`, `stitch`), only conditions that cannot fail move. Such conditions, as `e.v == 1`, have the same value for all
    equal payloads, such as 1 and 1.0.
    CTIs and ids stay, except the ids of `stitch`, which numbers its rows. `chop` emits pieces as the high water reaches their
    cells, so in sessions a filter moves below it only if no push can reveal it (see `shows_the_same`).

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
    >>> print(explain(push_filter_below_lifetimes(before.plan(), RuleContext()), "reference"))
    alter_lifetime_1 [LE, LE + 60) [duration 60]  <denotation>
    └─ where_1 e.fare > 7  <denotation>
       └─ source:trips  <denotation>

    Must not fire: on conditions that read the lifetime, on those that can fail if rows are dropped, and below `to_edges`,
    where the next row ends a row.

    >>> lasting = trips.alter_duration(60).where(lambda e, life: life.le > 7)
    >>> clipped = trips.clip_interval(0, 60).where(lambda e: e.fare > 7)
    >>> edges = trips.to_edges().where(lambda e: e.fare == 7)
    >>> [push_filter_below_lifetimes(query.plan(), RuleContext()) for query in (lasting, clipped, edges)]
    [None, None, None]
    """
    return pushed(node, setting, _below)


def _below(node: Node, condition: Expr, setting: RuleContext) -> Below | None:
    if node.filter_below is None or reads_lifetime(condition) or (node.opens_cells and not shows_the_same(node, setting.mode)):
        return None
    return Below({0: condition}, node.filter_below)
