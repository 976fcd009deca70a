"""Python stages: operators without an exact SQL form run in Python workers on Arrow data, row by row or group by group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame

from streamdsl.expr.nodes import Expr, Key
from streamdsl.expr.schema import Schema
from streamdsl.plan.node import GroupApply, Node, Source, TwoInputs, WindowAggregate, Windowed
from streamdsl.plan.nodes.combining import PairJoin
from streamdsl.plan.properties import expressions
from streamdsl.spark import grid_sql
from streamdsl.spark.codec import check_portable
from streamdsl.spark.column_types import ColumnType, PickledType, RecordType, as_nullable, is_native, type_of_class
from streamdsl.spark.expressions import Env, infer, to_sql
from streamdsl.spark.flow import Flow, FrameFactory, GroupKey, GroupScope, JoinPairs, ddl_of
from streamdsl.spark.group_stage import TAG, GroupStage
from streamdsl.spark.lowering_context import LoweringContext
from streamdsl.spark.partial_stage import MergeStage, PartialStage
from streamdsl.spark.portion import portion_size
from streamdsl.spark.portion_stage import PortionStage
from streamdsl.spark.row_stage import (
    BatchReader,
    Construct,
    Filter,
    KeyColumn,
    PayloadColumn,
    ProjectPairs,
    ProjectRows,
    Publish,
    RowStage,
    Step,
)
from streamdsl.spark.shipping import ship
from streamdsl.spark.sql_text import NotNative, Sql, floor_div
from streamdsl.windows import Hopping


def map_rows(
    low: LoweringContext,
    node: Node,
    flow: Flow,
    scope: GroupScope,
    step: Step,
    why: object,
    out: ColumnType | None = None,
    schema: Schema | None = None,
) -> Flow:
    """Return the flow after a row step in Python; `schema` is that of its payloads, by default of the node's input."""
    low.note(node, "rows", why)
    _check_key(low, node, flow.keys, scope.level)
    reader = BatchReader((payload_of(flow.type, schema or node.inputs[0].schema),), _group_key(flow.keys, scope.level))
    kind = out or flow.type
    return Flow.of(
        kind, flow.unit, _map_in_arrow(low.label(node), flow.make, step, reader, kind, _ddl(flow.keys, kind)), flow.keys
    )


def project(
    low: LoweringContext, node: Node, flow: Flow, scope: GroupScope, projection: Expr, why: str = "", schema: Schema | None = None
) -> Flow:
    """Return the flow with a projection of its payloads, in SQL if that can be; `why` is said before the reason if not."""
    env = scope.env(flow, low.label(node))
    low.note(node, "native")
    try:
        payload = to_sql(projection, env)
    except NotNative as reason:
        return map_rows(low, node, flow, scope, ProjectRows(projection), f"{why}{reason}", infer(projection, env), schema)
    return flow.select(payload.type, p=payload.text)


def filter_pairs(low: LoweringContext, node: TwoInputs, pairs: JoinPairs, level: int | None) -> FrameFactory:
    """Return the pairs that meet the node's condition, evaluated in Python."""
    assert node.matching.where is not None
    left, right = pairs.sides
    ddl = ["lle bigint", "lre bigint", "rle bigint", "rre bigint", f"lp {left.ddl}", f"rp {right.ddl}", *ddl_of(pairs.keys)]
    reader = _pair_reader(low, node, pairs, level)
    return _map_in_arrow(low.label(node), pairs.make, Filter(node.matching.where), reader, left, ddl)


def project_pairs(
    low: LoweringContext, node: PairJoin, pairs: JoinPairs, make: FrameFactory, level: int | None, out: ColumnType
) -> FrameFactory:
    """Return the rows of pairs with the node's projection, evaluated in Python."""
    assert node.projection is not None
    names = ["le", "re", "lle", "rle", "lp", "rp", *pairs.key_columns]
    reader = _pair_reader(low, node, pairs, level)
    return _map_in_arrow(low.label(node), make, ProjectPairs(node.projection), reader, out, _ddl(pairs.keys, out), names)


def _pair_reader(low: LoweringContext, node: TwoInputs, pairs: JoinPairs, level: int | None) -> BatchReader:
    _check_key(low, node, pairs.keys, level)
    left, right = (
        payload_of(kind, below.schema, name) for kind, below, name in zip(pairs.sides, node.inputs, ("lp", "rp"), strict=True)
    )
    return BatchReader((left, right), _group_key(pairs.keys, level), False, ("lle", "rle"))


def _check_key(low: LoweringContext, node: Node, keys: Sequence[GroupKey], level: int | None) -> None:
    """Raise for an expression that reads a group's key where the rows do not depend on the group."""
    if level is None or isinstance(node, GroupApply) or _group_key(keys, level) is not None:
        return
    if any(isinstance(part, Key) for expr in expressions(node) for part in expr.walk()):
        raise low.unsupported(node, "it reads the key of a group, but none of its rows")


def _group_key(keys: Sequence[GroupKey], level: int | None) -> PayloadColumn | None:
    return next((PayloadColumn(key.column, key.type) for key in keys if key.level == level), None)


def payload_of(kind: ColumnType, schema: Schema | None, column: str = "p") -> PayloadColumn:
    """Return a payload column; raises `UnsupportedOnSpark` for types that have no counterpart in Python."""
    check_portable(kind)
    return PayloadColumn(column, kind, kind.schema if isinstance(kind, RecordType) else schema)


def _map_in_arrow(
    label: str,
    make: FrameFactory,
    step: Step,
    reader: BatchReader,
    out: ColumnType,
    ddl: Sequence[str],
    columns: Sequence[str] | None = None,
) -> FrameFactory:
    """Return a frame after a step that takes `columns` and returns those of `ddl`; by default these have the same names."""
    blob = ship(RowStage(label, step, reader, out), label)
    names = columns or [column.split(" ")[0] for column in ddl]
    return lambda: make().selectExpr(*names).mapInArrow(run_in_worker(blob, label), ", ".join(ddl))


def _ddl(keys: Sequence[GroupKey], kind: ColumnType) -> list[str]:
    return ["le bigint", "re bigint", f"p {kind.ddl}", *ddl_of(keys)]


def run_in_worker(blob: bytes, name: str) -> Callable[[Any], Any]:
    """Return the function that runs a shipped stage in a worker, on the batches of a partition or the table of a group.

    Spark's plans show its name.
    """

    def run(data: Any) -> Any:
        from streamdsl.spark.worker import load_stage

        return load_stage(blob).run(data)

    run.__name__ = name
    return run


def with_key(low: LoweringContext, node: Node, flow: Flow, scope: GroupScope, key: Expr | None) -> tuple[FrameFactory, list[str]]:
    """Return the flow's frame with the key as column `j`, and that column's name; unchanged without a key."""
    if key is None:
        return flow.make, []
    try:
        return _native_key(flow, _key_sql(key, scope.env(flow, low.label(node))))
    except NotNative as why:
        return with_python_key(low, node, flow, key, why), ["j"]


def with_join_keys(
    low: LoweringContext, node: Node, flows: Sequence[Flow], keys: Sequence[Expr | None], scope: GroupScope
) -> list[FrameFactory]:
    """Return the frames of two flows with their keys as column `j`, of one type on both sides; unchanged without keys."""
    known = [key for key in keys if key is not None]
    if len(known) < 2:
        return [flow.make for flow in flows]
    try:
        found = [_key_sql(key, scope.env(flow, low.label(node))) for flow, key in zip(flows, known, strict=True)]
        if len({as_nullable(key.type) for key in found}) > 1:
            raise NotNative("keys of different types are compared in Python")
        return [_native_key(flow, key)[0] for flow, key in zip(flows, found, strict=True)]
    except NotNative as why:
        inputs = zip(flows, known, node.inputs, strict=True)
        return [with_python_key(low, node, flow, key, why, below.schema) for flow, key, below in inputs]


def _key_sql(key: Expr, env: Env) -> Sql:
    found = to_sql(key, env)
    if not is_native(found.type):
        raise NotNative("the key is a Python object")
    return found


def _native_key(flow: Flow, key: Sql) -> tuple[FrameFactory, list[str]]:
    return (lambda: flow.make().selectExpr(*flow.columns, f"{key.text} as j")), ["j"]


def with_python_key(
    low: LoweringContext, node: Node, flow: Flow, key: Expr, why: object = "", schema: Schema | None = None
) -> FrameFactory:
    """Return the flow's frame with the encoded key as column `j`, which Python computes."""
    low.note(node, "rows", f"its key: {why}")
    reader = BatchReader((payload_of(flow.type, schema or node.inputs[0].schema),), None)
    ddl = [*_ddl(flow.keys, flow.type), "j binary"]
    return _map_in_arrow(low.label(node), flow.make, KeyColumn(key), reader, flow.type, ddl, flow.columns)


def apply_groups(
    low: LoweringContext,
    node: Node,
    fragment: Node,
    inputs: Mapping[str, Flow],
    scope: GroupScope,
    why: object,
    out: ColumnType,
    by: Sequence[FrameFactory] | None = None,
) -> Flow:
    """Return the result of a fragment of a plan over its inputs in Python, one call per group.

    The frames `by` also have a key column `j`, with one call per key.
    """
    flows = low.align(list(inputs.values()), scope)
    keys = flows[0].keys
    names = [key.column for key in keys] + (["j"] if by else [])
    _check_key(low, node, keys, scope.level)
    low.note(node, "groups" if names else "one task", why)
    blob = ship(_stage(low, node, fragment, dict(zip(inputs, flows, strict=True)), scope, out), low.label(node))
    frames = by or [flow.make for flow in flows]

    def make() -> Any:
        tagged = _tagged(flows, [frame() for frame in frames], names or ["0 as whole"])
        grouped = tagged.groupBy(*(names or ["whole"]))
        return grouped.applyInArrow(run_in_worker(blob, low.label(node)), ", ".join(_ddl(keys, out))).where("le < re")

    return Flow.of(out, flows[0].unit, make, keys)


def _stage(
    low: LoweringContext, node: Node, fragment: Node, inputs: Mapping[str, Flow], scope: GroupScope, out: ColumnType
) -> GroupStage:
    flows = list(inputs.values())
    schemas = [below.schema for below in node.inputs] + [None] * len(flows)
    payloads = {name: payload_of(flow.type, schemas[tag], f"p{tag}") for tag, (name, flow) in enumerate(inputs.items())}
    keys = tuple(PayloadColumn(key.column, key.type) for key in flows[0].keys)
    key = _group_key(flows[0].keys, scope.level)
    return GroupStage(fragment, payloads, keys, key, out, flows[0].unit, low.until)


def _tagged(flows: Sequence[Flow], frames: Sequence[Any], names: Sequence[str]) -> Any:
    """Return the union of the inputs' rows, tagged, with a payload column per input."""
    parts = []
    for tag, frame in enumerate(frames):
        payloads = [f"p as p{i}" if i == tag else f"cast(null as {flow.type.ddl}) as p{i}" for i, flow in enumerate(flows)]
        parts.append(frame.selectExpr(*names, f"'{tag}' as {TAG}", "le", "re", *payloads))
    return reduce(DataFrame.unionByName, parts)


def window_portions(
    low: LoweringContext, node: Windowed, windows: Hopping, flow: Flow, scope: GroupScope, why: object, out: ColumnType
) -> Flow:
    """Return the windows of a grid in Python, all groups of a partition together, one portion of windows after the other.

    Rows are partitioned by their group and their portion, so the windows of a group that has many rows are divided.
    """
    _check_key(low, node, flow.keys, scope.level)
    low.note(node, "portions", why)
    for key in flow.keys:
        check_portable(key.type)
    keys = tuple(PayloadColumn(key.column, key.type) for key in flow.keys)
    payload = payload_of(flow.type, node.input.schema)
    fragment, size = replace(node, input=Source("in", None, flow.unit)), portion_size(windows)
    blob = ship(PortionStage(fragment, size, payload, keys, out, low.until), low.label(node))
    spread = f"explode(sequence({floor_div('lo', size)}, {floor_div('hi', size)})) as j"

    def make() -> Any:
        rows = flow.make().selectExpr(*flow.columns, *grid_sql.bounds(windows, low.until, unit=flow.unit)).where("lo <= hi")
        copies = rows.selectExpr(*flow.columns, spread).repartition(*flow.key_columns, "j").sortWithinPartitions("j", "le")
        return copies.mapInArrow(run_in_worker(blob, low.label(node)), ", ".join(_ddl(flow.keys, out))).where("le < re")

    return Flow.of(out, flow.unit, make, flow.keys)


def partial_aggregation(
    low: LoweringContext, node: WindowAggregate, windows: Hopping, flow: Flow, scope: GroupScope, record: RecordType
) -> Flow:
    """Return the windows of a grid with their aggregates by partial aggregation: map side, shuffle, merge.

    The frame has a column per aggregate, as with native aggregation.
    """
    _check_key(low, node, flow.keys, scope.level)
    label, names = low.label(node), tuple(flow.key_columns)
    reader = BatchReader((payload_of(flow.type, node.input.schema),), _group_key(flow.keys, scope.level))
    states = ship(PartialStage(label, windows, node.aggregates, reader, names), label)
    whole = ship(MergeStage(label, windows, tuple(agg.function for agg in node.aggregates), names), label)
    keys = ddl_of(flow.keys)
    state_ddl = [*keys, "w bigint", "j bigint", "held binary"]
    columns = [f"{name} {field.ddl}" for name, field in zip(record.schema.names, record.fields, strict=True)]
    result_ddl = ["le bigint", "re bigint", *columns, *keys]

    def make() -> Any:
        rows = flow.make().selectExpr(*flow.columns, *grid_sql.bounds(windows, low.until, unit=flow.unit)).where("lo <= hi")
        parts = rows.mapInArrow(run_in_worker(states, label), ", ".join(state_ddl))
        return parts.groupBy(*names, "j").applyInArrow(run_in_worker(whole, label), ", ".join(result_ddl))

    return Flow.of(record, flow.unit, make, flow.keys)


def construct_payloads(node: Source, flow: Flow) -> Flow:
    """Return a source whose payloads are objects that Python constructs from a frame's columns."""
    assert node.payload is not None
    assert node.payload.cls is not None
    out = PickledType(type_of_class(node.payload.cls))
    reader = BatchReader((payload_of(flow.type, None),))
    label = f"source:{node.source}"
    return Flow.of(
        out, flow.unit, _map_in_arrow(label, flow.make, Construct(node.payload.cls), reader, out, _ddl(flow.keys, out))
    )


def publish_payloads(flow: Flow, public: ColumnType) -> Flow:
    """Return a flow with its payloads encoded as their public types."""
    reader = BatchReader((payload_of(flow.type, None),))
    return Flow.of(public, flow.unit, _map_in_arrow("output", flow.make, Publish(), reader, public, _ddl(flow.keys, public)))
