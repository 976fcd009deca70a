"""The columns of a polars frame, read as Arrow's."""

from __future__ import annotations

from typing import Any

import polars as pl

from streamdsl.expr.deferred import AnyColumn
from streamdsl.expr.table import Column
from streamdsl.extras import need
from streamdsl.io.columns import check_names
from streamdsl.io.times import TimeColumn
from streamdsl.io.values import value_column


class PolarsColumns:
    """The columns of a polars frame; a lazy one is collected.

    >>> PolarsColumns(pl.DataFrame({"k": [1, None]})).values("k").tolist()
    [1, None]
    """

    memo = None

    def __init__(self, frame: Any) -> None:
        need("pyarrow", "polars frames", "polars")
        self._frame: pl.DataFrame = frame.collect() if isinstance(frame, pl.LazyFrame) else frame
        self.names = check_names(self._frame.columns)
        self.size = self._frame.height

    def values(self, name: str) -> Column:
        """Return a column as payload values; a null is None, a NaN stays."""
        from streamdsl.io.from_arrow import arrow_values

        array = self._in_arrow(name)
        return value_column(self._listed(name)) if array is None else arrow_values(array)

    def held(self, name: str) -> AnyColumn:
        """Return a column as payload values, deferred where that saves making Python objects."""
        from streamdsl.io.arrow_held import held_values

        array = self._in_arrow(name)
        return value_column(self._listed(name)) if array is None else held_values(array)

    def times(self, name: str) -> TimeColumn:
        """Return a column as times: dates in UTC, integers, or text."""
        from streamdsl.io.from_arrow import arrow_times

        array = self._in_arrow(name)
        return TimeColumn.of_values(self._listed(name)) if array is None else arrow_times(array)

    def _in_arrow(self, name: str) -> Any:
        """Return a column as a chunked array; None for Python objects, and for integers of 128 bits, which Arrow lacks."""
        import pyarrow as pa

        column = self._frame.get_column(name)
        if column.dtype == pl.Object or str(column.dtype).endswith("nt128"):
            return None
        return pa.chunked_array([column.to_arrow()])

    def _listed(self, name: str) -> list[Any]:
        return self._frame.get_column(name).to_list()
