"""Arrow's columns as values and types that every driver of a database takes."""

from __future__ import annotations

import json
from datetime import UTC
from typing import Any

import pyarrow as pa


def sql_type(kind: Any) -> str:
    """Return the type of a column in a database; lists and records are JSON text.

    >>> sql_type(pa.timestamp("us", "UTC"))
    'TIMESTAMP WITH TIME ZONE'
    """
    types = pa.types
    if types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz is None else "TIMESTAMP WITH TIME ZONE"
    names = [
        (types.is_boolean, "BOOLEAN"),
        (types.is_integer, "BIGINT"),
        (types.is_floating, "DOUBLE PRECISION"),
        (types.is_date, "DATE"),
        (types.is_decimal, "NUMERIC"),
        (types.is_binary, "BYTEA"),
    ]
    return next((name for test, name in names if test(kind)), "TEXT")


def sql_values(column: Any) -> list[Any]:
    """Return a column's values: numbers, truth values, text and bytes as they are, times and decimals as text.

    >>> sql_values(pa.chunked_array([pa.array([0], pa.timestamp("us", "UTC"))]))
    ['1970-01-01 00:00:00+00:00']
    """
    kind, values = column.type, column.to_pylist()
    if pa.types.is_timestamp(kind):
        return [None if value is None else str(value if kind.tz is None else value.astimezone(UTC)) for value in values]
    if pa.types.is_nested(kind):
        return [None if value is None else json.dumps(value, default=str) for value in values]
    if pa.types.is_date(kind) or pa.types.is_decimal(kind):
        return [None if value is None else str(value) for value in values]
    return list(values)
