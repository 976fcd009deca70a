"""Conversion between columns of dates or timestamps and ticks, independent of the session's time zone."""

from __future__ import annotations

from typing import Final

from streamdsl.errors import SchemaError
from streamdsl.spark.sql_text import integer, raise_error
from streamdsl.temporal import INFINITY, Unit, is_calendar

_MICROS: Final = {"s": 10**6, "ms": 10**3, "us": 1}
_WHOLE: Final = ("tinyint", "smallint", "int", "bigint")


def is_date(kind: str) -> bool:
    """Say whether a column of Spark's type `kind` holds dates or timestamps."""
    return kind.startswith(("timestamp", "date"))


def to_ticks(column: str, text: str, kind: str, unit: Unit) -> str:
    """Return the SQL of the times in a column of Spark's type `kind`, in ticks; `text` is its SQL.

    >>> to_ticks("le", "c0", "int", "tick")
    'cast(c0 as bigint)'
    """
    if kind in (*_WHOLE, "void"):
        return f"cast({text} as bigint)"
    if not is_calendar(unit):
        raise SchemaError(
            f"the column {column!r} holds {kind}, but the stream counts plain ticks",
            hint='give the source a calendar unit, for example unit="us"',
        )
    if kind not in ("date", "timestamp", "timestamp_ntz"):
        raise SchemaError(f"the column {column!r} holds {kind}, which is no time", hint="cast it to a timestamp or a bigint")
    return _scaled(micros_in_utc(text, kind), unit)


def micros_in_utc(text: str, kind: str) -> str:
    """Return the SQL of a date or timestamp as microseconds; without a zone it is in UTC, whatever the session's zone.

    >>> micros_in_utc("t", "timestamp")
    'unix_micros(t)'
    """
    return {"timestamp": f"unix_micros({text})", "timestamp_ntz": _local_micros(text), "date": _midnight(text)}[kind]


def _midnight(text: str) -> str:
    return f"(unix_date({text}) * 86400000000L)"


def _local_micros(text: str) -> str:
    """Return the SQL of a zoneless timestamp as microseconds in UTC; `timestampdiff` would use the session's time zone."""
    seconds = f"cast(extract(SECOND FROM {text}) * 1000000 as bigint)"
    return f"({_midnight(f'cast({text} as date)')} + hour({text}) * 3600000000L + minute({text}) * 60000000L + {seconds})"


def _scaled(micros: str, unit: Unit) -> str:
    if unit == "ns":
        overflow = raise_error("TimeOverflow", "a date is outside the range of int64 ns")
        return f"if({micros} IS NULL, NULL, coalesce(try_multiply({micros}, 1000L), {overflow}))"
    if unit == "us":
        return micros
    by = integer(_MICROS[unit])
    uneven = raise_error("UnitError", f"a date is not a whole number of {unit}")
    return f"CASE WHEN {micros} % {by} = 0L THEN {micros} div {by} WHEN {micros} IS NOT NULL THEN {uneven} END"


def end_or_infinity(text: str) -> str:
    """Return the SQL of an RE, where null is INFINITY."""
    return f"coalesce({text}, {integer(INFINITY)})"


def from_ticks(text: str, unit: Unit | None) -> str:
    """Return the SQL of ticks in their public form: a timestamp in a calendar unit, else a bigint; INFINITY is null.

    >>> from_ticks("le", None)
    'nullif(le, 9223372036854775807L)'
    """
    infinity = integer(INFINITY)
    if not is_calendar(unit):
        return f"nullif({text}, {infinity})"
    return f"if({text} = {infinity}, NULL, timestamp_micros({_micros(text, unit)}))"


def _micros(text: str, unit: Unit | None) -> str:
    if unit == "ns":
        uneven = raise_error(
            "UnitError", "a time is not a whole number of microseconds, the finest that a timestamp of Spark holds"
        )
        return f"if({text} % 1000L = 0L, {text} div 1000L, {uneven})"
    overflow = raise_error("TimeOverflow", "a time is outside the range of timestamps")
    return text if unit == "us" else f"coalesce(try_multiply({text}, {integer(_MICROS[unit or 'us'])}), {overflow})"
