"""What a reader asks of a frame of any library: its columns, as payload values or as times."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from streamdsl.errors import SchemaError
from streamdsl.expr.table import Column, column_of
from streamdsl.io.times import TimeColumn


class Columns(Protocol):
    """A frame, or a piece of a file."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns, in order."""

    @property
    def size(self) -> int:
        """The number of rows."""

    @property
    def memo(self) -> Mapping[str, Any] | None:
        """What streamdsl noted of the payloads' shape when it wrote the frame."""

    def values(self, name: str) -> Column:
        """Return a column as payload values."""

    def times(self, name: str) -> TimeColumn:
        """Return a column as times."""


class RowColumns:
    """Columns over mappings that all have the same keys.

    >>> RowColumns(["k"], [{"k": 1}, {"k": 2}]).values("k").tolist()
    [1, 2]
    """

    memo = None

    def __init__(self, names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
        self.names = names
        self.size = len(rows)
        self._rows = rows

    def values(self, name: str) -> Column:
        """Return a column as payload values."""
        return column_of([row[name] for row in self._rows])

    def times(self, name: str) -> TimeColumn:
        """Return a column as times."""
        return TimeColumn.of_values([row[name] for row in self._rows])


def columns_of(frame: Any) -> Columns | None:
    """Return the columns of a pandas, Arrow or polars frame, None for anything else; no library is imported for it."""
    if _is_a(frame, "pandas", "DataFrame"):
        from streamdsl.io.pandas_columns import PandasColumns

        return PandasColumns(frame)
    if _is_a(frame, "pyarrow", "Table") or _is_a(frame, "pyarrow", "RecordBatch"):
        from streamdsl.io.arrow_columns import ArrowColumns

        return ArrowColumns(frame)
    if _is_a(frame, "polars", "DataFrame") or _is_a(frame, "polars", "LazyFrame"):
        from streamdsl.io.polars_columns import PolarsColumns

        return PolarsColumns(frame)
    return None


def _is_a(value: object, library: str, name: str) -> bool:
    cls = getattr(sys.modules.get(library), name, None)
    return cls is not None and isinstance(value, cls)


def check_names(names: Sequence[object]) -> list[str]:
    """Return column names if each is a text and none is there twice, else raise `SchemaError`."""
    other = [name for name in names if not isinstance(name, str)]
    if other:
        raise SchemaError(f"a column is named {other[0]!r}, but a field's name is text", hint="rename the columns to text")
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        raise SchemaError(f"several columns have the same name: {', '.join(twice)}", hint="rename or drop them")
    return [str(name) for name in names]
