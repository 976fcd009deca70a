"""Sources on Spark: DataFrames that hold histories or physical events, and rows that this process holds."""

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
from streamdsl.spark.flow import Flow
from streamdsl.spark.physical import PHYSICAL, folded, kind_and_id
from streamdsl.spark.shipping import dump_values
from streamdsl.spark.sql import integer, named, quote, raising, settled, struct
from streamdsl.spark.times import is_date, or_infinity, to_ticks
from streamdsl.spark.types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    Foreign,
    Items,
    Pickled,
    Row,
    Type,
    as_nullable,
    type_of_class,
    type_of_payloads,
)
from streamdsl.temporal import CHRONON, CHT, INFINITY, CHTRow, Record, Unit
from streamdsl.temporal.pandas_frames import LIFETIME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SIMPLE: Final[Mapping[str, tuple[Type, str]]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), (INT, "bigint")),
    **dict.fromkeys(("float", "double"), (FLOAT, "double")),
    "boolean": (BOOL, "boolean"),
    "void": (NONE, "boolean"),
}
_TEXT: Final = ("string", "char(", "varchar(")


def declared_source(node: Source) -> Flow:
    """Return what is known of a source before it is bound: for `explain()`."""
    declared = None if node.payload is None or node.payload.cls is None else type_of_class(node.payload.cls)
    return Flow.of(declared or ANY, node.time_unit, _unbound)


def _unbound() -> Any:
    raise UnsupportedOnSpark("the source is not bound to a frame")


def source_of_rows(spark: SparkSession, node: Source, cht: CHT[Any]) -> Flow:
    """Return a source bound to a history that this process holds."""
    payloads = [row.payload for row in cht]
    _, kind = type_of_rows(node.payload, cht)
    times = {name: pa.array([getattr(row, name) for row in cht], pa.int64()) for name in LIFETIME}
    table = pa.table({**times, "p": encode(payloads, kind)})
    return Flow.of(kind, cht.unit or node.time_unit, lambda: spark.createDataFrame(table))


def type_of_rows(declared: Schema | None, cht: CHT[Any]) -> tuple[Schema, Type]:
    """Return the schema and the type of the payloads of a history."""
    payloads = [row.payload for row in cht]
    schema = declared or (Schema.of_payload(payloads[0]) if payloads else Schema.scalar())
    return schema, type_of_payloads(schema, payloads)


def collected(flow: Flow) -> CHT[Any]:
    """Run a flow and return its rows to this process."""
    return told(flow, told_by(flow))


def told_by(flow: Flow) -> DataFrame:
    """Return the frame of what a flow gives."""
    return flow.make().select("le", "re", "p")


def told(flow: Flow, frame: DataFrame) -> CHT[Any]:
    """Run the frame of what a flow gives and return its rows to this process."""
    table = frame.toArrow()
    if not table.num_rows:
        return CHT((), flow.unit)
    payloads = decode(pa.concat_arrays(table.column("p").chunks).cast(arrow_type(flow.type)), flow.type)
    return CHT(map(CHTRow, table.column("le").to_pylist(), table.column("re").to_pylist(), payloads), flow.unit)


def source_of_frame(node: Source, frame: DataFrame) -> Flow:
    """Return a source bound to a DataFrame: `le`, `re` (absent: point events; null: INFINITY), and a column per payload field.

    A frame with the columns `kind`, `id` and `re_new` too holds physical events: each id's retractions change its insertion.
    """
    columns = _columns(node, frame)
    if frame.isStreaming:
        raise UnsupportedOnSpark(
            f"the frame of the source {node.source!r} is a stream, which has no end",
            hint="batch() takes frames of a history; use stream()",
        )
    physical = set(PHYSICAL) <= columns.keys()
    read = _read(node, columns, physical)
    flow = Flow.of(read.kind, read.unit, lambda: _rows(_positional(frame), node, read, physical))
    return replace(flow, points="re" not in columns)


def events_of_frame(node: Source, frame: DataFrame) -> Flow:
    """Return the physical events of a streaming frame: `kind`, `id` (text), `le`, `re`, `re_new`, `p`; without kinds insertions.

    Rows without ids have none yet. What a row is refused for is found where it is used.
    """
    columns = _columns(node, frame)
    read = _read(node, columns, set(PHYSICAL) <= columns.keys())
    none = {"kind": "'insert'", "id": "cast(null as string)", "re_new": integer(INFINITY)}
    made = {**none, **read.own, "p": read.payload}
    return Flow.of(read.kind, read.unit, lambda: _positional(frame).selectExpr(*named(made)))


@dataclass(frozen=True, slots=True)
class _Reading:
    """How a frame's rows are read: the type of the payloads, the unit, and the SQL of times (of events: kinds and ids too)."""

    kind: Type
    unit: Unit
    own: Mapping[str, str]
    payload: str


def _read(node: Source, columns: Mapping[str, _Column], physical: bool) -> _Reading:
    taken = (*LIFETIME, *(PHYSICAL if physical else ()))
    unit = node.time_unit or _unit(columns)
    kind, payload = _payload(node, {name: column for name, column in columns.items() if name not in taken})
    own = _times(columns, unit, physical)
    if physical:
        own |= kind_and_id(columns["kind"].text, f"cast({columns['id'].text} as string)")
    return _Reading(kind, unit, own, payload)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of a frame, by its place: names of columns, and of fields inside, can be ambiguous in Spark's SQL."""

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
    """Return a frame's columns by name; raises `SchemaError` where they do not say what is what."""
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
    """Return a frame with its columns named by place, `c0`, `c1`, ..., and the fields inside them `f0`, `f1`, ..."""
    kinds = [(field.dataType, _numbered(field.dataType)) for field in frame.schema.fields]
    named = frame.toDF(*(f"c{place}" for place in range(len(kinds))))
    if all(kind == numbered for kind, numbered in kinds):
        return named  # each step of a plan is analyzed, which takes time
    columns = ((col(f"c{place}"), *kind) for place, kind in enumerate(kinds))
    return named.select(*(column if kind == numbered else column.cast(numbered) for column, kind, numbered in columns))


def _numbered(kind: DataType) -> DataType:
    if isinstance(kind, StructType):
        return StructType(
            [StructField(f"f{i}", _numbered(field.dataType), field.nullable) for i, field in enumerate(kind.fields)]
        )
    return ArrayType(_numbered(kind.elementType), kind.containsNull) if isinstance(kind, ArrayType) else kind


def _unit(columns: Mapping[str, _Column]) -> Unit:
    return "us" if any(is_date(columns[name].kind) for name in LIFETIME if name in columns) else "tick"


def _times(columns: Mapping[str, _Column], unit: Unit, physical: bool) -> dict[str, str]:
    """Return the SQL of the times in ticks; without ends rows are points."""
    names = [name for name in (*LIFETIME, "re_new") if name in columns and (physical or name != "re_new")]
    times = {name: to_ticks(name, columns[name].text, columns[name].kind, unit) for name in names}
    ends = {name: or_infinity(text) for name, text in times.items() if name != "le"}
    beyond = raising("TimeOverflow", "a time leaves the range of times, int64 ticks")
    last = integer(INFINITY - CHRONON)
    point = (
        f"CASE WHEN {times['le']} < {last} THEN {times['le']} + {integer(CHRONON)} WHEN {times['le']} = {last} THEN {beyond} END"
    )
    return {"le": times["le"], "re": point, **ends}


def _rows(df: DataFrame, node: Source, read: _Reading, physical: bool) -> DataFrame:
    """Return the rows that live; a row that starts nowhere, or ends before it starts, fails the task.

    Payloads are put together above what checks the times, so that columns that nothing reads are not read.
    """
    own = {**read.own, "le": _checked(node, read.own, physical)}
    if physical:
        return folded(df.selectExpr(*named({**own, "p": read.payload}))).where("le < re")
    checked = df.selectExpr(*named({**own, "le": settled(own["le"])}), *df.columns)
    return checked.where("le < re").selectExpr("le", "re", f"{read.payload} as p")


def _checked(node: Source, own: Mapping[str, str], physical: bool) -> str:
    """Return the SQL of starts, which fails the task where a lifetime is none; a CTI has none."""
    le, place = own["le"], f"a row of the source {node.source!r} is refused: its le"
    nowhere = raising("EventError", f"{place} is null or INFINITY", "only an end may be null: it means INFINITY")
    backwards = raising("EventError", f"{place} is after its re", "a row that lives for no time has re = le")
    others = f"{own['kind']} = 'cti'" if physical else "false"
    return (
        f"CASE WHEN {others} THEN {le} WHEN {le} IS NULL OR {le} = {integer(INFINITY)} THEN {nowhere} "
        f"WHEN {le} > {own['re']} THEN {backwards} ELSE {le} END"
    )


def _payload(node: Source, columns: Mapping[str, _Column]) -> tuple[Type, str]:
    """Return the type of a frame's payloads, and the SQL that makes them."""
    schema = node.payload or Schema.record(tuple(columns))
    missing = [name for name in schema.names if name not in columns]
    if missing:
        raise SchemaError(
            f"the frame of the source {node.source!r} has no column for {', '.join(map(repr, missing))} of {schema!r}; "
            f"its columns are: {', '.join(columns)}"
        )
    chosen = [columns[name] for name in schema.names]
    values = [_value(column.field.dataType, column.field.nullable, column.text) for column in chosen]
    if schema.shape is Shape.SCALAR:
        return values[0]
    if not values:
        (nothing,) = dump_values([Record()])
        assert nothing is not None
        return Pickled(), f"unhex({quote(nothing.hex().upper())})"
    record = schema if schema.shape is not Shape.OBJECT else Schema.record(schema.names)
    return Row(record, tuple(kind for kind, _ in values)), struct(tuple(text for _, text in values))


def _value(data_type: DataType, nullable: bool, text: str) -> tuple[Type, str]:
    """Return the type of a column's values, and the SQL that holds them as that type."""
    name = str(data_type.simpleString())
    if name.startswith(_TEXT):  # whatever its collation: text of Python has none
        return as_nullable(STR, nullable), text if name == "string" else f"cast({text} as string)"
    if name in _SIMPLE:
        kind, ddl = _SIMPLE[name]
        return as_nullable(kind, nullable or name == "void"), text if name == ddl else f"cast({text} as {ddl})"
    if isinstance(data_type, StructType):
        return _record(data_type, nullable, text)
    if isinstance(data_type, ArrayType):
        item, made = _value(data_type.elementType, data_type.containsNull, "x")
        return Items(item, nullable), text if made == "x" else f"transform({text}, x -> {made})"
    return Foreign(name, nullable), text


def _record(data_type: StructType, nullable: bool, text: str) -> tuple[Type, str]:
    values = [_value(field.dataType, field.nullable, f"{text}.f{i}") for i, field in enumerate(data_type.fields)]
    kind = Row(Schema.record(tuple(field.name for field in data_type.fields)), tuple(kind for kind, _ in values), nullable)
    made = struct(tuple(value for _, value in values))
    return kind, f"if({text} IS NULL, cast(null as {kind.ddl}), {made})" if nullable else made
