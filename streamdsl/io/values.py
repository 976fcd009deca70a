"""Values of a frame's columns as plain Python values, or as typed columns where nothing changes by it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamdsl.expr.table import Column, column_of, object_column
from streamdsl.temporal.payload import is_nan, plain


def number_column(values: NDArray[Any]) -> Column:
    """Return numbers or booleans of any width as `int64`, `float64` or `bool`; unsigned ones beyond int64 stay exact ints.

    >>> number_column(np.array([2**63], dtype=np.uint64)).tolist()
    [9223372036854775808]
    """
    if values.dtype.kind == "f":
        return values.astype(np.float64, copy=False)
    if values.dtype.kind == "b":
        return values
    if values.dtype == np.uint64 and values.size and int(values.max()) >= 2**63:
        return object_column(values.tolist())
    return values.astype(np.int64, copy=False)


def value_column(values: Sequence[Any]) -> Column:
    """Return Python values as a column, each without a numpy or pandas wrapper where Python has the same value.

    A missing value of any library is None; so is a NaN among text, pandas' older mark of missing text.

    >>> value_column(["a", float("nan")]).tolist(), value_column([np.float32(0.5)]).tolist()
    (['a', None], [0.5])
    """
    kinds = set(map(type, values))
    if kinds <= {str, type(None)}:
        return object_column(values)
    if any(_is_wrapped(kind) for kind in kinds):
        values = [unwrap(value) for value in values]
    if str in kinds and float in kinds:
        values = [None if is_nan(value) else value for value in values]
    return column_of(values)


def _is_wrapped(kind: type) -> bool:
    return issubclass(kind, np.generic) or kind.__module__.startswith("pandas")


def unwrap(value: Any) -> Any:
    """Return the plain Python value; a pandas time with nanoseconds stays, as Python's own cannot hold it."""
    if isinstance(value, (np.datetime64, np.timedelta64)):
        value = _pandas_time(value)
    if isinstance(value, datetime):
        return _plain_time(value, "to_pydatetime", "nanosecond")
    if isinstance(value, timedelta):
        return _plain_time(value, "to_pytimedelta", "nanoseconds")
    if type(value).__name__ == "NAType":
        return None
    return plain(value)


def _pandas_time(value: np.datetime64 | np.timedelta64) -> Any:
    import pandas as pd

    return pd.Timestamp(value) if isinstance(value, np.datetime64) else pd.Timedelta(value)


def _plain_time(value: Any, convert: str, rest: str) -> Any:
    if value != value:  # NaT
        return None
    return getattr(value, convert)() if getattr(value, rest, 1) == 0 else value
