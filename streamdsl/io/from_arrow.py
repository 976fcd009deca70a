"""Conversion of Arrow columns to payload values or to times."""

from __future__ import annotations

from datetime import date, datetime
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa

from streamdsl.expr.arrow_buffers import are_null, as_numpy, text_values
from streamdsl.expr.table import Column, object_column
from streamdsl.io.times import TimeColumn
from streamdsl.io.values import number_column, value_column


def arrow_values(column: Any) -> Column:
    """Return a chunked array as payload values.

    >>> arrow_values(pa.chunked_array([["a", None]])).tolist()
    ['a', None]
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return arrow_values(column.cast(kind.value_type))
    if column.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        return number_column(as_numpy(column))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return text_values(column)
    found = _days_or_moments(column, kind) if pa.types.is_date32(kind) or _is_moment(kind) else None
    return value_column(column.to_pylist()) if found is None else found


def _is_moment(kind: Any) -> bool:
    return pa.types.is_timestamp(kind) and kind.unit != "ns" and kind.tz in (None, "UTC")


def _days_or_moments(column: Any, kind: Any) -> Column | None:
    """Return dates, or naive or UTC moments, by Arrow's fast conversion; None if Python cannot represent one of them."""
    is_date = pa.types.is_date32(kind)
    try:
        found: Column = (column if is_date else column.cast(pa.timestamp("us"))).to_numpy().astype(object)
    except pa.ArrowInvalid:
        return None
    listed = found.tolist()
    if not set(map(type, listed)) <= {date if is_date else datetime, NoneType}:
        return None
    zone = None if is_date or kind.tz is None else pa.lib.string_to_tzinfo(kind.tz)
    return found if zone is None else object_column([moment and moment.replace(tzinfo=zone) for moment in listed])


def arrow_times(column: Any) -> TimeColumn:
    """Return a chunked array as times."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return arrow_times(column.cast(kind.value_type))
    if pa.types.is_date(kind):
        return arrow_times(column.cast(pa.timestamp("s" if pa.types.is_date32(kind) else "ms")))
    if pa.types.is_timestamp(kind):
        return TimeColumn.of_integers(as_numpy(column), are_null(column), kind.unit)
    if pa.types.is_integer(kind):
        return TimeColumn.of_integers(as_numpy(column), are_null(column))
    if pa.types.is_floating(kind):
        return TimeColumn.of_floats(as_numpy(column).astype(np.float64), are_null(column))
    return TimeColumn.of_values(column.to_pylist())
