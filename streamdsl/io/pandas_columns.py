"""The columns of a pandas frame."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
import pandas as pd

from streamdsl.errors import SchemaError
from streamdsl.expr.deferred import MATERIALIZE_BELOW, AnyColumn, DeferredColumn
from streamdsl.expr.encoding import ComputedSource, NumericSource, integer_codes
from streamdsl.expr.table import Column, object_column
from streamdsl.io.columns import check_names
from streamdsl.io.times import TimeColumn
from streamdsl.io.values import number_column, value_column
from streamdsl.temporal.pandas_frames import MEMO

_COPY_ON_WRITE: Final = int(pd.__version__.split(".")[0]) >= 3


class PandasColumns:
    """The columns of a pandas frame, without its index; a copy, so later writes to the frame have no effect.

    >>> PandasColumns(pd.DataFrame({"k": pd.array([1, None], dtype="Int64")})).values("k").tolist()
    [1, None]
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self.names = check_names(list(frame.columns))
        self.size = len(frame)
        self.memo: Mapping[str, Any] | None = frame.attrs.get(MEMO)
        # Deferred columns read the frame later: from pandas 3 on, copy-on-write keeps this copy unchanged.
        self._frame = frame.copy(deep=not _COPY_ON_WRITE)

    def values(self, name: str) -> Column:
        """Return a column as payload values; missing text, dates and nullable numbers are None, a float's NaN stays."""
        column: Any = self._frame[name]
        dtype = column.dtype
        if isinstance(dtype, pd.ArrowDtype):
            from streamdsl.io.from_arrow import arrow_values

            return arrow_values(_arrow_array(column))
        if isinstance(dtype, pd.CategoricalDtype):
            return _categories(column)
        if dtype.kind in "iufb" and not (isinstance(dtype, pd.api.extensions.ExtensionDtype) and column.isna().any()):
            return number_column(np.array(column, dtype=getattr(dtype, "numpy_dtype", None)))
        if dtype.kind in "Mm":
            return _python_times(column, name)
        if dtype == np.dtype(object):
            return value_column(column.to_numpy().tolist())
        if isinstance(dtype, pd.StringDtype):
            texts: Column = column.to_numpy(dtype=object, na_value=None)
            return texts
        return value_column(column.to_numpy(dtype=object, na_value=None).tolist())

    def held(self, name: str) -> AnyColumn:
        """Return a column as payload values, deferred where that saves making Python objects."""
        column: Any = self._frame[name]
        dtype = column.dtype
        if self.size < MATERIALIZE_BELOW:
            return self.values(name)
        if dtype.kind in "fb" and isinstance(dtype, np.dtype):
            return DeferredColumn(NumericSource(self.values(name)))
        if dtype.kind in "Mm" and not isinstance(dtype, pd.ArrowDtype):
            return _held_times(column, name)
        if _is_alike_in_arrow(column) and find_spec("pyarrow") is not None:
            from streamdsl.io.arrow_held import held_values

            with suppress(ValueError):  # a lone surrogate
                return held_values(_arrow_array(column))
        return self.values(name)

    def times(self, name: str) -> TimeColumn:
        """Return a column as times: dates in UTC, integers (as floats where there are nulls), or text."""
        column: Any = self._frame[name]
        dtype = column.dtype
        if isinstance(dtype, pd.ArrowDtype):
            from streamdsl.io.from_arrow import arrow_times

            return arrow_times(_arrow_array(column))
        if dtype.kind == "M":
            return TimeColumn.of_moments(_utc(column).to_numpy(copy=True))
        if dtype.kind in "iu":
            nulls = column.isna().to_numpy(dtype=np.bool_)
            return TimeColumn.of_integers(_integers(column, nulls), nulls)
        if dtype.kind == "f":
            nulls = column.isna().to_numpy(dtype=np.bool_)
            return TimeColumn.of_floats(column.to_numpy(dtype=np.float64, na_value=np.nan), nulls)
        return TimeColumn.of_values(column.to_numpy(dtype=object, na_value=None).tolist())


def _is_alike_in_arrow(column: Any) -> bool:
    """Say whether converting a column to Arrow keeps its payload values."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return isinstance(dtype.categories.dtype, pd.StringDtype) or dtype.categories.dtype.kind == "i"
    if isinstance(dtype, (pd.ArrowDtype, pd.StringDtype)):
        return True
    return isinstance(dtype, pd.api.extensions.ExtensionDtype) and dtype.kind in "ib" and bool(column.isna().any())


def _held_times(column: Any, name: str) -> AnyColumn:
    """Return dates or durations as a deferred column; at once if some have nanoseconds. Raises for dates beyond Python's."""
    integers = column.to_numpy(dtype=f"{column.dtype.kind}8[{column.dt.unit}]").view(np.int64)
    null = column.isna().to_numpy()
    if null.all() or (column.dt.unit == "ns" and (integers[~null] % 1000).any()):
        return _python_times(column, name)
    _python_times(pd.Series([column.min(), column.max()]), name)
    return DeferredColumn(
        ComputedSource(len(column), lambda: integer_codes(integers)[0], lambda rows: _python_times(column.iloc[rows], name))
    )


def _categories(column: Any) -> Column:
    """Return the category of each row; pandas' own conversion turns integers into floats if there are nulls."""
    labels = PandasColumns(pd.DataFrame({"": column.cat.categories})).values("").tolist()
    return value_column([None if code < 0 else labels[code] for code in column.cat.codes.tolist()])


def _arrow_array(column: Any) -> Any:
    import pyarrow as pa

    array = pa.array(column)
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _utc(column: Any) -> Any:
    return column.dt.tz_convert("UTC").dt.tz_localize(None) if column.dt.tz is not None else column


def _integers(column: Any, nulls: Any) -> Any:
    return column.to_numpy(dtype=column.dtype.numpy_dtype, na_value=0) if nulls.any() else np.array(column)


def _python_times(column: Any, name: str) -> Column:
    """Return dates or durations as Python objects, as pandas objects if some have nanoseconds."""
    index: Any = pd.DatetimeIndex(column) if column.dtype.kind == "M" else pd.TimedeltaIndex(column)
    null: Any = index.isna()
    if index.unit == "ns" and (index.asi8[~null] % 1000).any():
        return value_column(list(index))
    try:
        values: Any = index.to_pydatetime() if isinstance(index, pd.DatetimeIndex) else index.to_pytimedelta()
    except (ValueError, OverflowError) as error:
        raise SchemaError(f"column {name!r} holds a date that Python cannot: {error}") from None
    values[null] = None
    return object_column(values.tolist())
