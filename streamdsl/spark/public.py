"""The public form of a result: flat columns, times as timestamps, every value of a type that Spark users know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamdsl.spark import stages
from streamdsl.spark.expressions import integer, raising
from streamdsl.spark.flow import Flow
from streamdsl.spark.frames import backquoted
from streamdsl.spark.types import Items, Json, Row, Type, parts
from streamdsl.spark.values import edge_of
from streamdsl.temporal import INFINITY, Unit, is_calendar
from streamdsl.temporal.frames import LIFETIME, column_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MICROS: Final = {"s": 10**6, "ms": 10**3, "us": 1}


def public_frame(flow: Flow) -> DataFrame:
    """Return a flow's rows as `le`, `re` and a column per payload field.

    Times are timestamps in a calendar unit, else bigint; INFINITY is null. Records inside payloads are structs. Values whose type
    nothing declares are VARIANT.
    """
    kind = edge_of(flow.type)
    made = flow if kind == flow.type else stages.published(flow, kind)
    times = [f"{_time(name, flow.unit)} as {name}" for name in LIFETIME]
    return made.make().selectExpr(*times, *_columns(kind))


def _time(name: str, unit: Unit | None) -> str:
    ticks = f"nullif({name}, {integer(INFINITY)})"
    if not is_calendar(unit):
        return ticks
    if unit == "ns":
        uneven = raising("UnitError", "a time is not a whole number of microseconds, the finest that a timestamp of Spark holds")
        micros = f"if({name} % 1000L = 0L, {name} div 1000L, {uneven})"
    else:
        overflow = raising("TimeOverflow", "a time is outside the range of timestamps")
        micros = name if unit == "us" else f"coalesce(try_multiply({name}, {integer(_MICROS[unit or 'us'])}), {overflow})"
    return f"if({name} = {integer(INFINITY)}, NULL, timestamp_micros({micros}))"


def _columns(kind: Type) -> list[str]:
    if not isinstance(kind, Row):
        return [f"{_shown('p', kind)} as value"]
    names = column_names(kind.schema.names, LIFETIME)
    return [
        f"{_shown(f'p.f{i}', field)} as {backquoted(name)}"
        for i, (name, field) in enumerate(zip(names, kind.fields, strict=True))
    ]


def _shown(text: str, kind: Type) -> str:
    """Return the SQL of a value in its public form."""
    if isinstance(kind, Json):
        return f"parse_json({text})"
    if isinstance(kind, Items) and any(isinstance(part, (Row, Json)) for part in parts(kind.item)):
        return f"transform({text}, x -> {_shown('x', kind.item)})"
    if not isinstance(kind, Row):
        return text
    fields = [f"{_shown(f'{text}.f{i}', field)} as {backquoted(kind.schema.names[i])}" for i, field in enumerate(kind.fields)]
    made = f"struct({', '.join(fields)})"
    return f"if({text} IS NULL, NULL, {made})" if kind.nullable else made
