"""The rows from which windows are computed, in columns: group, lifetime, payload and arguments of each."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import repeat
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.growing import GrowingColumn, GrowingTable
from streamdsl.engine.ids import Ids
from streamdsl.expr.deferred import AnyColumn, with_parts
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Column, Rows, Table, column_of, flatnonzero, object_column
from streamdsl.temporal.time import Ticks

_ALL: Final = slice(None)
_MOST_LATE: Final = 256
"""The most single rows that wait to be put into columns."""


class NewRows(NamedTuple):
    """Rows that are inserted."""

    ids: Ids
    groups: Ticks
    le: Ticks
    re: Ticks
    arguments: Sequence[AnyColumn]
    """A column for each module, then one for each `where` of a module: which rows it selects."""
    table: Table | None
    """The payloads, where they decide the order of members."""


class RowTable:
    """Rows at places that stay until the table is swept. A removed row keeps its place, but is not alive."""

    def __init__(self, n_arguments: int, has_payloads: bool) -> None:
        none: Column = np.empty(0, dtype=np.int64)
        self._ids, self._groups, self._le, self._re, self._alive = (GrowingColumn(none) for _ in range(5))
        self._columns = [self._ids, self._groups, self._le, self._re, self._alive]
        self._given = Schema.tuple(n_arguments)
        self._arguments = GrowingTable(self._table([none] * n_arguments, 0))
        self.payloads = GrowingTable(Table.of_objects([])) if has_payloads else None
        self._late: list[tuple[Hashable, int, int, int, Sequence[Any]]] = []
        """Single rows that wait to be put into columns, until a column is read."""
        self.n_gone = 0
        self._places: dict[tuple[Hashable, int], int] | None = None

    def __len__(self) -> int:
        return len(self._le) + len(self._late)

    def _table(self, arguments: Iterable[AnyColumn], size: int) -> Table:
        return Table(self._given, with_parts(dict(zip(self._given.columns, arguments, strict=True))), size)

    def _column(self, column: GrowingColumn) -> Column:
        self.put_in_columns()
        return column.values

    @property
    def ids(self) -> Column:
        """Each row's id."""
        return self._column(self._ids)

    @property
    def groups(self) -> Ticks:
        """The number of each row's group."""
        return self._column(self._groups)

    @property
    def le(self) -> Ticks:
        """Each row's LE."""
        return self._column(self._le)

    @property
    def re(self) -> Ticks:
        """Each row's RE."""
        return self._column(self._re)

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Which rows have not been removed."""
        return self._column(self._alive)

    def argument(self, number: int) -> Column:
        """Return an argument of each row."""
        self.put_in_columns()
        return self._arguments.column(number).take(_ALL)

    def argument_part(self, number: int) -> AnyColumn:
        """Return an argument of each row, held where it is."""
        self.put_in_columns()
        return self._arguments.column(number).part(_ALL)

    def add(self, new: NewRows) -> Rows:
        """Append rows, and return their places."""
        self.put_in_columns()
        first = len(self)
        ids = new.ids if isinstance(new.ids, np.ndarray) else object_column(new.ids.tolist())
        self._append([ids, new.groups, new.le, new.re], new.arguments)
        if self.payloads is not None and new.table is not None:
            self.payloads.append(new.table)
        if self._places is not None:
            self._places.update(zip(zip(ids.tolist(), new.le.tolist(), strict=True), range(first, len(self)), strict=True))
        return np.arange(first, len(self))

    def add_one(self, id: Hashable, group: int, le: int, re: int, arguments: Sequence[Any]) -> int:
        """Append a single row of plain values, and return its place."""
        place = len(self)
        self._late.append((id, group, le, re, arguments))
        if self._places is not None:
            self._places[id, le] = place
        if len(self._late) >= _MOST_LATE:
            self.put_in_columns()
        return place

    def put_in_columns(self) -> None:
        """Put the rows that wait into the columns."""
        if not self._late:
            return
        late, self._late = self._late, []
        ids, groups, le, re, arguments = zip(*late, strict=True)
        times = (np.array(column, dtype=np.int64) for column in (groups, le, re))
        self._append([object_column(ids), *times], map(column_of, zip(*arguments, strict=True)))

    def _append(self, columns: Sequence[Column], arguments: Iterable[AnyColumn]) -> None:
        size = len(columns[0])
        for column, values in zip(self._columns, (*columns, np.ones(size, dtype=np.bool_)), strict=True):
            column.append(values)
        self._arguments.append(self._table(arguments, size))

    def remove(self, ids: Ids, le: Ticks) -> Rows:
        """Remove rows by id and LE, and return their places, -1 for one that is not there. O(1) each, after the first."""
        if self._places is None:
            self._places = self._index()
        pairs = zip(ids.tolist(), le.tolist(), strict=True)
        places = np.fromiter(map(self._places.pop, pairs, repeat(-1)), dtype=np.intp, count=len(le))
        known = places[places >= 0]
        self.alive[known] = False
        self.n_gone += len(known)
        return places

    def at(self, places: Rows, re: Ticks) -> NewRows:
        """Return rows as they are, but for their REs."""
        arguments = [self.argument_part(number)[places] for number in range(len(self._given.columns))]
        table = None if self.payloads is None else self.payloads.take(places)
        return NewRows(self.ids[places], self.groups[places], self.le[places], re, arguments, table)

    def keep(self, places: Rows) -> None:
        """Keep only the rows at these places, in this order, all of which are alive."""
        self.put_in_columns()
        for column in self._columns:
            column.keep(places)
        self._arguments.keep(places)
        if self.payloads is not None:
            self.payloads.keep(places)
        self.n_gone = 0
        if self._places is not None:
            self._places = self._index()

    def _index(self) -> dict[tuple[Hashable, int], int]:
        alive = flatnonzero(self.alive)
        pairs = zip(self.ids[alive].tolist(), self.le[alive].tolist(), strict=True)
        return dict(zip(pairs, alive.tolist(), strict=True))
