"""Sources on Spark: DataFrames that hold histories or physical events, and rows that this process holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.functions import expr

from streamdsl.errors import SchemaError, UnsupportedOnSpark
from streamdsl.expr.schema import Schema, Shape
from streamdsl.plan.node import Source
from streamdsl.spark import stages
from streamdsl.spark.codec import arrow_type, decode, encode
from streamdsl.spark.expressions import integer, quote, raising, struct
from streamdsl.spark.flow import Flow
from streamdsl.spark.shipping import dump_values
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
from streamdsl.temporal import CHT, INFINITY, CHTRow, Record, Unit, is_calendar
from streamdsl.temporal.frames import LIFETIME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MICROS: Final = {"s": 10**6, "ms": 10**3, "us": 1}
_PHYSICAL: Final = ("kind", "id", "re_new")
_SIMPLE: Final[Mapping[str, tuple[Type, str]]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), (INT, "bigint")),
    **dict.fromkeys(("float", "double"), (FLOAT, "double")),
    "boolean": (BOOL, "boolean"),
    "void": (NONE, "boolean"),
    "string": (STR, "string"),
}


def declared_source(node: Source) -> Flow:
    """Return what is known of a source before it is bound: for `explain()`."""
    declared = None if node.payload is None or node.payload.cls is None else type_of_class(node.payload.cls)
    known = Pickled(declared) if node.payload is not None and node.payload.shape is Shape.OBJECT else declared or ANY
    return Flow.of(known, node.time_unit, _unbound)


def _unbound() -> Any:
    raise UnsupportedOnSpark("the source is not bound to a frame")


def source_of_rows(spark: SparkSession, node: Source, cht: CHT[Any]) -> Flow:
    """Return a source bound to a history that this process holds."""
    payloads = [row.payload for row in cht]
    schema = node.payload or (Schema.of_payload(payloads[0]) if payloads else Schema.scalar())
    kind = type_of_payloads(schema, payloads)
    times = {name: pa.array([getattr(row, name) for row in cht], pa.int64()) for name in LIFETIME}
    table = pa.table({**times, "p": encode(payloads, kind)})
    return Flow.of(kind, cht.unit or node.time_unit, lambda: spark.createDataFrame(table))


def collected(flow: Flow) -> CHT[Any]:
    """Run a flow and return its rows to this process."""
    table = flow.make().select("le", "re", "p").toArrow()
    if not table.num_rows:
        return CHT((), flow.unit)
    payloads = decode(pa.concat_arrays(table.column("p").chunks).cast(arrow_type(flow.type)), flow.type)
    return CHT(map(CHTRow, table.column("le").to_pylist(), table.column("re").to_pylist(), payloads), flow.unit)


def source_of_frame(node: Source, frame: DataFrame) -> Flow:
    """Return a source bound to a DataFrame: `le`, `re` (absent: point events; null: INFINITY), and a column per payload field.

    A frame with the columns `kind`, `id` and `re_new` too holds physical events: each id's retractions change its insertion.
    """
    columns = {field.name: field for field in frame.schema.fields}
    if "le" not in columns:
        raise SchemaError(
            f"the frame of the source {node.source!r} has no column 'le'; its columns are: {', '.join(columns)}",
            hint="rename the columns of the start and end times to le and re; without re rows are point events",
        )
    physical = set(_PHYSICAL) <= columns.keys()
    taken = (*LIFETIME, *(_PHYSICAL if physical else ()))
    unit = node.time_unit or _unit(columns)
    kind, payload = _payload(node, {name: field for name, field in columns.items() if name not in taken})
    times = {name: _ticks(columns[name], unit) for name in taken if name in columns and name.startswith(("le", "re"))}
    read = _physical if physical else _history
    flow = Flow.of(kind, unit, lambda: _checked(read(frame, times, payload), node))
    return flow if node.payload is None or node.payload.shape is not Shape.OBJECT else stages.constructed(node, flow)


def _unit(columns: Mapping[str, Any]) -> Unit:
    dates = any(_name_of(columns[name]).startswith(("timestamp", "date")) for name in LIFETIME if name in columns)
    return "us" if dates else "tick"


def _name_of(field: Any) -> str:
    return str(field.dataType.simpleString())


def _history(frame: DataFrame, times: Mapping[str, str], payload: str) -> DataFrame:
    if "re" not in times:
        return frame.selectExpr(f"{times['le']} as le", f"{payload} as p").selectExpr("le", "le + 1L as re", "p")
    return frame.selectExpr(f"{times['le']} as le", f"{_or_infinity(times['re'])} as re", f"{payload} as p")


def _physical(frame: DataFrame, times: Mapping[str, str], payload: str) -> DataFrame:
    """Fold physical events: an id's end is that of its insertion, moved by what each of its retractions moves it."""
    moved = f"cast({_or_infinity(times['re_new'])} as decimal(20,0)) - cast({_or_infinity(times['re'])} as decimal(20,0))"
    kinds = "`kind` as kind", "`id` as id"
    rows = frame.where("`kind` <> 'cti'").selectExpr(
        *kinds, f"{times['le']} as le", f"{_or_infinity(times['re'])} as re", f"{moved} as moved", f"{payload} as p"
    )
    inserted = "FILTER (WHERE kind = 'insert')"
    folded = rows.groupBy("id").agg(
        expr(f"count(1) {inserted} as n"),
        expr(f"first(le) {inserted} as le"),
        expr(f"first(re) {inserted} as re"),
        expr("coalesce(sum(moved) FILTER (WHERE kind = 'retract'), 0) as moved"),
        expr(f"first(p) {inserted} as p"),
    )
    once = raising("EventError", "an id has no insertion, or several, in a frame of physical events")
    end = f"CASE WHEN n = 1 THEN cast(cast(re as decimal(20,0)) + moved as bigint) ELSE {once} END"
    return folded.selectExpr("le", f"{end} as re", "p")


def _or_infinity(text: str) -> str:
    return f"coalesce({text}, {integer(INFINITY)})"


def _checked(df: DataFrame, node: Source) -> DataFrame:
    """Return the rows that live; a row that starts nowhere, or ends before it starts, fails the task."""
    place = f"a row of the source {node.source!r} is refused: its le"
    nowhere = raising("EventError", f"{place} is null or INFINITY")
    backwards = raising("EventError", f"{place} is after its re")
    lives = f"CASE WHEN le IS NULL OR le = {integer(INFINITY)} THEN {nowhere} WHEN le > re THEN {backwards} ELSE le < re END"
    return df.where(lives)


def _ticks(field: Any, unit: Unit) -> str:
    """Return the SQL of a column's times in ticks."""
    name, kind = backquoted(field.name), _name_of(field)
    if kind in ("tinyint", "smallint", "int", "bigint"):
        return f"cast({name} as bigint)"
    if kind == "void":
        return "cast(null as bigint)"
    if not is_calendar(unit):
        raise SchemaError(
            f"the column {field.name!r} holds {kind}, but the stream counts plain ticks",
            hint='give the source a calendar unit, for example unit="us"',
        )
    micros = {
        "timestamp": f"unix_micros({name})",
        "timestamp_ntz": f"timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01 00:00:00', {name})",
        "date": f"unix_date({name}) * 86400000000L",
    }.get(kind)
    if micros is None:
        raise SchemaError(f"the column {field.name!r} holds {kind}, which is no time", hint="cast it to a timestamp or a bigint")
    return _scaled(micros, unit)


def _scaled(micros: str, unit: Unit) -> str:
    if unit == "ns":
        overflow = raising("TimeOverflow", "a date is outside the range of int64 ns")
        return f"if({micros} IS NULL, NULL, coalesce(try_multiply({micros}, 1000L), {overflow}))"
    by = integer(_MICROS[unit])
    uneven = raising("UnitError", f"a date is not a whole number of {unit}")
    return f"CASE WHEN {micros} % {by} = 0L THEN {micros} div {by} WHEN {micros} IS NOT NULL THEN {uneven} END"


def backquoted(name: str) -> str:
    """Return a column's name as SQL.

    >>> backquoted("a`b")
    '`a``b`'
    """
    return f"`{name.replace('`', '``')}`"


def _payload(node: Source, columns: Mapping[str, Any]) -> tuple[Type, str]:
    """Return the type of a frame's payloads, and the SQL that makes them."""
    schema = node.payload or Schema.record(tuple(columns))
    missing = [name for name in schema.names if name not in columns]
    if missing:
        raise SchemaError(
            f"the frame of the source {node.source!r} has no column for {', '.join(map(repr, missing))} of {schema!r}; "
            f"its columns are: {', '.join(columns)}"
        )
    values = [_value(columns[name].dataType, columns[name].nullable, backquoted(name)) for name in schema.names]
    if schema.shape is Shape.SCALAR:
        return values[0]
    if not values:
        (nothing,) = dump_values([Record()])
        assert nothing is not None
        return Pickled(), f"unhex({quote(nothing.hex().upper())})"
    record = schema if schema.shape is not Shape.OBJECT else Schema.record(schema.names)
    return Row(record, tuple(kind for kind, _ in values)), struct(tuple(text for _, text in values))


def _value(data_type: Any, nullable: bool, text: str) -> tuple[Type, str]:
    """Return the type of a column's values, and the SQL that holds them as that type."""
    name = str(data_type.simpleString())
    if name in _SIMPLE:
        kind, ddl = _SIMPLE[name]
        return as_nullable(kind, nullable or name == "void"), text if name == ddl else f"cast({text} as {ddl})"
    if hasattr(data_type, "fields"):
        return _record(data_type, nullable, text)
    if hasattr(data_type, "elementType"):
        item, made = _value(data_type.elementType, data_type.containsNull, "x")
        return Items(item, nullable), text if made == "x" else f"transform({text}, x -> {made})"
    return Foreign(name, nullable), text


def _record(data_type: Any, nullable: bool, text: str) -> tuple[Type, str]:
    values = [_value(field.dataType, field.nullable, f"{text}.{backquoted(field.name)}") for field in data_type.fields]
    kind = Row(Schema.record(tuple(field.name for field in data_type.fields)), tuple(kind for kind, _ in values), nullable)
    made = struct(tuple(value for _, value in values))
    return kind, f"if({text} IS NULL, cast(null as {kind.ddl}), {made})" if nullable else made
