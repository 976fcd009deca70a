"""Python stages: what does not certainly mean the same on Spark runs in Python, on Arrow, row by row or group by group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from streamdsl.expr.nodes import Expr, Key
from streamdsl.expr.schema import Schema
from streamdsl.plan.node import GroupApply, Join, Node, Source, TwoInputs, WindowAggregate
from streamdsl.plan.properties import expressions
from streamdsl.spark import grid
from streamdsl.spark.codec import check_portable
from streamdsl.spark.expressions import Env, to_sql
from streamdsl.spark.flow import Flow, GroupKey, Make, Scope
from streamdsl.spark.group_stage import TAG, GroupStage
from streamdsl.spark.lowering import How, Lowering
from streamdsl.spark.partial_stage import MergeStage, PartialStage
from streamdsl.spark.row_stage import (
    Alter,
    Construct,
    Filter,
    Flatten,
    KeyColumn,
    Payload,
    Project,
    ProjectPairs,
    Publish,
    Reader,
    Reencode,
    RowStage,
    Step,
)
from streamdsl.spark.shipping import ship
from streamdsl.spark.sql import NotNative, Sql
from streamdsl.spark.types import Pickled, Row, Type, as_nullable, is_native, type_of_class
from streamdsl.windows import Hopping

__all__ = [
    "Alter",
    "Filter",
    "Flatten",
    "Project",
    "Reencode",
    "constructed",
    "filter_pairs",
    "groups",
    "join_keys",
    "keyed",
    "keyed_in_python",
    "partials",
    "project_pairs",
    "published",
    "rows",
]


def rows(
    low: Lowering,
    node: Node,
    flow: Flow,
    scope: Scope,
    step: Step,
    why: object,
    out: Type | None = None,
    schema: Schema | None = None,
) -> Flow:
    """Return the flow after a step in Python, row by row; `schema` is that of its payloads, by default the node's input's."""
    low.note(node, "rows", why)
    _check_key(low, node, flow.keys, scope.level)
    reader = Reader((payload_of(flow.type, schema or node.inputs[0].schema),), _innermost(flow.keys, scope.level))
    kind = out or flow.type
    return Flow.of(kind, flow.unit, _mapped(low, node, flow.make, step, reader, kind, _ddl(flow, kind)), flow.keys)


def filter_pairs(
    low: Lowering, node: TwoInputs, sides: tuple[Type, Type], make: Make, keys: Sequence[GroupKey], level: int | None
) -> Make:
    """Return the pairs that fulfil the node's condition, in Python."""
    assert node.matching.where is not None
    times = ["lle bigint", "lre bigint", "rle bigint", "rre bigint"]
    ddl = [*times, f"lp {sides[0].ddl}", f"rp {sides[1].ddl}", *(f"{key.column} {key.type.ddl}" for key in keys)]
    _check_key(low, node, keys, level)
    reader = _pair_reader(node, sides, keys, level)
    return _mapped(low, node, make, Filter(node.matching.where), reader, sides[0], ddl)


def project_pairs(
    low: Lowering, node: Join, sides: tuple[Type, Type], make: Make, keys: Sequence[GroupKey], level: int | None, out: Type
) -> Make:
    """Return the payloads that the node's projection makes of pairs, in Python."""
    assert node.projection is not None
    names = ["le", "re", "lle", "rle", "lp", "rp", *(key.column for key in keys)]
    ddl = ["le bigint", "re bigint", f"p {out.ddl}", *(f"{key.column} {key.type.ddl}" for key in keys)]
    _check_key(low, node, keys, level)
    reader = _pair_reader(node, sides, keys, level)
    return _mapped(low, node, make, ProjectPairs(node.projection), reader, out, ddl, names)


def _pair_reader(node: TwoInputs, sides: tuple[Type, Type], keys: Sequence[GroupKey], level: int | None) -> Reader:
    left, right = payload_of(sides[0], node.left.schema, "lp"), payload_of(sides[1], node.right.schema, "rp")
    return Reader((left, right), _innermost(keys, level), False, ("lle", "rle"))


def _check_key(low: Lowering, node: Node, keys: Sequence[GroupKey], level: int | None) -> None:
    """Refuse an expression that reads the key of a group where the rows are the same in all groups."""
    if level is None or isinstance(node, GroupApply) or _innermost(keys, level) is not None:
        return
    if any(isinstance(part, Key) for expr in expressions(node) for part in expr.walk()):
        raise low.unsupported(node, "it reads the key of a group, but none of its rows")


def _innermost(keys: Sequence[GroupKey], level: int | None) -> Payload | None:
    return next((Payload(key.column, key.type) for key in keys if key.level == level), None)


def payload_of(kind: Type, schema: Schema | None, column: str = "p") -> Payload:
    """Return how a payload column is read; raises `UnsupportedOnSpark` for what Python cannot read."""
    check_portable(kind)
    return Payload(column, kind, kind.schema if isinstance(kind, Row) else schema)


def _mapped(
    low: Lowering,
    node: Node,
    make: Make,
    step: Step,
    reader: Reader,
    out: Type,
    ddl: Sequence[str],
    columns: Sequence[str] | None = None,
) -> Make:
    """Return a frame after a step: `columns` of it go in, those of `ddl` (by default the same ones) come out."""
    return _shipped(low.label(node), make, step, reader, out, ddl, columns)


def _shipped(
    label: str, make: Make, step: Step, reader: Reader, out: Type, ddl: Sequence[str], columns: Sequence[str] | None = None
) -> Make:
    blob = ship(RowStage(label, step, reader, out), label)
    names = columns or [column.split(" ")[0] for column in ddl]
    return lambda: make().selectExpr(*names).mapInArrow(_row_function(blob), ", ".join(ddl))


def _ddl(flow: Flow, kind: Type) -> list[str]:
    return ["le bigint", "re bigint", f"p {kind.ddl}", *(f"{key.column} {key.type.ddl}" for key in flow.keys)]


def _row_function(blob: bytes) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def run(batches: Iterable[Any]) -> Iterator[Any]:
        from streamdsl.spark.worker import run_rows

        return run_rows(blob, batches)

    return run


def _group_function(blob: bytes) -> Callable[[Any], Any]:
    def run(table: Any) -> Any:
        from streamdsl.spark.worker import run_group

        return run_group(blob, table)

    return run


def keyed(low: Lowering, node: Node, flow: Flow, scope: Scope, key: Expr | None) -> tuple[Make, list[str]]:
    """Return the flow's frame with the key in the column `j`, and that column's name; no key, no column."""
    if key is None:
        return flow.make, []
    try:
        return _native_key(flow, _key_sql(key, scope.env(flow, low.label(node))))
    except NotNative as why:
        return keyed_in_python(low, node, flow, key, why), ["j"]


def join_keys(low: Lowering, node: Node, flows: Sequence[Flow], keys: Sequence[Expr | None], scope: Scope) -> list[Make]:
    """Return the frames of two flows with their keys in the column `j`, held alike on both sides; without keys as they are."""
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
        return [keyed_in_python(low, node, flow, key, why, below.schema) for flow, key, below in inputs]


def _key_sql(key: Expr, env: Env) -> Sql:
    found = to_sql(key, env)
    if not is_native(found.type):
        raise NotNative("the key is a Python object")
    return found


def _native_key(flow: Flow, key: Sql) -> tuple[Make, list[str]]:
    return (lambda: flow.make().selectExpr(*flow.columns, f"{key.text} as j")), ["j"]


def keyed_in_python(low: Lowering, node: Node, flow: Flow, key: Expr, why: object = "", schema: Schema | None = None) -> Make:
    """Return the flow's frame with the key in the column `j`, as bytes that are equal where Python's keys are equal."""
    low.note(node, "rows", f"its key: {why}")
    reader = Reader((payload_of(flow.type, schema or node.inputs[0].schema),), None)
    ddl = [*_ddl(flow, flow.type), "j binary"]
    return _mapped(low, node, flow.make, KeyColumn(key), reader, flow.type, ddl, flow.columns)


def groups(
    low: Lowering,
    node: Node,
    fragment: Node,
    inputs: Mapping[str, Flow],
    scope: Scope,
    why: object,
    out: Type,
    by: Sequence[Make] | None = None,
    portion: int | None = None,
) -> Flow:
    """Return what a part of a plan makes of its inputs in Python, one call per group.

    The frames `by` have a key `j` too, which makes a call for each; with `portion` it is the number of so many windows.
    """
    flows = low.align(list(inputs.values()), scope)
    keys = flows[0].keys
    names = [key.column for key in keys] + (["j"] if by else [])
    _check_key(low, node, keys, scope.level)
    how: How = "portions" if portion else "groups" if names else "one task"
    low.note(node, how, why)
    stage = replace(_stage(low, node, fragment, dict(zip(inputs, flows, strict=True)), scope, out), portion=portion)
    blob = ship(stage, low.label(node))
    frames = by or [flow.make for flow in flows]

    def make() -> Any:
        tagged = _tagged(flows, [frame() for frame in frames], names or ["0 as whole"])
        grouped = tagged.groupBy(*(names or ["whole"]))
        return grouped.applyInArrow(_group_function(blob), ", ".join(_ddl(flows[0], out))).where("le < re")

    return Flow.of(out, flows[0].unit, make, keys)


def _stage(low: Lowering, node: Node, fragment: Node, inputs: Mapping[str, Flow], scope: Scope, out: Type) -> GroupStage:
    flows = list(inputs.values())
    schemas = [below.schema for below in node.inputs] + [None] * len(flows)
    payloads = {name: payload_of(flow.type, schemas[tag], f"p{tag}") for tag, (name, flow) in enumerate(inputs.items())}
    keys = tuple(Payload(key.column, key.type) for key in flows[0].keys)
    key = _innermost(flows[0].keys, scope.level)
    return GroupStage(fragment, payloads, keys, key, out, flows[0].unit, low.until)


def _tagged(flows: Sequence[Flow], frames: Sequence[Any], names: Sequence[str]) -> Any:
    """Return the rows of all inputs in one frame, each input's payloads in a column of its own."""
    parts = []
    for tag, frame in enumerate(frames):
        payloads = [f"p as p{i}" if i == tag else f"cast(null as {flow.type.ddl}) as p{i}" for i, flow in enumerate(flows)]
        parts.append(frame.selectExpr(*names, f"'{tag}' as {TAG}", "le", "re", *payloads))
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part)
    return whole


def partials(low: Lowering, node: WindowAggregate, windows: Hopping, flow: Flow, scope: Scope, record: Row) -> Flow:
    """Return an aligned grid's windows with their aggregates: states of each partition's rows in each window, then merged.

    The frame has a column for each aggregate, as those of native aggregation have.
    """
    _check_key(low, node, flow.keys, scope.level)
    label, names = low.label(node), tuple(flow.key_columns)
    reader = Reader((payload_of(flow.type, node.input.schema),), _innermost(flow.keys, scope.level))
    states = ship(PartialStage(label, windows, node.aggregates, reader, names), label)
    whole = ship(MergeStage(label, windows, tuple(agg.function for agg in node.aggregates), names), label)
    keys = [f"{key.column} {key.type.ddl}" for key in flow.keys]
    held = [*keys, "w bigint", "j bigint", "held binary"]
    columns = [f"{name} {field.ddl}" for name, field in zip(record.schema.names, record.fields, strict=True)]
    made = ["le bigint", "re bigint", *columns, *keys]

    def make() -> Any:
        rows = flow.make().selectExpr(*flow.columns, *grid.bounds(windows, low.until)).where("lo <= hi")
        parts = rows.mapInArrow(_row_function(states), ", ".join(held))
        return parts.groupBy(*names, "j").applyInArrow(_group_function(whole), ", ".join(made))

    return Flow.of(record, flow.unit, make, flow.keys)


def constructed(node: Source, flow: Flow) -> Flow:
    """Return a source whose payloads are objects made of a frame's columns."""
    assert node.payload is not None
    assert node.payload.cls is not None
    out = Pickled(type_of_class(node.payload.cls))
    reader = Reader((payload_of(flow.type, None),))
    label = f"source:{node.source}"
    return Flow.of(out, flow.unit, _shipped(label, flow.make, Construct(node.payload.cls), reader, out, _ddl(flow, out)))


def published(flow: Flow, edge: Type) -> Flow:
    """Return a flow with its payloads held as the types of the public edge."""
    reader = Reader((payload_of(flow.type, None),))
    return Flow.of(edge, flow.unit, _shipped("output", flow.make, Publish(), reader, edge, _ddl(flow, edge)))
