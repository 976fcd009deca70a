"""The rows of one input, in columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.few import Few
from streamdsl.engine.ids import Ids
from streamdsl.engine.sorted.columns import GrowingColumn, GrowingIds, GrowingTable, materialised, put_at_ends
from streamdsl.expr.scalars import Values
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Column, Rows, Table
from streamdsl.temporal.time import MIN_TIME, Ticks


class StoredRows:
    """Rows in the order in which they came; a row's place is its slot, until `keep`.

    `re` is a row's end, `was` the end that it had before the changes of this step, LE if it was not there. Rows that are gone for
    good have both at MIN_TIME. `numbers` are the numbers of the keys, `groups` the groups inside a group-apply.
    """

    def __init__(self) -> None:
        self.le, self.re, self.was, self.numbers = (GrowingColumn(np.empty(0, dtype=np.int64)) for _ in range(4))
        self.groups: GrowingColumn | None = None
        self._notes: GrowingColumn | None = None
        self._blank: int | None = None
        self._ids: GrowingIds | None = None
        self._payloads: GrowingTable | None = None

    def __len__(self) -> int:
        return len(self.le)

    def _all(self) -> Iterator[GrowingColumn | GrowingIds | GrowingTable]:
        yield from (self.le, self.re, self.was, self.numbers)
        for column in (self.groups, self._notes, self._ids, self._payloads):
            if column is not None:
                yield column

    @property
    def notes(self) -> GrowingColumn:
        """What is noted of each row."""
        assert self._notes is not None, "notes are kept"
        return self._notes

    def keep_notes(self, blank: int | None = None) -> None:
        """Keep a note for each row that comes: an object, or an integer if the first one is."""
        self._blank = blank
        self._notes = GrowingColumn(np.empty(0, dtype=object if blank is None else np.int64))

    def append(self, batch: Batch, numbers: Column) -> Rows:
        """Put rows at the end, as they are after the batch, and return their slots."""
        first = len(self.le)
        self.le.append(batch.le)
        self.re.append(batch.re_new)
        self.was.append(batch.re_old)
        self.numbers.append(numbers)
        if self._notes is not None:
            self._notes.append(np.full(len(batch), self._blank, dtype=self._notes.values.dtype))
        if self._ids is None or self._payloads is None:
            self._ids, self._payloads = GrowingIds(batch.ids), GrowingTable(batch.table)
            self.groups = None if batch.keys is None else GrowingColumn(batch.keys)
        else:
            self._ids.append(batch.ids)
            self._payloads.append(batch.table)
            if self.groups is not None and batch.keys is not None:
                self.groups.append(batch.keys)
        return np.arange(first, len(self.le))

    def takes(self, few: Few) -> bool:
        """Say whether rows can be put at the end one by one: there have been others like them."""
        payloads, schema = self._payloads, few.schema
        if payloads is None or (self.groups is None) is not (few.groups is None):
            return False
        return payloads.schema is schema or payloads.schema == schema

    def append_one(self, id: Hashable, le: int, re: int, values: Values, number: int, group: int | None) -> int:
        """Put a row of which some are alike (`takes`) at the end, as it is from now on, and return its slot."""
        assert self._ids is not None, "there have been rows"
        assert self._payloads is not None, "there have been rows"
        slot = len(self.le)
        cells: list[tuple[GrowingColumn, Any]] = [(self.le, le), (self.re, re), (self.was, re), (self.numbers, number)]
        cells += self._ids.cells(id)
        cells += self._payloads.cells(values)
        if self._notes is not None:
            cells.append((self._notes, self._blank))
        if self.groups is not None:
            cells.append((self.groups, group))
        put_at_ends(cells)
        return slot

    @property
    def schema(self) -> Schema | None:
        """The schema of the payloads, None before the first."""
        return None if self._payloads is None else self._payloads.schema

    def id(self, slot: int) -> Any:
        """Return the id of a row."""
        assert self._ids is not None, "there are rows"
        return self._ids.one(slot)

    def values(self, slot: int) -> Values:
        """Return the values of a row's payload."""
        assert self._payloads is not None, "there are rows"
        return self._payloads.one(slot)

    def ids(self, slots: Rows) -> Ids:
        """Return the ids of some rows."""
        assert self._ids is not None, "there are rows"
        return self._ids.take(slots)

    def table(self, slots: Rows) -> Table:
        """Return the payloads of some rows, until the next change of the rows."""
        return Table.of_objects([]) if self._payloads is None else self._payloads.take(slots)

    def ends(self, slots: Rows | slice) -> Ticks:
        """Return the later of both ends of some rows."""
        ends: Ticks = np.maximum(self.re.take(slots), self.was.take(slots))
        return self.found_until(self.le.take(slots), ends)

    def found_until(self, le: Ticks, re: Ticks) -> Ticks:
        """Return up to when rows with these lifetimes are looked for."""
        return re

    def again(self, slots: Rows) -> Rows:
        """Put some rows at the end again, leaving nothing in their slots, and return their new ones."""
        ends = self.le.take(slots), self.was.take(slots), self.re.take(slots)
        groups = None if self.groups is None else self.groups.take(slots)
        copies = Batch(self.ids(slots), *ends, materialised(self.table(slots)), groups)
        numbers, notes = self.numbers.take(slots), None if self._notes is None else self._notes.take(slots)
        self.drop(slots)
        new = self.append(copies, numbers)
        if notes is not None:
            self.notes.put(new, notes)
        return new

    def drop(self, slots: Rows) -> None:
        """Let go of some rows; their slots stay empty."""
        self.re.put(slots, MIN_TIME)
        self.was.put(slots, MIN_TIME)
        for column in (self._notes, self._ids, self._payloads):
            if column is not None:
                column.clear(slots)

    def keep(self, slots: Rows) -> None:
        """Keep some rows, in the slots from 0 on."""
        for column in self._all():
            column.keep(slots)


class PointRows(StoredRows):
    """Rows that are looked for by their LE alone, as if each were a point: they stay in their runs when their ends change."""

    def found_until(self, le: Ticks, re: Ticks) -> Ticks:
        return le + (re > le)
