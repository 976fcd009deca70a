"""Lowerings of window operators: columns assign rows to windows, then an aggregation follows; group keys are kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pyspark.sql.functions import expr

from streamdsl.expr.schema import Schema
from streamdsl.plan.node import Chop, Source, WindowAggregate, WindowApply, Windowed
from streamdsl.spark import grid_sql, stages
from streamdsl.spark.aggregate_sql import native_aggregates, record_type
from streamdsl.spark.aggregation_plan import AggregationPlan
from streamdsl.spark.column_types import PickledType, RecordType
from streamdsl.spark.expressions import Env, PayloadRef, infer, to_sql
from streamdsl.spark.flow import Flow, GroupScope, window_clause
from streamdsl.spark.largest_rows import largest, operator_type
from streamdsl.spark.lowering_context import LoweringContext
from streamdsl.spark.partial_stage import why_not_partial
from streamdsl.spark.result_types import result_type
from streamdsl.spark.row_stage import ProjectRows
from streamdsl.spark.sql_text import NotNative, integer, plus_time
from streamdsl.spark.window_members import in_grid, in_sessions, in_snapshots, members, snapshots, with_bounds
from streamdsl.temporal import INFINITY
from streamdsl.windows import CalendarPeriods, Count, Hopping, Output, Sequenced, Session, Snapshot, Windows


def window_aggregate(low: LoweringContext, node: WindowAggregate, scope: GroupScope) -> Flow:
    """One row per non-empty window: the projection of its aggregates."""
    flow = low.lower(node.input, scope)
    try:
        windowed = _native_windows(low, node, flow, scope)
    except NotNative as why:
        return _in_python(low, node, flow, scope, why)
    low.note(node, "native")
    return _stamped(_projected(low, node, windowed, scope), node.output)


def window_apply(low: LoweringContext, node: WindowApply, scope: GroupScope) -> Flow:
    """Zero or more rows per non-empty window: the results of a user-defined operator."""
    flow = low.lower(node.input, scope)
    env = scope.env(flow, low.label(node))
    try:
        made = largest(node, flow, env, low.until)
    except NotNative as why:
        return _python_stage(low, node, flow, scope, why, operator_type(node, env))
    low.note(node, "native")
    return _stamped(made, node.output)


def chop(low: LoweringContext, node: Chop, scope: GroupScope) -> Flow:
    """Each row in pieces, one per cell that it overlaps."""
    low.note(node, "native")
    flow, cells = low.lower(node.input, scope), node.cells
    start = grid_sql.start(cells, "w")
    piece = ["greatest(le, wle) as le", f"least(re, {grid_sql.end(cells, 'wle')}) as re", "p", *flow.key_columns]

    def made(df: Any) -> Any:
        rows = df.selectExpr("*", *grid_sql.bounds(cells, low.until, unit=flow.unit)).where("lo <= hi")
        return rows.selectExpr("*", "explode(sequence(lo, hi)) as w").selectExpr("*", f"{start} as wle").selectExpr(*piece)

    return flow.then(made)


def _in_python(low: LoweringContext, node: WindowAggregate, flow: Flow, scope: GroupScope, why: object) -> Flow:
    arguments = [infer(agg.given, scope.env(flow, low.label(node))) for agg in node.aggregates]
    fields = tuple(PickledType(result_type(agg.function, kind)) for agg, kind in zip(node.aggregates, arguments, strict=True))
    record = RecordType(Schema.record(tuple(f"a{i}" for i in range(len(fields)))), fields)
    unmerged = why_not_partial(node)
    if unmerged is None and isinstance(node.windows, Hopping):
        windowed = stages.partial_aggregation(low, node, node.windows, flow, scope, record)
        projected = _projected(low, node, windowed, scope)
        low.note(node, "partials", why)
        return _stamped(projected, node.output)
    if any(agg.function.incremental for agg in node.aggregates):
        why = f"{why}; no partial states, as {unmerged}"
    out = infer(node.projection, Env((PayloadRef(record),), key=scope.key(flow)))
    return _python_stage(low, node, flow, scope, why, out)


def _python_stage(low: LoweringContext, node: Windowed, flow: Flow, scope: GroupScope, why: object, out: Any) -> Flow:
    if isinstance(node.windows, Hopping):
        return stages.window_portions(low, node, node.windows, flow, scope, why, out)
    fragment = dataclasses.replace(node, input=Source("in", None, flow.unit))
    return stages.apply_groups(low, node, fragment, {"in": flow}, scope, why, out)


def _native_windows(low: LoweringContext, node: WindowAggregate, flow: Flow, scope: GroupScope) -> Flow:
    """Return the flow of windows, whose frame has a column per aggregate."""
    aggregates = native_aggregates(node, scope.env(flow, low.label(node)), low.exact)
    points, texts = flow.points or node.input.fixed_duration == 1, any(key.type.ddl == "string" for key in flow.keys)
    plan = AggregationPlan(flow.key_columns, aggregates, points, texts, flow.unit)
    made = WINDOW_AGGREGATIONS[type(node.windows)](node.windows, plan, low.until)
    shown = ["le", "re", *flow.key_columns]
    return flow.then(lambda df: plan.results(made(df), shown), record_type(plan.aggregates))


def _projected(low: LoweringContext, node: WindowAggregate, windowed: Flow, scope: GroupScope) -> Flow:
    assert isinstance(windowed.type, RecordType)
    record = PayloadRef(windowed.type, field_columns=windowed.type.schema.names)
    env = Env((record,), key=scope.key(windowed), operator=low.label(node), window=True)
    try:
        payload = to_sql(node.projection, env)
    except NotNative as why:
        whole = windowed.then(lambda df: df.selectExpr("le", "re", f"{record.whole().text} as p", *windowed.key_columns))
        return stages.map_rows(
            low, node, whole, scope, ProjectRows(node.projection), f"its projection: {why}", infer(node.projection, env)
        )
    return windowed.then(lambda df: df.selectExpr("le", "re", f"{payload.text} as p", *windowed.key_columns), payload.type)


def _stamped(flow: Flow, output: Output) -> Flow:
    return flow.select(le="re", re=plus_time("re", 1)) if output is Output.POINT_AT_END else flow


Aggregation = Callable[[Any], Any]
_MAX_SPREAD: Final = 4
"""The most windows of a point for which copying the point before the aggregation is cheaper than a second shuffle."""


def _hopping(windows: Hopping, plan: AggregationPlan, until: int) -> Aggregation:
    """Return the aggregation per hopping window: rows are pre-aggregated by (first, last window), copied to each, and merged.

    Points in few windows are copied first, which saves an exchange; aggregates that cannot be merged see each row per window.
    """
    bounds, le = grid_sql.bounds(windows, until, plan.points, plan.unit), grid_sql.start(windows, "w")
    shown = [*plan.keys, f"{le} as le", f"{grid_sql.end(windows, le)} as re", *plan.buffer_columns]
    divided = in_grid(windows, plan.keys, until, plan.unit, plan.points)

    def copied(df: Any) -> Any:
        rows = divided(df.selectExpr(*plan.keys, "le", "re", "p", *plan.arguments))
        return _aggregated(plan, rows, ["w"], plan.update()).selectExpr(*shown)

    def merged(df: Any) -> Any:
        rows = df.selectExpr(*plan.keys, *bounds, *plan.arguments).where("lo <= hi")
        parts = _aggregated(plan, rows, ["lo", "hi"], plan.update())
        spread = parts.selectExpr(*plan.keys, "explode(sequence(lo, hi)) as w", *plan.buffer_columns)
        return _aggregated(plan, spread, ["w"], plan.merge()).selectExpr(*shown)

    few = plan.points and windows.size <= _MAX_SPREAD * windows.hop
    return merged if plan.mergeable and not few else copied


def _snapshot(windows: Snapshot, plan: AggregationPlan, until: int) -> Aggregation:
    """Return the aggregation per snapshot: by running sums where all aggregates are retractable, else by members."""
    inside = f"re <= {integer(until)}"
    made = _running_snapshots if plan.retractable else _ranked_snapshots
    return lambda df: made(plan, df).where(inside)


def _running_snapshots(plan: AggregationPlan, df: Any) -> Any:
    """Return snapshots by running sums over endpoints: rows are added at their LE and retracted at their RE."""
    rows = df.selectExpr(*plan.keys, "le", "re", *plan.arguments)
    signed = rows.selectExpr("*", "stack(2, le, 1L, re, -1L) as (t, s)")
    sums = _aggregated(plan, signed, ["t"], [*plan.signed(), "sum(s) as n"])
    along = window_clause(plan.keys, "t", " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW")
    running = [f"sum({name}) {along} as {name}" for name in (*plan.buffer_columns, "n")]
    return sums.selectExpr(*plan.keys, "t as le", f"lead(t) {window_clause(plan.keys, 't')} as re", *running).where("n > 0")


def _ranked_snapshots(plan: AggregationPlan, df: Any) -> Any:
    """Return snapshots by ranks of endpoints: a row is a member of those from the rank of its LE up to that of its RE."""
    rows, windows = df.selectExpr(*plan.keys, "le", "re", "p", *plan.arguments), snapshots(df, plan.keys)
    if plan.mergeable:
        rows = _aggregated(plan, rows, ["le", "re"], plan.update())
    added = plan.merge() if plan.mergeable else plan.update()
    whole = _aggregated(plan, in_snapshots(rows, windows, plan.keys), ["r"], added)
    return with_bounds(whole, windows, plan.keys).selectExpr(*plan.keys, "wle as le", "wre as re", *plan.buffer_columns)


def _of_members(windows: Windows, plan: AggregationPlan, until: int) -> Aggregation:
    """Return the aggregation of the rows of each window, a copy of a row for each of its windows."""
    divided = members(windows, plan.keys, until, plan.unit)

    def made(df: Any) -> Any:
        rows = divided(df.selectExpr(*plan.keys, "le", "re", "p", *plan.arguments))
        whole = _aggregated(plan, rows, ["wle", "wre"], plan.update())
        return whole.selectExpr(*plan.keys, "wle as le", "wre as re", *plan.buffer_columns)

    return made


def _count(windows: Count, plan: AggregationPlan, until: int) -> Aggregation:
    """Return the aggregation per count window: per distinct LE (RE), then merged over N of these; else of its members."""
    if not plan.mergeable:
        return _of_members(windows, plan, until)
    position = "le" if windows.by == "start" else "re"

    def made(df: Any) -> Any:
        counted = df.where(f"{position} < {integer(INFINITY)}").selectExpr(*plan.keys, f"{position} as t", *plan.arguments)
        parts = _aggregated(plan, counted, ["t"], plan.update())
        following = window_clause(plan.keys, "t", f" ROWS BETWEEN CURRENT ROW AND {windows.n - 1} FOLLOWING")
        last = f"lead(t, {windows.n - 1}) {window_clause(plan.keys, 't')} as last"
        whole = parts.selectExpr(*plan.keys, "t as le", last, *plan.merge(f" {following}")).where("last IS NOT NULL")
        ended = whole.selectExpr(*plan.keys, "le", f"{plus_time('last', 1)} as re", *plan.buffer_columns)
        return ended.where(f"re <= {integer(until)}")

    return made


def _session(windows: Session, plan: AggregationPlan, until: int) -> Aggregation:
    """Return the aggregation per session."""
    divided = in_sessions(windows, plan.keys)

    def made(df: Any) -> Any:
        numbered = divided(df.selectExpr(*plan.keys, "le", "re", "p", *plan.arguments))
        # Aggregates read the columns le and re of rows, so the session's bounds need other names.
        ends = ["min(le) as wle", "max(reach) as wre"]
        whole = _aggregated(plan, numbered, ["session"], [*ends, *plan.update()])
        sessions = whole.selectExpr(*plan.keys, "wle as le", "wre as re", *plan.buffer_columns)
        return sessions.where(f"re <= {integer(until)}")

    return made


def _only_in_python(why: str) -> Callable[[Any, AggregationPlan, int], Aggregation]:
    def refuse(windows: Windows, plan: AggregationPlan, until: int) -> Aggregation:
        raise NotNative(why)

    return refuse


def _aggregated(plan: AggregationPlan, df: Any, by: Sequence[str], aggregates: Sequence[str]) -> Any:
    """Return aggregates by the plan's keys and other columns, of which the last stands in a struct if a key is a text.

    Spark's generated code first looks for a group of plain keys in a small map of its own, which hashes texts byte by byte.
    Groups come and go with time, so the map is soon full of old ones, and each row is looked for twice. It takes no structs.
    """
    if not plan.has_text_key:
        return df.groupBy(*plan.keys, *by).agg(*map(expr, aggregates))
    *others, last = [*plan.keys, *by]
    names = [text.rsplit(" as ", 1)[1] for text in aggregates]
    grouped = df.groupBy(*others, expr(f"named_struct('{last}', {last}) as last_key")).agg(*map(expr, aggregates))
    return grouped.selectExpr(*others, f"last_key.{last} as {last}", *names)


WINDOW_AGGREGATIONS: Final[Mapping[type[Windows], Callable[[Any, AggregationPlan, int], Aggregation]]] = {
    Hopping: _hopping,
    Snapshot: _snapshot,
    Count: _count,
    Session: _session,
    Sequenced: _only_in_python("the windows of a sequence are found one after the other"),
    CalendarPeriods: _only_in_python("where the periods of a time zone begin is found in Python"),
}
"""The aggregation of each kind of windows; that of a kind that runs only in Python raises `NotNative`."""

__all__ = ["WINDOW_AGGREGATIONS", "chop", "window_aggregate", "window_apply"]
