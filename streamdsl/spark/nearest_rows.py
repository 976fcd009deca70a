"""The lowering of as-of joins: the rows of both sides in order of LE, each left row with the last right ones before it.

Right rows that start together are listed, as all of them are nearest; the lists are carried along to later left rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

from streamdsl.expr.sides import PAIR, without_row
from streamdsl.plan.asof import Nearness
from streamdsl.plan.node import AsofJoin, Source
from streamdsl.spark import stages
from streamdsl.spark.column_types import as_nullable, unify
from streamdsl.spark.expressions import Env, convert_sql, infer, to_sql
from streamdsl.spark.flow import Flow, GroupScope, JoinPairs, window_clause
from streamdsl.spark.lowering_context import LoweringContext
from streamdsl.spark.sql_text import NotNative, Sql, integer
from streamdsl.temporal import common_unit

_ORDERS: Final = {"back": "t", "forward": "t DESC"}


def asof_join(low: LoweringContext, node: AsofJoin, scope: GroupScope) -> Flow:
    """Each left row with the matching right rows of the nearest LE."""
    flows = low.align([low.lower(node.left, scope), low.lower(node.right, scope)], scope)
    try:
        return _in_order(low, node, flows, scope)
    except NotNative as why:
        return _in_python(low, node, flows, scope, why)


def _in_python(low: LoweringContext, node: AsofJoin, flows: Sequence[Flow], scope: GroupScope, why: object) -> Flow:
    """Return the result of one call per key, or of one for all rows."""
    unit = common_unit(*(flow.unit for flow in flows))
    right = dataclasses.replace(flows[1], type=as_nullable(flows[1].type)) if node.outer else flows[1]
    pairs = JoinPairs(flows[0], right, flows[0].make, flows[0].keys)
    out = pairs.type if node.projection is None else infer(node.projection, pairs.env(scope, low.label(node)))
    keys = (node.matching.left_key, node.matching.right_key)
    by = stages.with_join_keys(low, node, flows, keys, scope) if keys[0] is not None else None
    fragment = dataclasses.replace(node, left=Source("left", None, unit), right=Source("right", None, unit))
    inputs = dict(zip(("left", "right"), flows, strict=True))
    return stages.apply_groups(low, node, fragment, inputs, scope, why, out, by)


def _in_order(low: LoweringContext, node: AsofJoin, flows: Sequence[Flow], scope: GroupScope) -> Flow:
    """Return the result as SQL, but for a projection that only Python can compute."""
    if node.matching.where is not None:
        raise NotNative("its condition reads both rows")
    if node.ties != "all":
        raise NotNative("of right rows that start together it takes the last by payload")
    left, right = flows
    pairs = JoinPairs(left, right, left.make, left.keys)
    env = pairs.env(scope, low.label(node))
    payload = _payload(node, pairs, env) if node.outer else None
    keys = (node.matching.left_key, node.matching.right_key)
    low.note(node, "native")
    frames = stages.with_join_keys(low, node, flows, keys, scope)
    by = [*left.key_columns, *(["j"] if keys[0] is not None else [])]

    def pair_frame() -> Any:
        return _pairs(node, flows, [frame() for frame in frames], by)

    if payload is None:
        try:
            payload = _payload(node, pairs, env)
        except NotNative as why:
            low.note(node, "rows", f"its projection: {why}")
            out = infer(node.projection or PAIR, env)
            made = stages.project_pairs(low, node, pairs, pair_frame, scope.level, out)
            return Flow.of(out, pairs.unit, made, pairs.keys)
    columns = ["le", "re", f"{payload.text} as p", *left.key_columns]
    return Flow.of(payload.type, pairs.unit, lambda: pair_frame().selectExpr(*columns), pairs.keys)


def _payload(node: AsofJoin, pairs: JoinPairs, env: Env) -> Sql:
    """Return the payload of a pair; where no right row is near and `outer`, that of the left row alone."""
    projection = node.projection or PAIR
    met = to_sql(projection, env)
    if not node.outer:
        return met
    alone = to_sql(without_row(projection, 1), dataclasses.replace(env, rows=env.rows[:1], starts=()))
    kind = unify([met.type, alone.type])
    texts = [convert_sql(each.text, each.type, kind) for each in (alone, met)]
    return Sql(f"if(rle IS NULL, {texts[0]}, {texts[1]})", kind, met.raises or alone.raises)


def _pairs(node: AsofJoin, flows: Sequence[Flow], frames: Sequence[Any], by: Sequence[str]) -> Any:
    """Return the pairs as `le`, `re`, `lle`, `rle`, `lp`, `rp` and the keys; if `outer`, a left row alone has no `rle`."""
    left, right = flows
    row = f"struct<rle:bigint,rp:{right.type.ddl}>"
    lefts = frames[0].selectExpr(*by, "le as t", "re", "p as lp", f"cast(null as {row}) as r")
    empty = ["cast(null as bigint) as re", f"cast(null as {left.type.ddl}) as lp"]
    rights = frames[1].selectExpr(*by, "le as t", *empty, "named_struct('rle', le, 'rp', p) as r")
    together = window_clause(by, "t", " RANGE BETWEEN CURRENT ROW AND CURRENT ROW")
    listed = lefts.unionByName(rights).selectExpr(*by, "t", "re", "lp", f"collect_list(r) {together} as starting")
    rows = listed.selectExpr(*by, "t", "re", "lp", "if(size(starting) > 0, starting, NULL) as starting")
    met = "inline_outer(nearest)" if node.outer else "inline(nearest)"
    keys = left.key_columns
    chosen = _nearest(node, rows, by).where("re IS NOT NULL").selectExpr(*keys, "t", "re", "lp", met)
    return chosen.selectExpr("t as le", "re", "t as lle", "rle", "lp", "rp", *keys)


def _nearest(node: AsofJoin, rows: Any, by: Sequence[str]) -> Any:
    """Return rows with `nearest`, the right rows of the nearest LE within the tolerance, null if there is none."""
    if node.near.direction == "nearest":
        both = rows.selectExpr("*", *(f"{_carried(by, way)} as {way}" for way in _ORDERS))
        within = both.selectExpr("*", *(f"{_within(node.near, way, way)} as near_{way}" for way in _ORDERS))
        back, forward = (_distance(way, f"near_{way}") for way in _ORDERS)
        is_back = f"near_forward IS NULL OR {back} <= {forward}"
        return within.selectExpr("*", f"if({is_back}, near_back, near_forward) as nearest")
    way = node.near.direction
    return rows.selectExpr("*", f"{_carried(by, way)} as found").selectExpr("*", f"{_within(node.near, way, 'found')} as nearest")


def _carried(by: Sequence[str], way: str) -> str:
    """Return the SQL of the last list in one order. A row's own list has all that start with it, in whatever order they come."""
    return f"last(starting) IGNORE NULLS {window_clause(by, _ORDERS[way], ' ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW')}"


def _within(near: Nearness, way: str, rows: str) -> str:
    """Return the SQL of a list of right rows, null beyond the tolerance; a distance that leaves int64 is null, and beyond any."""
    return f"if({_distance(way, rows)} <= {integer(near.tolerance)}, {rows}, NULL)"


def _distance(way: str, rows: str) -> str:
    start = f"element_at({rows}, 1).rle"
    return f"try_subtract(t, {start})" if way == "back" else f"try_subtract({start}, t)"


__all__ = ["asof_join"]
