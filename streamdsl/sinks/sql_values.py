"""Conversion of Arrow columns to values and types that every database driver accepts."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from streamdsl.errors import SinkError

_TYPES: Final[tuple[tuple[Callable[[Any], bool], str], ...]] = (
    (pa.types.is_boolean, "BOOLEAN"),
    (pa.types.is_integer, "BIGINT"),
    (pa.types.is_duration, "BIGINT"),
    (pa.types.is_floating, "DOUBLE PRECISION"),
    (pa.types.is_date, "DATE"),
    (pa.types.is_time, "TIME"),
    (pa.types.is_decimal, "NUMERIC"),
    (pa.types.is_binary, "BYTEA"),
)
_OF_MYSQL: Final = {"BYTEA": "LONGBLOB", "TEXT": "LONGTEXT", "TIME": "TIME(6)"}
_DIGITS: Final = {"sqlite": (0, 0), "duckdb": (38, 38), "mysql": (65, 30)}
"""The number of digits that a decimal has at most, and of those behind the point, where it must be said."""


def sql_type(kind: Any, database: str = "postgresql") -> str:
    """Return the SQL type of a column; lists and records are JSON text, and times in nanoseconds are text.

    Decimals are text too in SQLite, and have their size in DuckDB and MySQL. MySQL's dates with a time have no zone.

    >>> sql_type(pa.timestamp("us", "UTC")), sql_type(pa.decimal128(20, 0), "sqlite"), sql_type(pa.string(), "mysql")
    ('TIMESTAMP WITH TIME ZONE', 'TEXT', 'LONGTEXT')
    """
    if pa.types.is_timestamp(kind) and kind.unit != "ns":
        return "DATETIME(6)" if database == "mysql" else "TIMESTAMP" if kind.tz is None else "TIMESTAMP WITH TIME ZONE"
    name = next((name for test, name in _TYPES if test(kind)), "TEXT")
    if name == "NUMERIC" and database in _DIGITS:
        longest, behind = _DIGITS[database]
        name = f"NUMERIC({kind.precision}, {kind.scale})" if kind.precision <= longest and kind.scale <= behind else "TEXT"
    return _OF_MYSQL.get(name, name) if database == "mysql" else name


def sql_values(column: Any, database: str = "postgresql") -> list[Any]:
    """Return a column's values: numbers, booleans, text and bytes unchanged, times and decimals as text.

    Durations are counts of their unit. SQLite has no NaN: it gets the text `NaN`, as NULL means None. Raises `SinkError` for NaN
    and infinite numbers in MySQL, which has neither.

    >>> sql_values(pa.chunked_array([pa.array([0], pa.timestamp("us", "UTC"))]))
    ['1970-01-01 00:00:00+00:00']
    """
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        text = [None if value is None else str(value) for value in column.cast(pa.timestamp("ns")).cast(pa.string()).to_pylist()]
        return [None if value is None else value + ("+00:00" if kind.tz else "") for value in text]
    if pa.types.is_duration(kind):
        return list(column.cast(pa.int64()).to_pylist())
    values = column.to_pylist()
    if pa.types.is_timestamp(kind):
        if kind.tz is not None:
            values = [None if value is None else value.astimezone(UTC) for value in values]
        if database == "mysql":
            values = [None if value is None else value.replace(tzinfo=None) for value in values]
        return [None if value is None else str(value) for value in values]
    if pa.types.is_nested(kind):
        return [None if value is None else json.dumps(_json(value), ensure_ascii=False) for value in values]
    if pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_decimal(kind):
        return [None if value is None else str(value) for value in values]
    if pa.types.is_floating(kind) and database == "sqlite":
        return ["NaN" if value is not None and math.isnan(value) else value for value in values]
    if pa.types.is_floating(kind) and database == "mysql" and not pc.all(pc.is_finite(column), min_count=0).as_py():
        raise SinkError("MySQL has no NaN and no infinite numbers, and such come", hint="select others in place of them, or None")
    return list(values)


def _json(value: Any) -> Any:
    """Return a nested value as JSON: values without a JSON form are text, bytes are base 64."""
    if isinstance(value, dict):
        return {name: _json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return str(value.astimezone(UTC))
    return str(value) if isinstance(value, (date, time, datetime, Decimal)) else value
