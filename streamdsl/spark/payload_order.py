"""The order of payloads as Spark SQL, in which rows that start together are: field by field, dates by their `repr`."""

from __future__ import annotations

from typing import Final

from streamdsl.spark.column_types import ColumnType, ForeignType, RecordType, types_inside
from streamdsl.spark.sql_text import floor_div, struct
from streamdsl.spark.time_columns import micros_in_utc

_DAY: Final = 86_400_000_000


def in_order(text: str, kind: ColumnType) -> str:
    """Return the SQL of a value that Spark orders as `payload_order` orders payloads of an ordered type.

    >>> in_order("p", ForeignType("date"))
    "if(p IS NULL, NULL, concat_ws(', ', string(year(p)), string(month(p)), string(day(p))))"
    """
    if not any(_is_date(part) for part in types_inside(kind)):
        return text
    if isinstance(kind, RecordType):
        made = struct(tuple(in_order(f"{text}.f{i}", field) for i, field in enumerate(kind.fields)))
    else:
        made = f"concat_ws(', ', {', '.join(_shown(text, kind.ddl))})"
    return f"if({text} IS NULL, NULL, {made})" if kind.nullable else made


def _is_date(kind: ColumnType) -> bool:
    return isinstance(kind, ForeignType) and kind.is_date


def _shown(text: str, ddl: str) -> list[str]:
    """Return the SQL of the parts that Python shows; of a datetime no seconds or microseconds that are 0."""
    if ddl == "date":
        return [f"string({part}({text}))" for part in ("year", "month", "day")]
    micros = micros_in_utc(text, ddl)
    of_day = f"pmod({micros}, {_DAY}L)"
    clock = [f"string({of_day} div 3600000000L)", f"string({of_day} div 60000000L % 60L)"]
    clock.append(f"if({of_day} % 60000000L > 0L, string({of_day} div 1000000L % 60L), NULL)")
    clock.append(f"if({of_day} % 1000000L > 0L, string({of_day} % 1000000L), NULL)")
    day = f"date_from_unix_date(cast({floor_div(micros, _DAY)} as int))"
    return [*_shown(day, "date"), *clock, *(["'tzinfo'"] if ddl == "timestamp" else [])]
