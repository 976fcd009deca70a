"""A filter of joined rows becomes a filter of the side that it reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamdsl.expr.nodes import Attribute, Call, Expr, Field, Key, Life, Make, Opaque, Whole, rebuilt
from streamdsl.expr.schema import Schema, Shape
from streamdsl.plan.node import AntiJoin, ClipBy, Join, Node, SemiJoin
from streamdsl.rewrite.pushing import Below, pushed
from streamdsl.rewrite.rule import Setting
from streamdsl.temporal import Record


def push_filter_below_join(node: Node, setting: Setting) -> Node | None:
    """Move a condition that reads one side of a `join` to that side; of a semi-join, anti-join or `clip_by` to the left.

    Lifetimes, CTIs and ids stay. A condition that can fail stays above too, as rows without a match never meet it there; below
    goes one that keeps the rows on which it fails (not on Spark). Outer joins are unions of a join and an anti-join: it reaches
    both.

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
    >>> after = push_filter_below_join(push_filter_below_join(before.plan(), Setting()), Setting())
    >>> print(explain(after, "reference"))
    join_1 cross join, select {zone: l.zone, mm: r.mm}  (zone, mm)  <denotation>
    ├─ where_1 e.zone == 'A'  <denotation>
    │  └─ source:trips  <denotation>
    └─ where_2 e.mm != 0  <denotation>
       └─ source:rain  <denotation>

    Must not fire: on a condition that reads both sides.

    >>> both = pairs.where(lambda e: e.zone == e.mm)
    >>> push_filter_below_join(both.plan(), Setting())
    """
    return pushed(node, setting, _below)


def _below(node: Node, condition: Expr, setting: Setting) -> Below | None:
    if any(isinstance(part, (Call, Key, Life, Opaque)) for part in condition.walk()):
        return None
    if isinstance(node, (AntiJoin, ClipBy, SemiJoin)):
        found: Below | None = Below({0: condition}, "more rows", forgives=_is_of_fields(condition))
    else:
        found = _of_one_side(node, condition) if isinstance(node, Join) else None
    # A forgiving condition is a Python function, for which Spark would leave its own code.
    return found and found._replace(forgives=found.forgives and setting.engine != "spark")


def _of_one_side(node: Join, condition: Expr) -> Below | None:
    parts = _parts(node)
    if not all(part.name in parts for part in condition.walk() if isinstance(part, Field)) or any(
        isinstance(part, Whole) for part in condition.walk()
    ):
        return None
    found = rebuilt(condition, lambda part: _put(part, parts, node))
    sides = {part.side for part in found.walk() if isinstance(part, (Field, Whole))}
    if len(sides) != 1:
        return None
    (side,) = sides
    alone = rebuilt(found, lambda part: replace(part, side=0) if isinstance(part, (Field, Whole)) else None)
    return Below({side: alone}, "more rows", forgives=_is_of_fields(alone))


def _parts(node: Join) -> dict[str, Expr]:
    """Return what the fields of the join's payloads are made of, as far as that can be told."""
    if node.projection is None:
        return {"_0": Whole(0), "_1": Whole(1)}
    if not isinstance(node.projection, Make) or node.projection.schema.shape is Shape.OBJECT:
        return {}
    made = zip(node.projection.schema.names, node.projection.values, strict=True)
    return {name: part for name, part in made if not any(isinstance(below, (Call, Life, Opaque)) for below in part.walk())}


def _put(part: Expr, parts: dict[str, Expr], node: Join) -> Expr | None:
    if isinstance(part, Attribute) and isinstance(part.operand, Field):
        row: Any = parts[part.operand.name]
        if isinstance(row, Whole) and _is_field(part.name, node.inputs[row.side].schema):
            return Field(part.name, row.side)
    return parts[part.name] if isinstance(part, Field) else None


def _is_field(name: str, schema: Schema | None) -> bool:
    """Say whether an attribute of a payload is its field: a record's methods come before its fields."""
    if schema is None or name not in schema.names:
        return False
    return schema.shape is Shape.CLASS or (schema.shape is Shape.RECORD and not hasattr(Record, name))


def _is_of_fields(condition: Expr) -> bool:
    return not any(isinstance(part, Whole) for part in condition.walk())
