"""The rows of one input, in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.growing import GrowingColumn, GrowingIds, GrowingTable, materialised
from streamdsl.engine.ids import Ids, of_spelled
from streamdsl.engine.row_batch import RowBatch
from streamdsl.expr.row_program import Values
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Column, Rows, Table, column_of
from streamdsl.temporal.time import MIN_TIME, Ticks

_MOST: Final = 256
"""The most single rows that wait to be put into columns."""

Row: TypeAlias = tuple[Any, int, int, Values, int, int | None]
"""A single row: its id, LE and RE, the values of its payload, the number of its key, and its group."""


def _column(name: str) -> Any:
    """Return a property for a column that includes all rows."""

    def column(rows: StoredRows) -> Any:
        if rows._late:
            rows.put_in_columns()
        return getattr(rows, name)

    return property(column)


class StoredRows:
    """Rows in order of arrival; the index of a row is its slot, until `keep` moves it.

    `re` is the end of a row, `was` its end before the changes of this step (LE: there was no row). Rows that are dropped have
    both at MIN_TIME. `numbers` are the numbers of the keys, `groups` the groups inside a group-apply.

    Single rows wait as tuples (`_late`) until they are many, or until a column is read: then they are put into the columns.
    """

    le: GrowingColumn = _column("_le")
    re: GrowingColumn = _column("_re")
    was: GrowingColumn = _column("_was")
    numbers: GrowingColumn = _column("_numbers")
    groups: GrowingColumn | None = _column("_groups")

    def __init__(self) -> None:
        self._le, self._re, self._was, self._numbers = (GrowingColumn(np.empty(0, dtype=np.int64)) for _ in range(4))
        self._late: list[Row] = []
        self._late_notes: list[Any] = []
        self._groups: GrowingColumn | None = None
        self._notes: GrowingColumn | None = None
        self._blank: int | None = None
        self._ids: GrowingIds | None = None
        self._payloads: GrowingTable | None = None

    def __len__(self) -> int:
        return len(self._le) + len(self._late)

    @property
    def n_late(self) -> int:
        """The number of rows that wait to be put into columns."""
        return len(self._late)

    def _all(self) -> Iterator[GrowingColumn | GrowingIds | GrowingTable]:
        yield from (self.le, self.re, self.was, self.numbers)
        for column in (self.groups, self._notes, self._ids, self._payloads):
            if column is not None:
                yield column

    @property
    def notes(self) -> GrowingColumn:
        """The note of each row."""
        self.put_in_columns()
        assert self._notes is not None, "notes are kept"
        return self._notes

    def keep_notes(self, blank: int | None = None) -> None:
        """Keep a note for each new row: an object, or an integer if the first one is."""
        self._blank = blank
        self._notes = GrowingColumn(np.empty(0, dtype=object if blank is None else np.int64))

    def append(self, batch: Batch, numbers: Column) -> Rows:
        """Append rows as they are after a batch, and return their slots."""
        first = len(self.le)
        self.le.append(batch.le)
        self.re.append(batch.re_new)
        self.was.append(batch.re_old)
        self.numbers.append(numbers)
        if self._notes is not None:
            self._notes.append(np.full(len(batch), self._blank, dtype=self._notes.values.dtype))
        if self._ids is None or self._payloads is None:
            self._ids, self._payloads = GrowingIds(batch.ids), GrowingTable(batch.table)
            self._groups = None if batch.keys is None else GrowingColumn(batch.keys)
        else:
            self._ids.append(batch.ids)
            self._payloads.append(batch.table)
            if self._groups is not None and batch.keys is not None:
                self._groups.append(batch.keys)
        return np.arange(first, len(self.le))

    def takes(self, batch: RowBatch) -> bool:
        """Say whether rows can be added one by one: there are others of the same kind."""
        schema = self.schema
        return (schema is batch.schema or schema == batch.schema) and (self._groups is None) is (batch.groups is None)

    @property
    def schema(self) -> Schema | None:
        """The schema of the payloads, None before the first."""
        return None if self._payloads is None else self._payloads.schema

    def add_one(self, row: Row, note: Any = None) -> int:
        """Append a single row of a kind that it `takes`, and return its slot."""
        slot = len(self)
        self._late.append(row)
        if self._notes is not None:
            self._late_notes.append(note)
        if len(self._late) > _MOST:
            self.put_in_columns()
        return slot

    def one(self, slot: int) -> Row:
        """Return the row in a slot."""
        first = len(self._le)
        if slot >= first:
            return self._late[slot - first]
        assert self._ids is not None, "there are rows"
        assert self._payloads is not None, "there are rows"
        group = None if self._groups is None else self._groups.one(slot)
        row = self._ids.one(slot), self._le.one(slot), self._re.one(slot), self._payloads.one(slot), self._numbers.one(slot)
        return (*row, group)

    def living(self, slots: Sequence[int], number: int, lo: int, hi: int) -> list[tuple[int, Row]]:
        """Return those of some rows that have a number and live some time in `[lo, hi)`, each with its slot.

        Ends are what they are: no step is under way.
        """
        late, first, found = self._late, len(self._le), []
        for slot in slots:
            if slot >= first or (self._re.one(slot) > lo and self._le.one(slot) < hi):
                row = late[slot - first] if slot >= first else self.one(slot)
                if row[1] < hi and row[2] > lo and row[4] == number:
                    found.append((slot, row))
        return found

    def end_one(self, slot: int, re: int) -> bool:
        """Change the end of a row that stays; False, with no effect, if it does not."""
        id, le, _, *others = self.one(slot)
        if re <= le:
            return False
        place = slot - len(self._le)
        if place >= 0:
            self._late[place] = id, le, re, *others
        else:
            self._re.put(slot, re)
            self._was.put(slot, re)
        return True

    def put_in_columns(self) -> None:
        """Put the rows that wait into columns."""
        if not self._late:
            return
        assert self._payloads is not None, "there have been rows"
        ids, le, re, values, numbers, groups = zip(*self._late, strict=True)
        notes, first, self._late, self._late_notes = self._late_notes, len(self._le), [], []
        schema = self._payloads.schema
        table = Table(schema, dict(zip(schema.names, map(column_of, zip(*values, strict=True)), strict=True)), len(ids))
        starts, ends = np.array(le, dtype=np.int64), np.array(re, dtype=np.int64)
        keys = None if self._groups is None else np.array(groups, dtype=np.int64)
        self.append(Batch(of_spelled(ids), starts, ends, ends, table, keys), np.array(numbers, dtype=np.int64))
        for slot, note in enumerate(notes, first):
            self.note_one(slot, note)

    def note_of(self, slot: int) -> Any:
        """Return the note of a row."""
        assert self._notes is not None, "notes are kept"
        first = len(self._le)
        return self._notes.one(slot) if slot < first else self._late_notes[slot - first]

    def note_one(self, slot: int, note: Any) -> None:
        """Set the note of a row."""
        assert self._notes is not None, "notes are kept"
        first = len(self._le)
        if slot < first:
            self._notes.put(slot, note)
        else:
            self._late_notes[slot - first] = note

    def ids(self, slots: Rows) -> Ids:
        """Return the ids of some rows."""
        self.put_in_columns()
        assert self._ids is not None, "there are rows"
        return self._ids.take(slots)

    def table(self, slots: Rows) -> Table:
        """Return the payloads of some rows; they are valid until the next change."""
        self.put_in_columns()
        return Table.of_objects([]) if self._payloads is None else self._payloads.take(slots)

    def batch(self, ids: Ids, slots: Rows, le: Ticks, re_old: Ticks, re_new: Ticks) -> Batch:
        """Return changes, under other ids and lifetimes, with the payloads and groups of some rows."""
        groups = None if self.groups is None else self.groups.take(slots)
        return Batch(ids, le, re_old, re_new, materialised(self.table(slots)), groups)

    def ends(self, slots: Rows | slice) -> Ticks:
        """Return the later of the old and the new end of some rows."""
        ends: Ticks = np.maximum(self.re.take(slots), self.was.take(slots))
        return self.found_until(self.le.take(slots), ends)

    def found_until(self, le: Ticks, re: Ticks) -> Ticks:
        """Return the end by which rows with these lifetimes are indexed."""
        return re

    def again(self, slots: Rows) -> Rows:
        """Append some rows again, leave their slots empty, and return the new slots."""
        copies = self.batch(self.ids(slots), slots, self.le.take(slots), self.was.take(slots), self.re.take(slots))
        numbers, notes = self.numbers.take(slots), None if self._notes is None else self._notes.take(slots)
        self.drop(slots)
        new = self.append(copies, numbers)
        if notes is not None:
            self.notes.put(new, notes)
        return new

    def drop(self, slots: Rows) -> None:
        """Drop some rows; their slots stay empty."""
        self.re.put(slots, MIN_TIME)
        self.was.put(slots, MIN_TIME)
        for column in (self._notes, self._ids, self._payloads):
            if column is not None:
                column.clear(slots)

    def keep(self, slots: Rows) -> None:
        """Keep these rows only, in slots from 0 on."""
        for column in self._all():
            column.keep(slots)


class PointRows(StoredRows):
    """Rows that are searched by LE alone, as points: they stay where they are in runs when their ends change."""

    def living(self, slots: Sequence[int], number: int, lo: int, hi: int) -> list[tuple[int, Row]]:
        first, found = len(self._le), []
        for slot in slots:
            le = self._late[slot - first][1] if slot >= first else self._le.one(slot)
            if lo <= le < hi:
                row = self.one(slot)
                if row[2] > le and row[4] == number:
                    found.append((slot, row))
        return found

    def found_until(self, le: Ticks, re: Ticks) -> Ticks:
        return le + (re > le)
