"""The interface of readers to frames of any library: columns as payload values or as times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from streamdsl.errors import SchemaError
from streamdsl.expr.deferred import AnyColumn
from streamdsl.expr.table import Column, column_of
from streamdsl.io.times import TimeColumn


class Columns(Protocol):
    """The columns of a frame, or of a piece of a file."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns, in order."""

    @property
    def size(self) -> int:
        """The number of rows."""

    @property
    def memo(self) -> Mapping[str, Any] | None:
        """The payload memo that streamdsl stored when it wrote the frame; None for other frames."""

    def values(self, name: str) -> Column:
        """Return a column as payload values."""

    def held(self, name: str) -> AnyColumn:
        """Return a column as payload values, deferred where that saves making Python objects."""

    def times(self, name: str) -> TimeColumn:
        """Return a column as times."""


class RowColumns:
    """The columns of mappings that all have the same keys.

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

    held = values

    def times(self, name: str) -> TimeColumn:
        """Return a column as times."""
        return TimeColumn.of_values([row[name] for row in self._rows])


def check_names(names: Sequence[object], file: str | None = None) -> list[str]:
    """Return the column names; raises `SchemaError` for a name that is not text, and for a duplicate."""
    other = [name for name in names if not isinstance(name, str)]
    if other:
        raise SchemaError(f"a column is named {other[0]!r}, but a field's name is text", hint="rename the columns to text")
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        place = f"{file}: " if file else ""
        raise SchemaError(f"{place}several columns have the same name: {', '.join(twice)}", hint="rename or drop them")
    return [str(name) for name in names]
