"""The columns of a polars frame."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import polars as pl

from streamdsl.expr.deferred import MATERIALIZE_BELOW, AnyColumn, DeferredColumn, Rows
from streamdsl.expr.encoding import ComputedSource, NumericSource, integer_codes
from streamdsl.expr.table import Column, object_column
from streamdsl.io.columns import check_names
from streamdsl.io.times import TimeColumn
from streamdsl.io.values import number_column, value_column


class PolarsColumns:
    """The columns of a polars frame; a lazy one is collected.

    >>> PolarsColumns(pl.DataFrame({"k": [1, None]})).values("k").tolist()
    [1, None]
    """

    memo = None

    def __init__(self, frame: Any) -> None:
        self._frame: pl.DataFrame = frame.collect() if isinstance(frame, pl.LazyFrame) else frame
        self.names = check_names(self._frame.columns)
        self.size = self._frame.height

    def values(self, name: str) -> Column:
        """Return a column as payload values; a null is None, a NaN stays."""
        return _values(self._frame.get_column(name))

    def held(self, name: str) -> AnyColumn:
        """Return a column as payload values, deferred where that saves making Python objects."""
        column = self._frame.get_column(name)
        dtype = column.dtype
        if self.size < MATERIALIZE_BELOW or (column.null_count() == 0 and (_is_fixed_integer(dtype) or dtype == pl.Boolean)):
            return self.values(name)
        if dtype.is_float() and column.null_count() == 0:
            return DeferredColumn(NumericSource(self.values(name)))
        encode = _encoder(column)
        if encode is None:
            return self.values(name)
        return DeferredColumn(ComputedSource(self.size, encode, lambda rows: _values(column[rows])))

    def times(self, name: str) -> TimeColumn:
        """Return a column as times: dates in UTC, integers, or text."""
        column = self._frame.get_column(name)
        nulls = column.is_null().to_numpy()
        if column.dtype == pl.Date:
            column = column.cast(pl.Datetime("ms"))
        if isinstance(column.dtype, pl.Datetime):
            return TimeColumn.of_integers(_filled(column.to_physical()), nulls, column.dtype.time_unit)
        if _is_fixed_integer(column.dtype):
            return TimeColumn.of_integers(_filled(column), nulls)
        if column.dtype.is_float():
            return TimeColumn.of_floats(_filled(column).astype(np.float64), nulls)
        return TimeColumn.of_values(column.to_list())


def _values(column: pl.Series) -> Column:
    dtype = column.dtype
    if column.null_count() == 0 and (_is_fixed_integer(dtype) or dtype.is_float() or dtype == pl.Boolean):
        return number_column(column.to_numpy())
    if dtype == pl.String:
        return object_column(column.to_list())
    if dtype in (pl.Datetime("ns"), pl.Duration("ns")) or (isinstance(dtype, pl.Datetime) and dtype.time_unit == "ns"):
        return value_column(_with_nanoseconds(column))
    return value_column(column.to_list())


def _encoder(column: pl.Series) -> Callable[[], Rows] | None:
    """Return a function that computes the codes of values, by their integers or by Arrow; None for other types."""
    dtype = column.dtype
    if dtype.is_temporal() or _is_fixed_integer(dtype) or dtype == pl.Boolean:
        try:
            if dtype.is_temporal():
                _values(pl.Series([column.min(), column.max()], dtype=dtype))
            integers = column.to_physical().cast(pl.Int64)
        except (ValueError, OverflowError, pl.exceptions.PolarsError):  # beyond Python's range, or beyond int64
            return None
        return None if integers.min() == -(2**63) else lambda: integer_codes(integers.fill_null(-(2**63)).to_numpy())[0]
    if find_spec("pyarrow") is None or not (dtype in (pl.String, pl.Binary, pl.Categorical, pl.Enum) or dtype.is_decimal()):
        return None
    return lambda: _arrow_codes(column)


def _arrow_codes(column: pl.Series) -> Rows:
    from streamdsl.io.arrow_held import ArrowSource

    return ArrowSource(_chunked(column.to_arrow())).codes()


def _chunked(array: Any) -> Any:
    import pyarrow as pa

    return pa.chunked_array([array])


def _is_fixed_integer(dtype: pl.DataType) -> bool:
    return dtype.is_integer() and not str(dtype).endswith("128")


def _filled(column: pl.Series) -> Any:
    return column.fill_null(0).to_numpy()


def _with_nanoseconds(column: pl.Series) -> list[Any]:
    """Return dates or durations as pandas objects, as those of Python have no nanoseconds."""
    import pandas as pd

    ticks = column.to_physical().to_list()
    if isinstance(column.dtype, pl.Datetime):
        zone = column.dtype.time_zone
        moments = pd.to_datetime(pd.Series(ticks, dtype="Int64"), unit="ns", utc=True)
        return list(moments.dt.tz_convert(zone))
    return list(pd.to_timedelta(pd.Series(ticks, dtype="Int64"), unit="ns"))
