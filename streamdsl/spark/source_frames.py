"""Sources on Spark: DataFrames of histories or physical events, and histories in this process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import col
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

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
from streamdsl.spark.physical_frames import PHYSICAL, fold_retractions, kind_and_id
from streamdsl.spark.shipping import dump_values
from streamdsl.spark.sql_text import aliased, integer, not_pushed_down, quote, raise_error, struct
from streamdsl.spark.time_columns import end_or_infinity, is_date, to_ticks
from streamdsl.temporal import CHRONON, CHT, INFINITY, CHTRow, Record, Unit
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


def source_of_frame(node: Source, frame: DataFrame) -> Flow:
    """Return the flow of a source bound to a DataFrame: `le`, `re` (absent: point events; null: INFINITY), payload fields.

    A frame that also has `kind`, `id` and `re_new` holds physical events: the retractions of an id are folded into its insertion.
    """
    columns = _columns(node, frame)
    if frame.isStreaming:
        raise UnsupportedOnSpark(
            f"the frame of the source {node.source!r} is a streaming DataFrame, which has no end",
            hint="batch() takes bounded DataFrames; use stream()",
        )
    physical = set(PHYSICAL) <= columns.keys()
    read = _source_sql(node, columns, physical)
    flow = Flow.of(read.kind, read.unit, lambda: _live_rows(_positional(frame), node, read, physical))
    return replace(flow, points="re" not in columns)


def events_of_frame(node: Source, frame: DataFrame) -> Flow:
    """Return the physical events of a streaming frame: `kind`, `id` (text), `le`, `re`, `re_new`, `p`.

    Without a column `kind` all are insertions. Rows without ids have null ids. Invalid rows are found where the rows are used.
    """
    columns = _columns(node, frame)
    read = _source_sql(node, columns, set(PHYSICAL) <= columns.keys())
    none = {"kind": "'insert'", "id": "cast(null as string)", "re_new": integer(INFINITY)}
    made = {**none, **read.system_columns, "p": read.payload}
    return Flow.of(read.kind, read.unit, lambda: _positional(frame).selectExpr(*aliased(made)))


@dataclass(frozen=True, slots=True)
class _SourceSql:
    """How a frame is read: the payload type, the unit, and the SQL of payloads and of times (kinds, ids)."""

    kind: ColumnType
    unit: Unit
    system_columns: Mapping[str, str]
    payload: str


def _source_sql(node: Source, columns: Mapping[str, _Column], physical: bool) -> _SourceSql:
    taken = (*LIFETIME, *(PHYSICAL if physical else ()))
    unit = node.time_unit or _unit(columns)
    kind, payload = _payload(node, {name: column for name, column in columns.items() if name not in taken})
    system_columns = _times(columns, unit, physical)
    if physical:
        system_columns |= kind_and_id(columns["kind"].text, f"cast({columns['id'].text} as string)")
    return _SourceSql(kind, unit, system_columns, payload)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of a frame, referred to by position: names of columns, and of nested fields, can be ambiguous in Spark's SQL."""

    place: int
    field: StructField

    @property
    def text(self) -> str:
        """The column as SQL, once the frame is positional."""
        return f"c{self.place}"

    @property
    def kind(self) -> str:
        """Spark's name of the column's type."""
        return str(self.field.dataType.simpleString())


def _columns(node: Source, frame: DataFrame) -> dict[str, _Column]:
    """Return a frame's columns by name; raises `SchemaError` for duplicate or missing ones."""
    if not isinstance(frame, DataFrame):
        raise QueryError(
            f"the input of the source {node.source!r} is no DataFrame of Spark but a {type(frame).__name__}",
            hint="make one with spark.createDataFrame(...), or run the query with run(...)",
        )
    columns: dict[str, _Column] = {}
    for place, field in enumerate(frame.schema.fields):
        if field.name in columns:
            raise SchemaError(f"the frame of the source {node.source!r} has two columns named {field.name!r}")
        columns[field.name] = _Column(place, field)
    for name in LIFETIME:
        other = next((column for column in columns if column.lower() == name), None)
        if name not in columns and (name == "le" or other is not None):
            has = f"no column {name!r}" + (f", but {other!r}" if other else "")
            raise SchemaError(
                f"the frame of the source {node.source!r} has {has}; its columns are: {', '.join(columns)}",
                hint="rename the columns of the start and end times to le and re; without re rows are point events",
            )
    return columns


def _positional(frame: DataFrame) -> DataFrame:
    """Return a frame with its columns named by position, `c0`, `c1`, ..., and nested fields `f0`, `f1`, ..."""
    kinds = [(field.dataType, _with_numbered_fields(field.dataType)) for field in frame.schema.fields]
    aliased = frame.toDF(*(f"c{place}" for place in range(len(kinds))))
    if all(kind == numbered for kind, numbered in kinds):
        return aliased  # Spark analyzes each step of a plan, which takes time
    columns = ((col(f"c{place}"), *kind) for place, kind in enumerate(kinds))
    return aliased.select(*(column if kind == numbered else column.cast(numbered) for column, kind, numbered in columns))


def _with_numbered_fields(kind: DataType) -> DataType:
    if isinstance(kind, StructType):
        return StructType(
            [StructField(f"f{i}", _with_numbered_fields(field.dataType), field.nullable) for i, field in enumerate(kind.fields)]
        )
    return ArrayType(_with_numbered_fields(kind.elementType), kind.containsNull) if isinstance(kind, ArrayType) else kind


def _unit(columns: Mapping[str, _Column]) -> Unit:
    return "us" if any(is_date(columns[name].kind) for name in LIFETIME if name in columns) else "tick"


def _times(columns: Mapping[str, _Column], unit: Unit, physical: bool) -> dict[str, str]:
    """Return the SQL of the times in ticks; without `re` rows are point events."""
    names = [name for name in (*LIFETIME, "re_new") if name in columns and (physical or name != "re_new")]
    times = {name: to_ticks(name, columns[name].text, columns[name].kind, unit) for name in names}
    ends = {name: end_or_infinity(text) for name, text in times.items() if name != "le"}
    beyond = raise_error("TimeOverflow", "a time leaves the range of times, int64 ticks")
    last = integer(INFINITY - CHRONON)
    point = (
        f"CASE WHEN {times['le']} < {last} THEN {times['le']} + {integer(CHRONON)} WHEN {times['le']} = {last} THEN {beyond} END"
    )
    return {"le": times["le"], "re": point, **ends}


def _live_rows(df: DataFrame, node: Source, read: _SourceSql, physical: bool) -> DataFrame:
    """Return the rows with non-empty lifetimes; a null LE, or an RE before the LE, fails the task.

    Payloads are built above the check of the times, so that Spark does not read columns that nothing needs.
    """
    system_columns = {**read.system_columns, "le": _checked_start(node, read.system_columns, physical)}
    if physical:
        return fold_retractions(df.selectExpr(*aliased({**system_columns, "p": read.payload}))).where("le < re")
    checked = df.selectExpr(*aliased({**system_columns, "le": not_pushed_down(system_columns["le"])}), *df.columns)
    return checked.where("le < re").selectExpr("le", "re", f"{read.payload} as p")


def _checked_start(node: Source, system_columns: Mapping[str, str], physical: bool) -> str:
    """Return the SQL of LEs, which fails the task for an invalid lifetime; a CTI has no lifetime."""
    le, place = system_columns["le"], f"a row of the source {node.source!r} is refused: its le"
    nowhere = raise_error("EventError", f"{place} is null or INFINITY", "only an end may be null: it means INFINITY")
    backwards = raise_error("EventError", f"{place} is after its re", "a row that lives for no time has re = le")
    others = f"{system_columns['kind']} = 'cti'" if physical else "false"
    return (
        f"CASE WHEN {others} THEN {le} WHEN {le} IS NULL OR {le} = {integer(INFINITY)} THEN {nowhere} "
        f"WHEN {le} > {system_columns['re']} THEN {backwards} ELSE {le} END"
    )


def _payload(node: Source, columns: Mapping[str, _Column]) -> tuple[ColumnType, str]:
    """Return the type of a frame's payloads, and the SQL that builds them."""
    schema = node.payload or Schema.record(tuple(columns))
    missing = [name for name in schema.names if name not in columns]
    if missing:
        raise SchemaError(
            f"the frame of the source {node.source!r} has no column for {', '.join(map(repr, missing))} of {schema!r}; "
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
