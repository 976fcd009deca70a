"""Projection fusion: two adjacent projections become one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from streamdsl.expr.nodes import Call, Constant, Expr, Field, Key, Life, reads_lifetime
from streamdsl.plan.node import Node, Select
from streamdsl.rewrite.filter_conditions import before, made_of
from streamdsl.rewrite.rule import RuleContext


def fuse_selects(node: Node, setting: RuleContext) -> Node | None:
    """Fuse two adjacent `select` into one, by replacing each field that the second reads by its expression in the first.

    Lifetimes, CTIs and ids stay. No expression is computed twice: a field that is more than a field or a constant must be read at
    most once. A field that is not read is no longer computed, so its errors disappear.

    Law: `select(g)(select(f)(s)) == select(g after f)(s)`.

    Before and after:

    >>> from typing import TypedDict
    >>> import streamdsl as sd
    >>> from streamdsl.plan.explain import explain
    >>> class Trip(TypedDict):
    ...     zone: str
    ...     cents: int
    >>> trips = sd.source("trips", Trip)
    >>> before = trips.select(zone=lambda e: e.zone, fare=lambda e: e.cents / 100).select(tip=lambda e: e.fare * 0.1)
    >>> print(explain(before.plan(), "reference"))
    select_2 {tip: e.fare * 0.1}  (tip)  <denotation>
    └─ select_1 {zone: e.zone, fare: e.cents / 100}  (zone, fare)  <denotation>
       └─ source:trips  (zone, cents)  <denotation>
    >>> print(explain(fuse_selects(before.plan(), RuleContext()), "reference"))
    select_1 {tip: (e.cents / 100) * 0.1}  (tip)  <denotation>
    └─ source:trips  (zone, cents)  <denotation>

    Must not fire: if a computed field is read twice, or if an expression is opaque or reads the lifetime.

    >>> twice = trips.select(fare=lambda e: e.cents / 100).select(square=lambda e: e.fare * e.fare)
    >>> opaque = trips.select(fare=lambda e: e.cents / 100).select(fare=lambda e: str(e.fare))
    >>> [fuse_selects(query.plan(), RuleContext()) for query in (twice, opaque)]
    [None, None]
    """
    if not isinstance(node, Select) or not isinstance(node.input, Select) or setting.is_shared(node.input):
        return None
    first, parts = node.input, made_of(node.input.projection)
    is_told = not any(isinstance(part, (Call, Key, Life)) for part in node.projection.walk())
    if not is_told or reads_lifetime(first.projection) or not _reads_once(node.projection, parts):
        return None
    fused = before(node.projection, first.projection)
    return None if fused is None else replace(node, input=first.input, projection=fused)


def _reads_once(projection: Expr, parts: dict[str, Expr]) -> bool:
    """Say whether each field read is a plain expression, and computed ones are read at most once."""
    often = Counter(_fields(projection))
    return all(name in parts and (times == 1 or isinstance(parts[name], (Constant, Field))) for name, times in often.items())


def _fields(expr: Expr) -> list[str]:
    """Return the names of the fields that an expression reads, once per read."""
    if isinstance(expr, Field):
        return [expr.name]
    return [name for child in expr.children() for name in _fields(child)]
