"""Predicate pushdown below modules: a filter of a module's results becomes a filter of its members."""

from __future__ import annotations

from streamdsl.expr.nodes import Expr, reads
from streamdsl.plan.node import Node, WindowApply
from streamdsl.rewrite.filter_conditions import is_plain, of_members
from streamdsl.rewrite.pushing import Below, pushed
from streamdsl.rewrite.rule import RuleContext
from streamdsl.rewrite.session_visibility import shows_the_same


def push_filter_below_module(node: Node, setting: RuleContext) -> Node | None:
    """Move a filter on fields in a module's `commutes_with_filter_on` below its windows, if windows do not depend on rows.

    Windows of a grid do not, nor do sequences by time with a start (paper 003, property 2).

    Lifetimes and ids stay. A condition that can fail also stays above, and below it keeps the rows on which it fails. In sessions
    the filter moves only if each push returns the same as without the rule (see `shows_the_same`). Paper 001, I.A.5.

    Law: `where(p)(apply(M)(w(s))) == apply(M)(w(where(p)(s)))` for windows `w` by the clock, and `p` that `M` commutes with.

    Before and after:

    >>> from typing import TypedDict
    >>> import streamdsl as sd
    >>> from streamdsl.plan.explain import explain
    >>> class Best(sd.UDO[sd.Record, sd.Record]):
    ...     commutes_with_filter_on = ("zone",)
    ...     def compute_result(self, trips):
    ...         return [max((t for t in trips if t.zone == zone), key=lambda t: t.fare) for zone in {t.zone for t in trips}]
    >>> class Trip(TypedDict):
    ...     zone: str
    ...     fare: int
    >>> trips = sd.source("trips", Trip)
    >>> before = trips.tumbling_window(10).apply(Best).where(lambda e: e.zone == "A")
    >>> print(explain(before.plan(), "reference"))
    where_1 e.zone == 'A' [duration 10]  <denotation>
    └─ window_apply_1 tumbling(10), Best() [duration 10]  <denotation>
       └─ source:trips  (zone, fare)  <denotation>
    >>> after = push_filter_below_module(before.plan(), RuleContext())
    >>> print(explain(after, "reference"))
    window_apply_1 tumbling(10), Best() [duration 10]  <denotation>
    └─ where_1 e.zone == 'A'  (zone, fare)  <denotation>
       └─ source:trips  (zone, fare)  <denotation>

    Must not fire: over windows that depend on rows, including those by position, and on a field that the module does not name.
    (Over a landmark by position both plans agree at every instant, but cut results at each trip, or at each trip that is kept.)

    >>> snapshots = trips.snapshot_window().apply(Best).where(lambda e: e.zone == "A")
    >>> landmark = trips.windows(sd.astral.landmark(), start=0).apply(Best).where(lambda e: e.zone == "A")
    >>> by_fare = trips.tumbling_window(10).apply(Best).where(lambda e: e.fare == 7)
    >>> [push_filter_below_module(query.plan(), RuleContext()) for query in (snapshots, landmark, by_fare)]
    [None, None, None]
    """
    return pushed(node, setting, _below)


def _below(node: Node, condition: Expr, setting: RuleContext) -> Below | None:
    if not isinstance(node, WindowApply) or not commutes(node, condition) or not shows_the_same(node, setting.mode):
        return None
    below = of_members(condition, node.argument)
    return None if below is None else Below({0: below}, "more rows", forgives=True)


def commutes(node: WindowApply, condition: Expr) -> bool:
    """Say whether filtering a module's members equals filtering its results, without changing the windows."""
    names = reads(condition)
    return (
        node.windows.by_clock
        and node.module.deterministic
        and is_plain(condition)
        and bool(names)
        and set(names or ()) <= set(node.module.commutes_with_filter_on)
    )
