"""Predicate pushdown below projections."""

from __future__ import annotations

from streamdsl.expr.nodes import Expr
from streamdsl.plan.node import Node, Select
from streamdsl.rewrite.filter_conditions import before, is_plain
from streamdsl.rewrite.pushing import Below, pushed
from streamdsl.rewrite.rule import RuleContext


def push_filter_below_select(node: Node, setting: RuleContext) -> Node | None:
    """Move a filter below a `select`, by replacing each field that it reads by its expression.

    Lifetimes, CTIs and ids stay. The condition is evaluated on the same rows as above; rows that it drops are not projected, so
    errors of the projection on them disappear.

    Law: `where(p)(select(f)(s)) == select(f)(where(p after f)(s))`.

    Before and after:

    >>> from typing import TypedDict
    >>> import streamdsl as sd
    >>> from streamdsl.plan.explain import explain
    >>> class Trip(TypedDict):
    ...     zone: str
    ...     cents: int
    >>> trips = sd.source("trips", Trip)
    >>> before = trips.select(zone=lambda e: e.zone, fare=lambda e: e.cents / 100).where(lambda e: e.fare > 7)
    >>> print(explain(before.plan(), "reference"))
    where_1 e.fare > 7  (zone, fare)  <denotation>
    └─ select_1 {zone: e.zone, fare: e.cents / 100}  (zone, fare)  <denotation>
       └─ source:trips  (zone, cents)  <denotation>
    >>> print(explain(push_filter_below_select(before.plan(), RuleContext()), "reference"))
    select_1 {zone: e.zone, fare: e.cents / 100}  (zone, fare)  <denotation>
    └─ where_1 (e.cents / 100) > 7  (zone, cents)  <denotation>
       └─ source:trips  (zone, cents)  <denotation>

    Must not fire: if the condition is opaque, or if a user function computes a field that it reads.

    >>> opaque = trips.select(zone=lambda e: e.zone).where(lambda e: e.zone in ("A", "B"))
    >>> called = trips.select(zone=lambda e: str(e.zone)).where(lambda e: e.zone == "A")
    >>> [push_filter_below_select(query.plan(), RuleContext()) for query in (opaque, called)]
    [None, None]
    """
    return pushed(node, setting, _below)


def _below(node: Node, condition: Expr, setting: RuleContext) -> Below | None:
    if not isinstance(node, Select) or not is_plain(condition):
        return None
    found = before(condition, node.projection)
    return None if found is None else Below({0: found}, "the same rows")
