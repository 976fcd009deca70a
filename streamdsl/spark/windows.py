"""Windows on Spark: which windows each row is in as columns, then one aggregation; group keys are taken along."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pyspark.sql.functions import expr

from streamdsl.expr.schema import Schema
from streamdsl.plan.node import Chop, Source, WindowAggregate, WindowApply, Windowed
from streamdsl.spark import grid, stages
from streamdsl.spark.aggregates import native_aggregates, record_type
from streamdsl.spark.aggregation import Plan
from streamdsl.spark.expressions import Env, RowAt, infer, to_sql
from streamdsl.spark.flow import Flow, Make, Scope, over
from streamdsl.spark.lowering import Lowering
from streamdsl.spark.partial_stage import why_unmerged
from streamdsl.spark.portion import portion_size
from streamdsl.spark.results import result_type
from streamdsl.spark.sql import NotNative, floor_div, integer, plus_time
from streamdsl.spark.types import Pickled, Row
from streamdsl.temporal import INFINITY
from streamdsl.windows import Count, Hopping, Output, Sequenced, Session, Snapshot, Windows


def window_aggregate(low: Lowering, node: WindowAggregate, scope: Scope) -> Flow:
    """One row per non-empty window: the projection of its aggregates."""
    flow = low.lower(node.input, scope)
    try:
        windowed = _native(low, node, flow, scope)
    except NotNative as why:
        return _in_python(low, node, flow, scope, why)
    low.note(node, "native")
    return _stamped(_projected(low, node, windowed, scope), node.output)


def window_apply(low: Lowering, node: WindowApply, scope: Scope) -> Flow:
    """Zero or more rows per non-empty window: what the operator returns."""
    flow = low.lower(node.input, scope)
    return _python_stage(low, node, flow, scope, f"{node.module.label} is Python code", Pickled(result_type(node.module)))


def chop(low: Lowering, node: Chop, scope: Scope) -> Flow:
    """Each row in pieces, one for each cell that it overlaps."""
    low.note(node, "native")
    flow, cells = low.lower(node.input, scope), node.cells
    start = grid.start(cells, "w")
    piece = ["greatest(le, wle) as le", f"least(re, {grid.end(cells, 'wle')}) as re", "p", *flow.key_columns]

    def made(df: Any) -> Any:
        rows = df.selectExpr("*", *grid.bounds(cells, low.until)).where("lo <= hi")
        return rows.selectExpr("*", "explode(sequence(lo, hi)) as w").selectExpr("*", f"{start} as wle").selectExpr(*piece)

    return flow.then(made)


def _in_python(low: Lowering, node: WindowAggregate, flow: Flow, scope: Scope, why: object) -> Flow:
    arguments = [infer(agg.given, scope.env(flow)) for agg in node.aggregates]
    fields = tuple(Pickled(result_type(agg.function, kind)) for agg, kind in zip(node.aggregates, arguments, strict=True))
    record = Row(Schema.record(tuple(f"a{i}" for i in range(len(fields)))), fields)
    unmerged = why_unmerged(node)
    if unmerged is None and isinstance(node.windows, Hopping):
        windowed = stages.partials(low, node, node.windows, flow, scope, record)
        projected = _projected(low, node, windowed, scope)
        low.note(node, "partials", why)
        return _stamped(projected, node.output)
    if any(agg.function.incremental for agg in node.aggregates):
        why = f"{why}; no partial states, as {unmerged}"
    out = infer(node.projection, Env((RowAt(record),), key=scope.key(flow)))
    return _python_stage(low, node, flow, scope, why, out)


def _python_stage(low: Lowering, node: Windowed, flow: Flow, scope: Scope, why: object, out: Any) -> Flow:
    fragment = dataclasses.replace(node, input=Source("in", None, flow.unit))
    if flow.keys or not isinstance(node.windows, Hopping):
        return stages.groups(low, node, fragment, {"in": flow}, scope, why, out)
    windows = node.windows
    fragment = dataclasses.replace(fragment, windows=windows)
    portions = _in_portions(windows, flow, low.until)
    return stages.groups(low, node, fragment, {"in": flow}, scope, why, out, [portions], portion_size(windows))


def _in_portions(windows: Hopping, flow: Flow, until: int) -> Make:
    """Return the rows once for each portion of windows that they are in, its number in the column `j`."""
    size = portion_size(windows)
    spread = f"explode(sequence({floor_div('lo', size)}, {floor_div('hi', size)})) as j"
    return lambda: flow.make().selectExpr("*", *grid.bounds(windows, until)).where("lo <= hi").selectExpr("le", "re", "p", spread)


def _native(low: Lowering, node: WindowAggregate, flow: Flow, scope: Scope) -> Flow:
    """Return the flow of windows with the record of their aggregates; its frame has a column for each."""
    plan = Plan(
        flow.key_columns, native_aggregates(node, scope.env(flow, low.label(node))), flow.points or node.input.fixed_duration == 1
    )
    if isinstance(node.windows, Count) and not plan.merges:
        raise NotNative("an aggregate of a count window cannot be merged from those of its starts")
    made = FRAMES[type(node.windows)](node.windows, plan, low.until)
    return flow.then(lambda df: made(df).selectExpr("le", "re", *flow.key_columns, *plan.results()), record_type(plan.aggregates))


def _projected(low: Lowering, node: WindowAggregate, windowed: Flow, scope: Scope) -> Flow:
    assert isinstance(windowed.type, Row)
    record = RowAt(windowed.type, parts=windowed.type.schema.names)
    env = Env((record,), key=scope.key(windowed), operator=low.label(node), window=True)
    try:
        payload = to_sql(node.projection, env)
    except NotNative as why:
        whole = windowed.then(lambda df: df.selectExpr("le", "re", f"{record.whole().text} as p", *windowed.key_columns))
        return stages.rows(
            low, node, whole, scope, stages.Project(node.projection), f"its projection: {why}", infer(node.projection, env)
        )
    return windowed.then(lambda df: df.selectExpr("le", "re", f"{payload.text} as p", *windowed.key_columns), payload.type)


def _stamped(flow: Flow, output: Output) -> Flow:
    return flow.select(le="re", re=plus_time("re", 1)) if output is Output.POINT_AT_END else flow


Frame = Callable[[Any], Any]
_FEW: Final = 4
"""So many windows that a point is in are few."""


def _hopping(windows: Hopping, plan: Plan, until: int) -> Frame:
    """Return the aggregation per hopping window: by (first, last window), then spread over the windows between, and merged.

    Points that are in few windows are spread at once: that saves an exchange.
    """
    bounds, le = grid.bounds(windows, until, plan.points), grid.start(windows, "w")
    ends = [f"{le} as le", f"{grid.end(windows, le)} as re"]

    def once(df: Any) -> Any:
        rows = df.selectExpr(*plan.keys, *bounds, *plan.arguments).where("lo <= hi")
        number = "lo as w" if windows.size == windows.hop else "explode(sequence(lo, hi)) as w"
        spread = rows.selectExpr(*plan.keys, number, *(f"x{i}" for i in range(len(plan.aggregates))))
        return _aggregated(spread, [*plan.keys, "w"], plan.first()).selectExpr(*plan.keys, *ends, *plan.part_columns)

    def merged(df: Any) -> Any:
        rows = df.selectExpr(*plan.keys, *bounds, *plan.arguments).where("lo <= hi")
        parts = _aggregated(rows, [*plan.keys, "lo", "hi"], plan.first())
        spread = parts.selectExpr(*plan.keys, "explode(sequence(lo, hi)) as w", *plan.part_columns)
        whole = _aggregated(spread, [*plan.keys, "w"], plan.merge())
        return whole.selectExpr(*plan.keys, *ends, *plan.part_columns)

    def direct(df: Any) -> Any:
        rows = df.selectExpr(*plan.keys, "le", "re", "p", *bounds, *plan.arguments).where("lo <= hi")
        spread = rows.selectExpr("*", "explode(sequence(lo, hi)) as w")
        inside = spread.selectExpr("*", f"{le} as wle", f"{grid.end(windows, le)} as wre")
        whole = _aggregated(inside, [*plan.keys, "w"], plan.first())
        return whole.selectExpr(*plan.keys, *ends, *plan.part_columns)

    if plan.merges and plan.points and windows.size <= _FEW * windows.hop:
        return once
    return merged if plan.merges else direct


def _snapshot(windows: Snapshot, plan: Plan, until: int) -> Frame:
    """Return the aggregation per snapshot: from running sums where all aggregates allow it, else of the snapshots' members."""
    inside = f"re <= {integer(until)}"
    made = _running if plan.subtracts else _ranked
    return lambda df: made(plan, df).where(inside)


def _running(plan: Plan, df: Any) -> Any:
    """Return snapshots from sums that run over endpoints: what starts is added, what ends is subtracted."""
    rows = df.selectExpr(*plan.keys, "le", "re", *plan.arguments)
    signed = rows.selectExpr("*", "stack(2, le, 1L, re, -1L) as (t, s)")
    sums = _aggregated(signed, [*plan.keys, "t"], [*plan.signed(), "sum(s) as n"])
    along = over(plan.keys, "t", " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW")
    running = [f"sum({name}) {along} as {name}" for name in (*plan.part_columns, "n")]
    return sums.selectExpr(*plan.keys, "t as le", f"lead(t) {over(plan.keys, 't')} as re", *running).where("n > 0")


def _ranked(plan: Plan, df: Any) -> Any:
    """Return snapshots as the endpoints' ranks: a row is in those between the ranks of its ends."""
    rows = df.selectExpr(*plan.keys, "le", "re", "p", *plan.arguments)
    times = df.selectExpr(*plan.keys, "explode(array(le, re)) as t").distinct()
    clause = over(plan.keys, "t")
    points = times.selectExpr(*plan.keys, "t", f"row_number() {clause} as r", f"lead(t) {clause} as next")
    if plan.merges:
        rows = _aggregated(rows, [*plan.keys, "le", "re"], plan.first())
    ranked = _beside(_beside(rows, points, plan.keys, "le", "r1"), points, plan.keys, "re", "r2")
    spread = ranked.selectExpr("*", "explode(sequence(r1, r2 - 1)) as r")
    whole = _aggregated(spread, [*plan.keys, "r"], plan.merge() if plan.merges else plan.first())
    named = points.selectExpr("t as le", "next as re", "r as s", *(f"{key} as s_{key}" for key in plan.keys))
    match = " AND ".join(["r = s", *(f"{key} <=> s_{key}" for key in plan.keys)])
    return _joined(whole, named, match).selectExpr(*plan.keys, "le", "re", *plan.part_columns)


def _beside(rows: Any, points: Any, keys: Sequence[str], time: str, name: str) -> Any:
    """Return rows with the rank of one of their ends."""
    known = points.selectExpr(f"t as t_{name}", f"r as {name}", *(f"{key} as {name}_{key}" for key in keys))
    match = " AND ".join([f"{time} = t_{name}", *(f"{key} <=> {name}_{key}" for key in keys)])
    return _joined(rows, known, match)


def _count(windows: Count, plan: Plan, until: int) -> Frame:
    """Return the aggregation per count window: per distinct start (end), then merged over N of them."""
    position = "le" if windows.by == "start" else "re"

    def made(df: Any) -> Any:
        counted = df.where(f"{position} < {integer(INFINITY)}").selectExpr(*plan.keys, f"{position} as t", *plan.arguments)
        parts = _aggregated(counted, [*plan.keys, "t"], plan.first())
        members = over(plan.keys, "t", f" ROWS BETWEEN CURRENT ROW AND {windows.n - 1} FOLLOWING")
        last = f"lead(t, {windows.n - 1}) {over(plan.keys, 't')} as last"
        whole = parts.selectExpr(*plan.keys, "t as le", last, *plan.merge(f" {members}")).where("last IS NOT NULL")
        ended = whole.selectExpr(*plan.keys, "le", f"{plus_time('last', 1)} as re", *plan.part_columns)
        return ended.where(f"re <= {integer(until)}")

    return made


def _session(windows: Session, plan: Plan, until: int) -> Frame:
    """Return the aggregation per session: a row that starts at or after all that its predecessors reach starts one."""
    if windows.max_duration is not None:
        raise NotNative("where a session with a longest duration is cut is found in Python")
    reach = f"{plus_time('re', windows.gap)} as reach"
    before = over(plan.keys, "le", " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING")
    # Of rows with the same LE only one starts a session, and all have its number: their order, which is open, does not show.
    number = f"sum(opens) {over(plan.keys, 'le', ' RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW')} as session"

    def made(df: Any) -> Any:
        rows = df.selectExpr(*plan.keys, "le", "re", "p", reach, *plan.arguments)
        opened = rows.selectExpr("*", f"if(le < max(reach) {before}, 0L, 1L) as opens")
        numbered = opened.selectExpr("*", number)
        # The columns le and re of rows are read by aggregates, so the session's go by other names.
        ends = ["min(le) as session_le", "max(reach) as session_re"]
        whole = _aggregated(numbered, [*plan.keys, "session"], [*ends, *plan.first()])
        sessions = whole.selectExpr(*plan.keys, "session_le as le", "session_re as re", *plan.part_columns)
        return sessions.where(f"re <= {integer(until)}")

    return made


def _sequenced(windows: Sequenced, plan: Plan, until: int) -> Frame:
    raise NotNative("the windows of a sequence are found one after the other")


def _aggregated(df: Any, keys: Sequence[str], aggregates: Sequence[str]) -> Any:
    return df.groupBy(*keys).agg(*map(expr, aggregates))


def _joined(left: Any, right: Any, match: str) -> Any:
    return left.join(right, expr(match))


FRAMES: Final[Mapping[type[Windows], Callable[[Any, Plan, int], Frame]]] = {
    Hopping: _hopping,
    Snapshot: _snapshot,
    Count: _count,
    Session: _session,
    Sequenced: _sequenced,
}
"""The kinds of windows that run on Spark, and how; one that runs in Python only raises `NotNative`."""

__all__ = ["FRAMES", "chop", "window_aggregate", "window_apply"]
