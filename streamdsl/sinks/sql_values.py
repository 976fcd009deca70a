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
_LONGEST: Final = 38
"""The number of digits that a decimal has at most in DuckDB."""


def sql_type(kind: Any, exact: bool = True, sized: bool = False) -> str:
    """Return the SQL type of a column; lists and records are JSON text, and times in nanoseconds are text.

    Decimals are text too in a database that is not `exact`, which is SQLite, and have their size where it is `sized`, in DuckDB.

    >>> sql_type(pa.timestamp("us", "UTC")), sql_type(pa.decimal128(20, 0), exact=False)
    ('TIMESTAMP WITH TIME ZONE', 'TEXT')
    """
    if pa.types.is_timestamp(kind) and kind.unit != "ns":
        return "TIMESTAMP" if kind.tz is None else "TIMESTAMP WITH TIME ZONE"
    if pa.types.is_decimal(kind) and not exact:
        return "TEXT"
    if pa.types.is_decimal(kind) and sized:
        return f"NUMERIC({kind.precision}, {kind.scale})" if kind.precision <= _LONGEST else "TEXT"
    return next((name for test, name in _TYPES if test(kind)), "TEXT")


def sql_values(column: Any, exact: bool = True) -> list[Any]:
    """Return a column's values: numbers, booleans, text and bytes unchanged, times and decimals as text.

    Durations are counts of their unit. SQLite, which is not `exact`, has no NaN: it gets the text `NaN`, as NULL means None.

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
        return [None if value is None else str(value if kind.tz is None else value.astimezone(UTC)) for value in values]
    if pa.types.is_nested(kind):
        return [None if value is None else json.dumps(_json(value), ensure_ascii=False) for value in values]
    if pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_decimal(kind):
        return [None if value is None else str(value) for value in values]
    if pa.types.is_floating(kind) and not exact:
        return ["NaN" if value is not None and math.isnan(value) else value for value in values]
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
