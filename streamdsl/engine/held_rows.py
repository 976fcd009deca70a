"""Rows that are held until they may be emitted: large batches as runs of columns, few rows in a heap.

A row is found by its id when it is retracted or ends elsewhere. In columns ids are numbers, or are made of columns; they become
Python objects only where few rows are retracted.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable
from typing import Any, Final, TypeAlias

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.consolidate import consolidated
from streamdsl.engine.pairs import all_but
from streamdsl.engine.versions import OutRow
from streamdsl.expr.table import Rows, every, flatnonzero
from streamdsl.temporal import INFINITY

FEW: Final = 32
"""A batch of this many rows or more is held in columns."""
_RARE: Final = 64
"""If fewer than one row in this many is retracted, they are looked up one by one."""
_AT_ONCE: Final = 1024
"""The rows that are scanned at once for one that is still there."""

Entry: TypeAlias = tuple[int, int, Hashable]
"""A time, a ticket, and the id of a row."""


class RowHeap:
    """Single rows, in a heap by RE and one by LE. An entry whose row has changed since is stale, and is skipped.

    O(log n) for each change.
    """

    def __init__(self) -> None:
        self._rows: dict[Hashable, OutRow] = {}
        self._by_re: list[Entry] = []
        self._by_le: list[Entry] = []
        self._tickets = itertools.count()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, id: Hashable) -> bool:
        return id in self._rows

    def put(self, row: OutRow) -> None:
        """Hold a row as it is after a change; a full retraction drops it."""
        if row.re_new == row.le:
            self._rows.pop(row.id, None)
            return
        self._rows[row.id] = row._replace(re_old=row.le)
        heapq.heappush(self._by_re, (row.re_new, next(self._tickets), row.id))
        heapq.heappush(self._by_le, (row.le, next(self._tickets), row.id))

    def _first(self, heap: list[Entry]) -> int | None:
        """Return the least time of a heap, None if no row is held."""
        while heap:
            time, _, id = heap[0]
            row = self._rows.get(id)
            if row is not None and time == (row.re_new if heap is self._by_re else row.le):
                return time
            heapq.heappop(heap)
        return None

    def _pop_until(self, heap: list[Entry], until: int) -> list[OutRow]:
        found: list[OutRow] = []
        while (time := self._first(heap)) is not None and time <= until:
            found.append(self._rows.pop(heapq.heappop(heap)[2]))
        return found

    def first_end(self) -> int | None:
        """Return the least RE, None if no row is held."""
        return self._first(self._by_re)

    def first_start(self) -> int:
        """Return the least LE, INFINITY if no row is held."""
        first = self._first(self._by_le)
        return INFINITY if first is None else first

    def pop_first_ending(self) -> OutRow:
        """Remove and return the row with the least RE, just after `first_end`."""
        return self._rows.pop(heapq.heappop(self._by_re)[2])

    def pop_ending(self, until: int) -> list[OutRow]:
        """Remove and return the rows with RE <= `until`."""
        return self._pop_until(self._by_re, until)

    def pop_starting(self, until: int) -> list[OutRow]:
        """Remove and return the rows with LE <= `until`."""
        return self._pop_until(self._by_le, until)

    def ends(self) -> list[int]:
        """Return the REs."""
        return [row.re_new for row in self._rows.values()]


class HeldRun:
    """A run of held rows in columns, in order of RE. Those before `_start` are released; of the others some may be dropped."""

    def __init__(self, rows: Batch) -> None:
        ends = rows.re_new
        self._rows = rows if every(ends[1:] >= ends[:-1]) else rows.take(np.argsort(ends, kind="stable"))
        self._is_there = np.ones(len(rows), dtype=np.bool_)
        self._by_start = np.argsort(self._rows.le, kind="stable")
        self._first = 0
        self._start = 0
        self._size = len(rows)
        self._first_end = int(self._rows.re_new[0])
        self._places: dict[Hashable, int] | None = None

    def __len__(self) -> int:
        return self._size

    def pop_ending(self, until: int) -> Batch | None:
        """Remove and return the rows with RE <= `until`, None if there are none."""
        if until < self._first_end:
            return None
        start, stop = self._start, int(np.searchsorted(self._rows.re_new, until, side="right"))
        self._start = stop
        self._first_end = int(self._rows.re_new[stop]) if stop < len(self._rows) else INFINITY
        rows = start + flatnonzero(self._is_there[start:stop])
        self._is_there[start:stop] = False
        self._size -= len(rows)
        return self._rows.only(rows) if len(rows) else None

    def first_start(self) -> int:
        """Return the least LE, INFINITY if no row is left."""
        by_start = self._by_start
        while self._first < len(by_start):
            there = self._is_there[by_start[self._first : self._first + _AT_ONCE]]
            place = int(there.argmax())
            if there[place]:
                self._first += place
                return int(self._rows.le[by_start[self._first]])
            self._first += len(there)
        return INFINITY

    def drop(self, id: Hashable) -> bool:
        """Drop a row, and say whether it was held here."""
        if self._places is None:
            places = self._living()
            self._places = dict(zip(self._rows.ids[places].tolist(), places.tolist(), strict=True))
        place = self._places.pop(id, None)
        if place is None or not self._is_there[place]:
            return False
        self._is_there[place] = False
        self._size -= 1
        return True

    def packed(self) -> HeldRun:
        """Return the run without its dropped rows, once these are more than half."""
        return HeldRun(self.rows()) if 2 * self._size < len(self._rows) else self

    def rows(self) -> Batch:
        """Return the rows that are left."""
        return self._rows.only(self._living())

    def ends(self) -> list[int]:
        """Return the REs of the rows that are left."""
        found: list[int] = self._rows.re_new[self._living()].tolist()
        return found

    def _living(self) -> Rows:
        return flatnonzero(self._is_there)


class HeldRows:
    """Held rows: runs of columns by RE, each at least twice as long as the next, and a heap of single rows.



    >>> from streamdsl.engine.batch import Changes
    >>> changes, held = Changes(), HeldRows()
    >>> for n in range(100):
    ...     changes.add(n, n, n, n + 10, None)
    >>> held.take(changes.batch(keyed=False))
    >>> len(held), held.first_start(), held.pop_ending(19)[1].ids.tolist(), held.first_start()
    (100, 0, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 10)
    """

    def __init__(self) -> None:
        self.heap = RowHeap()
        self._runs: list[HeldRun] = []

    def __len__(self) -> int:
        return len(self.heap) + self._n_in_runs() if self._runs else len(self.heap)

    def put(self, row: OutRow) -> None:
        """Apply the change of a single row."""
        if not row.is_insertion and row.id not in self.heap:
            self._drop(row.id)
        self.heap.put(row)

    def take(self, changes: Batch) -> None:
        """Apply the changes of many rows."""
        retracted = flatnonzero(changes.re_old != changes.le)
        if not len(retracted):
            self._add(changes)
            return
        alone = self._held_alone(changes, retracted)
        if len(alone):
            self._put_each(changes.take(alone))
            changes = changes.take(all_but(alone, len(changes)))
        if _RARE * (len(retracted) - len(alone)) >= self._n_in_runs():
            rows = consolidated(Batch.concat([*(run.rows() for run in self._runs), changes]))
            self._runs = []
            self._add(rows)
            return
        for id in dict.fromkeys(changes.ids[flatnonzero(changes.re_old != changes.le)].tolist()):
            self._drop(id)
        self._add(consolidated(changes))

    def pop_ending(self, until: int) -> tuple[list[OutRow], Batch | None]:
        """Remove the rows with RE <= `until`; return the single ones, and those in columns."""
        single = self.heap.pop_ending(until)
        if not self._runs:
            return single, None
        parts = [rows for run in self._runs if (rows := run.pop_ending(until)) is not None]
        if parts:
            self._runs = [run.packed() for run in self._runs if len(run)]
        return single, Batch.concat(parts) if parts else None

    def first_start(self) -> int:
        """Return the least LE, INFINITY if no row is held."""
        if not self._runs:
            return self.heap.first_start()
        return min([self.heap.first_start(), *(run.first_start() for run in self._runs)])

    def ends(self) -> list[int]:
        """Return the REs."""
        return [*self.heap.ends(), *(end for run in self._runs for end in run.ends())]

    def _held_alone(self, changes: Batch, retracted: Rows) -> Rows:
        """Return which changed rows are in the heap."""
        if not len(self.heap):
            return retracted[:0]
        ids = changes.ids[retracted].tolist()
        return retracted[[id in self.heap for id in ids]]

    def _put_each(self, changes: Batch) -> None:
        columns: tuple[list[Any], ...] = (changes.ids.tolist(), changes.le.tolist(), changes.re_old.tolist())
        for row in zip(*columns, changes.re_new.tolist(), changes.table.payloads(), strict=True):
            self.put(OutRow(*row))

    def _drop(self, id: Hashable) -> None:
        """Drop a row from the runs."""
        if not any(run.drop(id) for run in self._runs):
            raise AssertionError(f"the row {id!r} changes, and has been sent")
        self._runs = [run for run in self._runs if len(run)]

    def _add(self, rows: Batch) -> None:
        """Add rows as a run, merged with runs that are not much longer."""
        if not len(rows):
            return
        parts, size = [rows], len(rows)
        while self._runs and len(self._runs[-1]) < 2 * size:
            run = self._runs.pop()
            parts.append(run.rows())
            size += len(run)
        self._runs.append(HeldRun(Batch.concat(parts)))

    def _n_in_runs(self) -> int:
        return sum(map(len, self._runs))
