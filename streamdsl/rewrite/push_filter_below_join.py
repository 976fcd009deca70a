"""Predicate pushdown below joins: a filter that reads one side becomes a filter of that side."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Final

from streamdsl.expr.nested import attribute_name
from streamdsl.expr.nodes import Attribute, Call, Expr, Field, Key, Life, Opaque, Whole, rebuilt
from streamdsl.plan.node import AntiJoin, AsofJoin, ClipBy, Join, Node, SemiJoin
from streamdsl.rewrite.filter_conditions import fields_of
from streamdsl.rewrite.pushing import Below, pushed
from streamdsl.rewrite.rule import RuleContext

LEFT: Final = (0,)
"""The side of an as-of join whose rows may be filtered: dropping right rows would make other right rows the nearest."""


def push_filter_below_join(node: Node, setting: RuleContext) -> Node | None:
    """Move a condition that reads one side of a `join` to that side; in the other joins and `clip_by` only to the left side.

    Lifetimes, CTIs and ids stay. In an as-of join that looks forward, left rows hold back the CTI, so the filter moves in runs
    only. A condition that can fail also stays above, and below it keeps the rows on which it fails: above, it is never evaluated
    on rows without a match (not on Spark). Outer joins are unions of a join and an anti-join, and the filter reaches both.

    Law: `where(p on l)(join(l, r)) == join(where(p)(l), r)`, and `where(p)(anti_join(l, r)) == anti_join(where(p)(l), r)`.

    Before and after:

    >>> import streamdsl as sd
    >>> from streamdsl.plan.explain import explain
    >>> pairs = sd.source("trips").join(sd.source("rain"), select=lambda t, r: {"zone": t.zone, "mm": r.mm})
    >>> before = pairs.where(lambda e: (e.zone == "A") & (e.mm != 0))
    >>> print(explain(before.plan(), "reference"))
    where_1 (e.zone == 'A') & (e.mm != 0)  (zone, mm)  <denotation>
    └─ join_1 cross join, select {zone: l.zone, mm: r.mm}  (zone, mm)  <denotation>
       ├─ source:trips  <denotation>
       └─ source:rain  <denotation>
    >>> after = push_filter_below_join(push_filter_below_join(before.plan(), RuleContext()), RuleContext())
    >>> print(explain(after, "reference"))
    join_1 cross join, select {zone: l.zone, mm: r.mm}  (zone, mm)  <denotation>
    ├─ where_1 e.zone == 'A'  <denotation>
    │  └─ source:trips  <denotation>
    └─ where_2 e.mm != 0  <denotation>
       └─ source:rain  <denotation>

    Must not fire: on a condition that reads both sides, or the right rows of an as-of join, as others would become the nearest.

    >>> both = pairs.where(lambda e: e.zone == e.mm)
    >>> last = sd.source("trips").asof_join(sd.source("rain"), select=lambda t, r: {"mm": r.mm}).where(lambda e: e.mm != 0)
    >>> [push_filter_below_join(query.plan(), RuleContext()) for query in (both, last)]
    [None, None]
    """
    return pushed(node, setting, _below)


def _below(node: Node, condition: Expr, setting: RuleContext) -> Below | None:
    if any(isinstance(part, (Call, Key, Life, Opaque)) for part in condition.walk()):
        return None
    if isinstance(node, (AntiJoin, ClipBy, SemiJoin)):
        found: Below | None = Below({0: condition}, "more rows", forgives=_is_of_fields(condition))
    elif isinstance(node, Join):
        found = _of_one_side(node, condition)
    elif isinstance(node, AsofJoin) and (node.near.direction == "back" or setting.mode == "run"):
        found = _of_one_side(node, condition, sides=LEFT)
    else:
        return None
    # `true_on_error` makes a Python function of the condition, which Spark could not run as SQL.
    return found and found._replace(forgives=found.forgives and setting.engine != "spark")


def _of_one_side(node: Join | AsofJoin, condition: Expr, sides: Collection[int] = (0, 1)) -> Below | None:
    parts = _parts(node)
    if not all(part.name in parts for part in condition.walk() if isinstance(part, Field)) or any(
        isinstance(part, Whole) for part in condition.walk()
    ):
        return None
    found = rebuilt(condition, lambda part: _put(part, parts, node))
    read = {part.side for part in found.walk() if isinstance(part, (Field, Whole))}
    if len(read) != 1 or not read <= set(sides):
        return None
    (side,) = read
    alone = rebuilt(found, lambda part: replace(part, side=0) if isinstance(part, (Field, Whole)) else None)
    return Below({side: alone}, "more rows", forgives=_is_of_fields(alone))


def _parts(node: Join | AsofJoin) -> dict[str, Expr]:
    """Return the fields of the join's payloads as expressions over its inputs; opaque ones and lifetimes are left out."""
    if node.projection is None:
        return {"_0": Whole(0), "_1": Whole(1)}
    made = fields_of(node.projection).items()
    return {name: part for name, part in made if not any(isinstance(below, (Call, Life, Opaque)) for below in part.walk())}


def _put(part: Expr, parts: dict[str, Expr], node: Join | AsofJoin) -> Expr | None:
    if isinstance(part, Attribute) and isinstance(part.operand, Field):
        row: Any = parts[part.operand.name]
        schema = node.inputs[row.side].schema if isinstance(row, Whole) else None
        if schema is not None and attribute_name(schema, part.name) is not None:
            return Field(part.name, row.side)
    return parts[part.name] if isinstance(part, Field) else None


def _is_of_fields(condition: Expr) -> bool:
    return not any(isinstance(part, Whole) for part in condition.walk())
