"""Growing columns: of values, of ids, of payloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from streamdsl.engine.ids import DeferredIds, Ids, PairIds
from streamdsl.expr.deferred import AnyColumn, ColumnSource, DeferredColumn, parts_of, with_parts
from streamdsl.expr.nested import is_nested, nested, rows_in
from streamdsl.expr.row_program import Values
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Column, Rows, Table, object_column

_SMALLEST = 64
_ALL = slice(None)


class GrowingColumn:
    """A column with spare capacity. If types differ it becomes `object`, so that no value changes.

    The first values are shared until they are overwritten.

    >>> column = GrowingColumn(np.array([1, 2]))
    >>> column.append(np.array([0.5]))
    >>> column.values.tolist()
    [1, 2, 0.5]
    """

    __slots__ = ("_data", "_is_shared", "_size")

    def __init__(self, values: Column) -> None:
        self._is_shared = values.dtype != object  # objects are let go
        self._data = values if self._is_shared else values.copy()
        self._size = len(values)

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> Column:
        """The values, to be read."""
        return self._data[: self._size]

    def append(self, values: AnyColumn) -> None:
        """Append values. O(values) amortized."""
        if isinstance(values, DeferredColumn):
            values = values.column
        if not self._size and self._data.dtype != object:
            self.__init__(values)  # type: ignore[misc]
            return
        size = self._size + len(values)
        if values.dtype != self._data.dtype and self._data.dtype != object:
            self._data = self._data.astype(object)
        if self._is_shared or size > len(self._data):
            room = np.empty(max(size, 2 * self._size, _SMALLEST), dtype=self._data.dtype)
            room[: self._size] = self.values
            self._data, self._is_shared = room, False
        self._data[self._size : size] = values
        self._size = size

    def one(self, row: int) -> Any:
        """Return the value of a row, as a Python value."""
        return self._data.item(row)

    def put(self, rows: Rows | slice | int, values: Column | int) -> None:
        """Replace the values of rows."""
        if self._is_shared:
            self._data, self._is_shared = self.values.copy(), False
        self.values[rows] = values

    def follow(self, other: GrowingColumn, first: int) -> None:
        """Copy the values of another column of the same length, from a row on."""
        if first:
            self.put(slice(first, None), other.values[first:])
        else:
            self._data, self._is_shared, other._is_shared = other._data, True, True

    def keep(self, rows: Rows) -> None:
        """Keep these rows, in this order."""
        self._data, self._is_shared = self._data[rows], False
        self._size = len(rows)

    def take(self, rows: Rows | slice) -> Column:
        """Return the values of these rows."""
        return self._data[: self._size][rows]

    part = take
    """Return these rows as a column; nested payloads stay columns of their own."""

    def clear(self, rows: Rows) -> None:
        """Release the objects of these rows."""
        if self._data.dtype == object:
            self._data[rows] = None


class LazyColumn:
    """A growing column whose values are not made until they are read. Until then they are rows of its sources.

    >>> from streamdsl.expr.deferred import EncodedSource
    >>> column = LazyColumn(DeferredColumn(EncodedSource(np.array([1, 0]), object_column("ab"))))
    >>> column.append(np.array(["c"], dtype=object))
    >>> column.keep(np.array([2, 0]))
    >>> column.take(slice(None)).tolist()
    ['c', 'b']
    """

    __slots__ = ("_made", "_sources")

    def __init__(self, values: DeferredColumn) -> None:
        self._sources = [values.source.only(values.rows)]
        self._made: GrowingColumn | None = None

    def before_saved(self) -> None:
        """Make the values."""
        self._whole()

    def _whole(self) -> GrowingColumn:
        if self._made is None:
            first, *others = (source.values(_ALL) for source in self._sources)
            self._made, self._sources = GrowingColumn(first), []
            for values in others:
                self._made.append(values)
        return self._made

    def append(self, values: AnyColumn) -> None:
        """Put values at the end."""
        if self._made is None and isinstance(values, DeferredColumn) and values.source.may_wait:
            self._sources.append(values.source.only(values.rows))
        else:
            self._whole().append(values)

    def one(self, row: int) -> Any:
        """Return the value of a row, as Python's own."""
        return self._whole().one(row)

    def take(self, rows: Rows | slice) -> Column:
        """Return the values of these rows."""
        return self._whole().take(rows)

    def part(self, rows: Rows | slice) -> AnyColumn:
        """Return these rows, as rows of the sources if they have not been read."""
        return self._made.take(rows) if self._made is not None else DeferredColumn(self._together(), rows)

    def _together(self) -> ColumnSource:
        first, *others = self._sources
        if others:
            self._sources = [first.followed_by(*others)]
        return self._sources[0]

    def keep(self, rows: Rows) -> None:
        """Keep these rows, in this order."""
        if self._made is not None:
            self._made.keep(rows)
        else:
            self._sources = [self._together().only(rows)]

    def clear(self, rows: Rows) -> None:
        """Release the objects of these rows. Values that are not made are released at the next `keep`."""
        if self._made is not None:
            self._made.clear(rows)


class GrowingIds:
    """A growing column of ids. Pairs of ids stay pairs of columns.

    >>> ids = GrowingIds(object_column(["a"]))
    >>> ids.append(PairIds(np.array([1]), np.array([2])))
    >>> ids.take(np.array([1, 0])).tolist()
    [(1, 2), 'a']
    """

    __slots__ = ("_kind", "_pairs", "_whole")

    def __init__(self, ids: Ids) -> None:
        self._kind: type[PairIds] | None = type(ids) if isinstance(ids, PairIds) else None
        self._pairs = tuple(map(GrowingIds, ids.columns)) if isinstance(ids, PairIds) else ()
        self._whole = None if self._pairs else GrowingColumn(_spelled(ids))

    def append(self, ids: Ids) -> None:
        """Append ids."""
        if self._whole is None and type(ids) is self._kind and isinstance(ids, PairIds):
            for part, column in zip(self._pairs, ids.columns, strict=True):
                part.append(column)
            return
        if self._whole is None:
            self._whole, self._pairs = GrowingColumn(_spelled(self.take(slice(None)))), ()
        self._whole.append(_spelled(ids))

    def one(self, row: int) -> Any:
        """Return the id of a row."""
        whole, kind = self._whole, self._kind
        if whole is not None:
            return whole._data.item(row)
        assert kind is not None, "ids are whole, or pairs of a kind"
        first, second = self._pairs
        return kind.made((first.one(row), second.one(row)))

    def take(self, rows: Rows | slice) -> Ids:
        """Return the ids of these rows."""
        if self._whole is not None:
            return self._whole.values[rows]
        assert self._kind is not None, "ids are whole, or pairs of a kind"
        return self._kind(*(part.take(rows) for part in self._pairs))

    def keep(self, rows: Rows) -> None:
        """Keep these rows, in this order."""
        for part in self._pairs or (self._whole,):
            part.keep(rows)  # type: ignore[union-attr]

    def clear(self, rows: Rows) -> None:
        """Release the objects of these rows."""
        for part in self._pairs or (self._whole,):
            part.clear(rows)  # type: ignore[union-attr]


def _spelled(ids: Ids) -> Column:
    return object_column(ids.tolist()) if isinstance(ids, DeferredIds) else ids


class GrowingTable:
    """A growing table of payloads. If schemas differ, all become whole objects.

    >>> table = GrowingTable(Table.from_payloads([1, 2]))
    >>> table.append(Table.from_payloads([{"v": 3}]))
    >>> table.take(np.array([2, 0])).payloads()
    [Record(v=3), 1]
    """

    __slots__ = ("_columns", "_may_wait", "_schema", "size")

    def __init__(self, table: Table, may_wait: bool = True) -> None:
        self._schema = table.schema
        self._may_wait = may_wait
        parts = parts_of(table.columns)
        self._columns = {name: growing(parts[name], may_wait) for name in table.schema.columns}
        self.size = table.size

    @property
    def schema(self) -> Schema:
        """The schema of the payloads."""
        return self._schema

    def append(self, table: Table) -> None:
        """Append payloads."""
        if not self.size:
            self.__init__(table, self._may_wait)  # type: ignore[misc]
            return
        if table.schema != self._schema:
            table = Table.of_objects(table.payloads())
            if self._schema != Schema.object():
                whole = self.take(np.arange(self.size))
                self.__init__(Table.of_objects(whole.payloads()), self._may_wait)  # type: ignore[misc]
        for name, column in parts_of(table.columns).items():
            self._columns[name].append(column)
        self.size += table.size

    def column(self, place: int) -> Growing:
        """Return the column of a field, by its index."""
        return self._columns[self._schema.columns[place]]

    def one(self, row: int) -> Values:
        """Return the values of the fields of a row."""
        return tuple([column.one(row) for column in self._columns.values()])

    def take(self, rows: Rows) -> Table:
        """Return these rows; a column is taken when it is read."""
        if any(type(column) is NestedColumn for column in self._columns.values()):
            return Table(self._schema, with_parts(self._parts(rows)), len(rows))
        return Table(self._schema, _Taken(self._columns, rows), len(rows))

    def snapshot(self) -> Table:
        """Return all rows as they are now, whatever changes later."""
        return Table(self._schema, with_parts(self._parts(_ALL)), self.size)

    def _parts(self, rows: Rows | slice) -> dict[str, AnyColumn]:
        return {name: column.part(rows) for name, column in self._columns.items()}

    def keep(self, rows: Rows) -> None:
        """Keep these rows, in this order."""
        for column in self._columns.values():
            column.keep(rows)
        self.size = len(rows)

    def clear(self, rows: Rows) -> None:
        """Release the objects of these rows."""
        for column in self._columns.values():
            column.clear(rows)


class NestedColumn:
    """A growing column of nested payloads, as a table. Once a value is no such payload, all become Python objects.

    >>> column = NestedColumn(nested(Table.from_payloads([(1, "a"), (2, "b")])))
    >>> column.keep(np.array([1]))
    >>> column.append(object_column([None]))
    >>> column.take(slice(None)).tolist()
    [(2, 'b'), None]
    """

    __slots__ = ("_made", "_rows")

    def __init__(self, values: AnyColumn) -> None:
        # Rows are chosen and put together again and again: of texts as Python has them only references are.
        self._rows = GrowingTable(rows_in(values), may_wait=False)
        self._made: GrowingColumn | None = None

    def _whole(self) -> GrowingColumn:
        if self._made is None:
            self._made = GrowingColumn(self.take(_ALL))
            self._rows.keep(np.empty(0, dtype=np.intp))
        return self._made

    def append(self, values: AnyColumn) -> None:
        """Append values."""
        if self._made is None and is_nested(values):
            self._rows.append(rows_in(values))
        else:
            self._whole().append(values)

    def one(self, row: int) -> Any:
        """Return the value of a row, as Python's own."""
        return self.take(np.array([row])).item(0)

    def take(self, rows: Rows | slice) -> Column:
        """Return the values of these rows."""
        part = self.part(rows)
        return part.column if isinstance(part, DeferredColumn) else part

    def part(self, rows: Rows | slice) -> AnyColumn:
        """Return these rows as a column; nested payloads stay columns of their own."""
        return self._made.take(rows) if self._made is not None else nested(self._rows.snapshot())[rows]

    def keep(self, rows: Rows) -> None:
        """Keep these rows, in this order."""
        (self._rows if self._made is None else self._made).keep(rows)

    def clear(self, rows: Rows) -> None:
        """Release the objects of these rows.

        Values that are not made are released at the next `keep`, as rows that were taken may need them.
        """
        if self._made is not None:
            self._made.clear(rows)


Growing: TypeAlias = GrowingColumn | LazyColumn | NestedColumn


def growing(values: AnyColumn, may_wait: bool = True) -> Growing:
    """Return values as a growing column."""
    if is_nested(values):
        return NestedColumn(values)
    if isinstance(values, DeferredColumn):
        return LazyColumn(values) if may_wait and values.source.may_wait else GrowingColumn(values.column)
    return GrowingColumn(values)


class _Taken(Mapping[str, Column]):
    """Some rows of columns, each taken when it is read: expressions need not read all columns."""

    __slots__ = ("_columns", "_rows", "_taken")

    def __init__(self, columns: Mapping[str, Growing], rows: Rows) -> None:
        self._columns = columns
        self._rows = rows
        self._taken: dict[str, Column] = {}

    def __getitem__(self, name: str) -> Column:
        found = self._taken.get(name)
        if found is None:
            found = self._taken[name] = self._columns[name].take(self._rows)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def materialised(table: Table) -> Table:
    """Return a table whose columns have all been made, nested ones too."""
    parts = {name: _read(part) for name, part in parts_of(table.columns).items()}
    return Table(table.schema, with_parts(parts), table.size)


def _read(part: AnyColumn) -> AnyColumn:
    if is_nested(part):
        return nested(materialised(rows_in(part)))
    return part.column if isinstance(part, DeferredColumn) else part
