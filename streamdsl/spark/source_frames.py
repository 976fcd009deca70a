"""Sources on Spark: DataFrames of histories or physical events, and histories in this process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, StructType

from streamdsl.errors import QueryError, SchemaError, UnsupportedOnSpark
from streamdsl.expr.schema import Schema, Shape
from streamdsl.plan.node import Source
from streamdsl.spark.codec import arrow_type, decode, encode
from streamdsl.spark.column_types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    ColumnType,
    ForeignType,
    ListType,
    PickledType,
    RecordType,
    as_nullable,
    type_of_class,
    type_of_payloads,
)
from streamdsl.spark.flow import Flow
from streamdsl.spark.frame_layout import FrameLayout
from streamdsl.spark.frame_roles import SourceFrame
from streamdsl.spark.physical_frames import fold_retractions, kind_and_id
from streamdsl.spark.shipping import dump_values
from streamdsl.spark.sql_text import aliased, integer, not_pushed_down, quote, raise_error, struct
from streamdsl.spark.time_columns import end_or_infinity, is_date, to_ticks
from streamdsl.temporal import CHRONON, CHT, INFINITY, MIN_TIME, CHTRow, Record, Unit
from streamdsl.temporal.pandas_frames import LIFETIME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SIMPLE: Final[Mapping[str, tuple[ColumnType, str]]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), (INT, "bigint")),
    **dict.fromkeys(("float", "double"), (FLOAT, "double")),
    "boolean": (BOOL, "boolean"),
    "void": (NONE, "boolean"),
}
_TEXT: Final = ("string", "char(", "varchar(")


def declared_source(node: Source) -> Flow:
    """Return the flow of a source that is not bound yet, of which only the type is known, for `explain()`."""
    declared = None if node.payload is None or node.payload.cls is None else type_of_class(node.payload.cls)
    return Flow.of(declared or ANY, node.time_unit, _unbound)


def _unbound() -> Any:
    raise UnsupportedOnSpark("the source is not bound to a frame")


def source_of_rows(spark: SparkSession, node: Source, cht: CHT[Any]) -> Flow:
    """Return the flow of a source that is bound to a history in this process."""
    payloads = [row.payload for row in cht]
    _, kind = type_of_rows(node.payload, cht)
    times = {name: pa.array([getattr(row, name) for row in cht], pa.int64()) for name in LIFETIME}
    table = pa.table({**times, "p": encode(payloads, kind)})
    return Flow.of(kind, cht.unit or node.time_unit, lambda: spark.createDataFrame(table))


def type_of_rows(declared: Schema | None, cht: CHT[Any]) -> tuple[Schema, ColumnType]:
    """Return the schema and the type of the payloads of a history."""
    payloads = [row.payload for row in cht]
    schema = declared or (Schema.of_payload(payloads[0]) if payloads else Schema.scalar())
    return schema, type_of_payloads(schema, payloads)


def collect_flow(flow: Flow) -> CHT[Any]:
    """Run a flow and collect its rows into this process."""
    return collect(flow, result_frame(flow))


def result_frame(flow: Flow) -> DataFrame:
    """Return the frame of a flow's rows without group keys."""
    return flow.make().select("le", "re", "p")


def collect(flow: Flow, frame: DataFrame) -> CHT[Any]:
    """Run the result frame of a flow and collect its rows into this process."""
    table = frame.toArrow()
    if not table.num_rows:
        return CHT((), flow.unit)
    payloads = decode(pa.concat_arrays(table.column("p").chunks).cast(arrow_type(flow.type)), flow.type)
    return CHT(map(CHTRow, table.column("le").to_pylist(), table.column("re").to_pylist(), payloads), flow.unit)


def source_of_frame(node: Source, frame: SourceFrame) -> Flow:
    """Return the flow of a source bound to a DataFrame: LEs, REs (absent: point events; null: INFINITY), payload fields.

    A frame that also has `kind`, `id` and `re_new` holds physical events: the retractions of an id are folded into its insertion.
    """
    layout = FrameLayout.of(node, frame)
    if frame.rows.isStreaming:
        raise UnsupportedOnSpark(
            f"the frame of the source {node.source!r} is a streaming DataFrame, which has no end",
            hint="batch() takes bounded DataFrames; use stream()",
        )
    read = _source_sql(node, layout)
    flow = Flow.of(read.kind, read.unit, lambda: _live_rows(layout.positional(frame.rows), node, read, layout))
    return replace(flow, points="le" in layout.roles and "re" not in layout.roles)


def events_of_frame(node: Source, frame: SourceFrame) -> Flow:
    """Return the physical events of a streaming frame: `kind`, `id` (text), `le`, `re`, `re_new`, `p`.

    What the frame does not say is no column, as each costs the way to Python for each row: rows without a kind are insertions
    without ids, those without an RE are points. Invalid rows are found where the rows are used.
    """
    layout = FrameLayout.of(node, frame)
    if "le" not in layout.roles:
        raise QueryError(
            f"the rows of the streaming frame of the source {node.source!r} have no times",
            hint="start= names the column of their LEs; start=None is for static frames",
        )
    read = _source_sql(node, layout)
    made = {name: text for name, text in read.system_columns.items() if name in layout.roles} | {"p": read.payload}
    return Flow.of(read.kind, read.unit, lambda: layout.positional(frame.rows).selectExpr(*aliased(made)))


def events_of_history(flow: Flow) -> Flow:
    """Return the rows of a flow as insertions, in those of the columns of `events_of_frame` that they need."""
    return flow.then(lambda frame: frame.select("le", "re", "p"))


@dataclass(frozen=True, slots=True)
class _SourceSql:
    """How a frame is read: the payload type, the unit, and the SQL of payloads and of times (kinds, ids)."""

    kind: ColumnType
    unit: Unit | None
    system_columns: Mapping[str, str]
    payload: str


def _source_sql(node: Source, layout: FrameLayout) -> _SourceSql:
    unit = node.time_unit or _unit(layout)
    kind, payload = _payload(node, layout)
    system_columns = _times(layout, unit)
    if layout.physical:
        roles = layout.roles
        system_columns |= kind_and_id(roles["kind"].text, f"cast({roles['id'].text} as string)")
    return _SourceSql(kind, unit, system_columns, payload)


def _unit(layout: FrameLayout) -> Unit | None:
    if not layout.times:
        return None
    return "us" if any(is_date(layout.roles[role].kind) for role in LIFETIME if role in layout.roles) else "tick"


def _times(layout: FrameLayout, unit: Unit | None) -> dict[str, str]:
    """Return the SQL of the times in ticks; without REs rows are point events, without LEs they hold at all times."""
    if unit is None or not layout.times:
        return {"le": integer(MIN_TIME), "re": integer(INFINITY)}
    times = {role: to_ticks(column.name, column.text, column.kind, unit) for role, column in layout.times.items()}
    ends = {name: end_or_infinity(text) for name, text in times.items() if name != "le"}
    beyond = raise_error("TimeOverflow", "a time leaves the range of times, int64 ticks")
    last = integer(INFINITY - CHRONON)
    point = (
        f"CASE WHEN {times['le']} < {last} THEN {times['le']} + {integer(CHRONON)} WHEN {times['le']} = {last} THEN {beyond} END"
    )
    return {"le": times["le"], "re": point, **ends}


def _live_rows(df: DataFrame, node: Source, read: _SourceSql, layout: FrameLayout) -> DataFrame:
    """Return the rows with non-empty lifetimes; a null LE, or an RE before the LE, fails the task.

    Payloads are built above the check of the times, so that Spark does not read columns that nothing needs.
    """
    system_columns = {**read.system_columns, "le": _checked_start(node, read.system_columns, layout)}
    if layout.physical:
        return fold_retractions(df.selectExpr(*aliased({**system_columns, "p": read.payload}))).where("le < re")
    checked = df.selectExpr(*aliased({**system_columns, "le": not_pushed_down(system_columns["le"])}), *df.columns)
    return checked.where("le < re").selectExpr("le", "re", f"{read.payload} as p")


def _checked_start(node: Source, system_columns: Mapping[str, str], layout: FrameLayout) -> str:
    """Return the SQL of LEs, which fails the task for an invalid lifetime; a CTI has no lifetime."""
    start, end = (layout.roles[role].name if role in layout.roles else role for role in LIFETIME)
    le, place = system_columns["le"], f"a row of the source {node.source!r} is refused: its {start}"
    nowhere = raise_error("EventError", f"{place} is null or INFINITY", "only an end may be null: it means INFINITY")
    backwards = raise_error("EventError", f"{place} is after its {end}", f"a row that lives for no time has {end} = {start}")
    others = f"{system_columns['kind']} = 'cti'" if layout.physical else "false"
    return (
        f"CASE WHEN {others} THEN {le} WHEN {le} IS NULL OR {le} = {integer(INFINITY)} THEN {nowhere} "
        f"WHEN {le} > {system_columns['re']} THEN {backwards} ELSE {le} END"
    )


def _payload(node: Source, layout: FrameLayout) -> tuple[ColumnType, str]:
    """Return the type of a frame's payloads, and the SQL that builds them; a declared field may be a time's column too."""
    schema, columns = layout.payload, layout.columns
    if layout.missing:
        raise SchemaError(
            f"the frame of the source {node.source!r} has no column for {', '.join(map(repr, layout.missing))} of {schema!r}; "
            f"its columns are: {', '.join(columns)}"
        )
    chosen = [columns[name] for name in schema.names]
    values = [_column_value(column.field.dataType, column.field.nullable, column.text) for column in chosen]
    if schema.shape is Shape.SCALAR:
        return values[0]
    if not values:
        (nothing,) = dump_values([Record()])
        assert nothing is not None
        return PickledType(), f"unhex({quote(nothing.hex().upper())})"
    record = schema if schema.shape is not Shape.OBJECT else Schema.record(schema.names)
    return RecordType(record, tuple(kind for kind, _ in values)), struct(tuple(text for _, text in values))


def _column_value(data_type: DataType, nullable: bool, text: str) -> tuple[ColumnType, str]:
    """Return the column type of a DataFrame's column, and the SQL that casts to it."""
    name = str(data_type.simpleString())
    if name.startswith(_TEXT):  # Python's strings have no collation
        return as_nullable(STR, nullable), text if name == "string" else f"cast({text} as string)"
    if name in _SIMPLE:
        kind, ddl = _SIMPLE[name]
        return as_nullable(kind, nullable or name == "void"), text if name == ddl else f"cast({text} as {ddl})"
    if isinstance(data_type, StructType):
        return _record_value(data_type, nullable, text)
    if isinstance(data_type, ArrayType):
        item, made = _column_value(data_type.elementType, data_type.containsNull, "x")
        return ListType(item, nullable), text if made == "x" else f"transform({text}, x -> {made})"
    return ForeignType(name, nullable), text


def _record_value(data_type: StructType, nullable: bool, text: str) -> tuple[ColumnType, str]:
    values = [_column_value(field.dataType, field.nullable, f"{text}.f{i}") for i, field in enumerate(data_type.fields)]
    kind = RecordType(Schema.record(tuple(field.name for field in data_type.fields)), tuple(kind for kind, _ in values), nullable)
    made = struct(tuple(value for _, value in values))
    return kind, f"if({text} IS NULL, cast(null as {kind.ddl}), {made})" if nullable else made
