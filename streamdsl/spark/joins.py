"""Lowerings of joins: pairs of rows whose lifetimes overlap, found by equal keys, or by time buckets without a key."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from pyspark.sql.functions import expr

from streamdsl.plan.node import AntiJoin, ClipBy, Join, SemiJoin, TwoInputs
from streamdsl.spark import stages
from streamdsl.spark.column_types import is_groupable
from streamdsl.spark.expressions import Env, infer, to_sql, to_test
from streamdsl.spark.flow import Flow, FrameFactory, GroupKey, GroupScope, JoinPairs, window_clause
from streamdsl.spark.lowering_context import LoweringContext
from streamdsl.spark.sql_text import NotNative, Sql, aliased, raise_error, struct
from streamdsl.spark.time_buckets import JoinSide, bucketed_join, join_where
from streamdsl.temporal import common_unit

_NO_KEY = "-4611686018427387905L"
_LENGTHS = 4
"""The bucket length in mean lifetimes for rows with a key: rows of a key are few, so copies cost more than comparisons."""
_PIECES = "cast(array() as array<struct<le:bigint,re:bigint>>)"


def join(low: LoweringContext, node: Join, scope: GroupScope) -> Flow:
    """Every matching pair, for the overlap of the two lifetimes."""
    low.note(node, "native")
    pairs = _pairs(low, node, scope)
    le, re = "greatest(lle, rle) as le", "least(lre, rre) as re"
    try:
        payload = _pair_payload(node, pairs, pairs.env(scope, low.label(node)))
    except NotNative as why:
        return _projected_in_python(low, node, pairs, scope, why, [le, re])
    make = lambda: pairs.make().selectExpr(le, re, f"{payload.text} as p", *pairs.key_columns)  # noqa: E731
    return Flow.of(payload.type, pairs.unit, make, pairs.keys)


def _pair_payload(node: Join, pairs: JoinPairs, env: Env) -> Sql:
    if node.projection is None:
        return Sql(struct(("lp", "rp")), pairs.type)
    return to_sql(node.projection, env)


def _projected_in_python(
    low: LoweringContext, node: Join, pairs: JoinPairs, scope: GroupScope, why: object, times: list[str]
) -> Flow:
    assert node.projection is not None
    columns = [*times, "lle", "rle", "lp", "rp", *pairs.key_columns]
    out = infer(node.projection, pairs.env(scope, low.label(node)))
    low.note(node, "rows", f"its projection: {why}")
    living = lambda: pairs.make().selectExpr(*columns)  # noqa: E731
    made = stages.project_pairs(low, node, pairs, living, scope.level, out)
    return Flow.of(out, pairs.unit, made, pairs.keys)


def _pairs(low: LoweringContext, node: TwoInputs, scope: GroupScope) -> JoinPairs:
    """Return the matching pairs; for `clip_by` right rows are points, strictly after the left LE."""
    left, right = _inputs(low, node, scope)
    if not isinstance(node, Join) and not is_groupable(left.type):
        raise low.unsupported(
            node, f"left rows of Spark's type {left.type.ddl} cannot be told apart", "drop columns of maps and variants"
        )
    matching = node.matching
    frames = stages.with_join_keys(low, node, [left, right], [matching.left_key, matching.right_key], scope)
    j = ["j"] if matching.left_key is not None else []
    ends = "le + 1L" if isinstance(node, ClipBy) else "re"
    meet = "lle < rle AND rle < lre" if isinstance(node, ClipBy) else "lle < rre AND rle < lre"
    keys = _all_keys(left, right)
    measured = all(below.row_wise for side in (node.left, node.right) for below in side.walk())
    make = lambda: _matched(frames, left, right, keys, j, ends, meet, measured)  # noqa: E731
    return _residual(low, node, JoinPairs(left, right, make, keys), scope)


def _inputs(low: LoweringContext, node: TwoInputs, scope: GroupScope) -> tuple[Flow, Flow]:
    """Return both inputs; a left row that the operator cuts is copied into each group that right rows are in."""
    left, right = low.lower(node.left, scope), low.lower(node.right, scope)
    common_unit(left.unit, right.unit)
    return (left, right) if isinstance(node, Join) else (low.align([left, right], scope)[0], right)


def _all_keys(left: Flow, right: Flow) -> tuple[GroupKey, ...]:
    keys = {key.level: key for flow in (left, right) for key in flow.keys}
    return tuple(keys[level] for level in sorted(keys))


def _residual(low: LoweringContext, node: TwoInputs, pairs: JoinPairs, scope: GroupScope) -> JoinPairs:
    where = node.matching.where
    if where is None:
        return pairs
    try:
        test = to_test(where, pairs.env(scope, low.label(node)))
    except NotNative as why:
        low.note(node, "rows", f"its condition: {why}")
        return dataclasses.replace(pairs, make=stages.filter_pairs(low, node, pairs, scope.level))
    return dataclasses.replace(pairs, make=lambda: pairs.make().where(test.text))


def _matched(
    frames: Sequence[FrameFactory],
    left: Flow,
    right: Flow,
    keys: Sequence[GroupKey],
    j: list[str],
    ends: str,
    meet: str,
    measured: bool,
) -> Any:
    """Return the pairs; with a key, buckets are used too if the inputs are cheap to measure, which computes them twice."""
    common = [key for key in left.key_columns if key in right.key_columns]
    sides = frames[0](), frames[1]()
    kinds = dict(sides[0].dtypes) if common or j else {}
    met = [*common, *j]
    conditions = [*(_equal(key, kinds[key]) for key in met), meet]
    columns = _renamed("l", [*left.key_columns, *j]), _renamed("r", [*right.key_columns, *j]) | {"rend": ends}
    shown = {name: name for name in ("lle", "lre", "lp", "rle", "rre", "rp")}
    shown |= {key.column: f"{'l' if key.column in left.key_columns else 'r'}{key.column}" for key in keys}
    if met and not measured:
        lefts, rights = (df.selectExpr(*aliased(texts)) for df, texts in zip(sides, columns, strict=True))
        return join_where(lefts, rights, conditions, aliased(shown))
    left_side, right_side = (JoinSide(*side) for side in zip(sides, columns, strict=True))
    return bucketed_join(
        left_side, right_side, [f"{side}{key}" for side in "lr" for key in met], conditions, shown, _LENGTHS if met else 1
    )


def _equal(key: str, kind: str) -> str:
    """Return the condition that keys are equal, where None equals None.

    Spark splits `<=>` into two hash keys, and a single integer key is far faster. So None is coalesced to some integer, and a
    condition that Spark does not recognise as an equality tells the two apart afterwards.
    """
    left, right = f"l{key}", f"r{key}"
    if kind != "bigint":
        return f"{left} <=> {right}"
    alike = f"({left} IS NULL OR {right} IS NOT NULL) AND ({left} IS NOT NULL OR {right} IS NULL)"
    return f"coalesce({left}, {_NO_KEY}) = coalesce({right}, {_NO_KEY}) AND {alike}"


def _renamed(side: str, others: Sequence[str]) -> dict[str, str]:
    return {f"{side}{name}": name for name in ("le", "re", "p", *others)}


def anti_join(low: LoweringContext, node: AntiJoin, scope: GroupScope) -> Flow:
    """Each left row for the time without a matching right row, as maximal pieces."""
    return _in_pieces(low, node, scope, _without("matches"))


def semi_join(low: LoweringContext, node: SemiJoin, scope: GroupScope) -> Flow:
    """Each left row for the time with a matching right row: the complement of the anti join, within the left lifetime."""
    return _in_pieces(low, node, scope, _without(_without("matches")))


def _in_pieces(low: LoweringContext, node: AntiJoin | SemiJoin, scope: GroupScope, pieces: str) -> Flow:
    """Return the pieces of each left row; `pieces` is SQL over `matches`, the sorted lifetimes of its matching right rows."""
    low.note(node, "native")
    pairs = _pairs(low, node, scope)
    matches = "array_sort(collect_list(named_struct('le', rle, 're', rre)) FILTER (WHERE rle IS NOT NULL))"

    def make() -> Any:
        rows = _left_with(pairs, [f"{matches} as matches"])
        pieced = rows.selectExpr("lp", *pairs.key_columns, f"explode({pieces}) as piece")
        return pieced.selectExpr("piece.le as le", "piece.re as re", "lp as p", *pairs.key_columns)

    return Flow.of(pairs.left.type, pairs.left.unit, make, pairs.keys)


def _left_with(pairs: JoinPairs, aggregates: Sequence[str]) -> Any:
    """Return each left row, with its multiplicity, and aggregates of its matching right rows."""
    names = ["lle", "lre", "lp", *pairs.key_columns]
    kept = ["le as lle", "re as lre", "p as lp", *pairs.key_columns]
    alone = pairs.left.make().selectExpr(*kept, "1 as n", "cast(null as bigint) as rle", "cast(null as bigint) as rre")
    met = pairs.make().selectExpr(*names, "0 as n", "rle", "rre")
    grouped = alone.unionByName(met).groupBy(*names).agg(expr("sum(n) as n"), *map(expr, aggregates))
    added = [text.rpartition(" as ")[2] for text in aggregates]
    changed = raise_error("UnsupportedOnSpark", "a function of the query gives other results when it is called again")
    return grouped.selectExpr(*names, *added, f"explode(sequence(1L, if(n > 0, n, {changed}))) as copy")


_CUT = "if(h.le > a.start, concat(a.pieces, array(named_struct('le', a.start, 're', h.le))), a.pieces)"
_REST = "if(a.start < lre, concat(a.pieces, array(named_struct('le', a.start, 're', lre))), a.pieces)"
_STEP = f"(a, h) -> named_struct('start', greatest(a.start, h.re), 'pieces', {_CUT})"


def _without(holes: str) -> str:
    """Return the SQL of the left lifetime minus sorted lifetimes, as maximal pieces."""
    return f"aggregate({holes}, named_struct('start', lle, 'pieces', {_PIECES}), {_STEP}, a -> {_REST})"


def clip_by(low: LoweringContext, node: ClipBy, scope: GroupScope) -> Flow:
    """Each left row, clipped at the first matching right LE strictly after its own LE."""
    low.note(node, "native")
    if node.matching.where is None:
        return _clip_by_key(low, node, scope)
    pairs = _pairs(low, node, scope)

    def make() -> Any:
        rows = _left_with(pairs, ["min(rle) as cut"])
        return rows.selectExpr("lle as le", "least(lre, coalesce(cut, lre)) as re", "lp as p", *pairs.key_columns)

    return Flow.of(pairs.left.type, pairs.left.unit, make, pairs.keys)


def _clip_by_key(low: LoweringContext, node: ClipBy, scope: GroupScope) -> Flow:
    """Find the next right LE of the same key with one sort of both inputs."""
    left, right = _inputs(low, node, scope)
    matching = node.matching
    frames = stages.with_join_keys(low, node, [left, right], [matching.left_key, matching.right_key], scope)
    common = [key for key in left.key_columns if key in right.key_columns]
    by = [*common, *(["j"] if matching.left_key is not None else [])]
    later = window_clause(by, "t DESC", "RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING")

    def make() -> Any:
        others = [key for key in left.key_columns if key not in common]
        nothing = [f"cast(null as {key.type.ddl}) as {key.column}" for key in left.keys if key.column in others]
        lefts = frames[0]().selectExpr(*by, *others, "le as t", "re", "p", "cast(null as bigint) as start")
        empty = f"cast(null as {left.type.ddl}) as p"
        rights = frames[1]().selectExpr(*by, *nothing, "le as t", "cast(null as bigint) as re", empty, "le as start")
        cut = lefts.unionByName(rights).selectExpr("*", f"min(start) {later} as cut").where("re IS NOT NULL")
        return cut.selectExpr("t as le", "least(re, coalesce(cut, re)) as re", "p", *left.key_columns)

    return Flow.of(left.type, left.unit, make, left.keys)


__all__ = ["anti_join", "clip_by", "join", "semi_join"]
