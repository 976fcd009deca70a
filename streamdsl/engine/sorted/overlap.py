"""The overlap index: which rows with a key may live in a period, in sorted runs of rows that live about as long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from streamdsl.engine.sorted.rows import StoredRows
from streamdsl.engine.sorted.run import SortedRun
from streamdsl.expr.table import Column, Rows
from streamdsl.temporal.time import INFINITY, Ticks

_UNBOUNDED: Final = 32
_FEW: Final = 512
"""So many rows that have come last are looked at one by one."""
_COMPARED: Final = 2**14
"""So many comparisons with them are made at most, else they become a run."""
_SMALL: Final = 2**13
"""Runs of so many rows are merged with any: that costs less than to look into both."""


class OverlapIndex:
    """Runs by the order of magnitude of durations, so that one long row never makes the search for short ones long.

    Of each magnitude a run is merged with the next that has come when that is as large: there are logarithmically many runs, and a row
    is moved as often. Within a magnitude durations differ fourfold: what is looked at is at most about four times what overlaps.
    """

    def __init__(self, rows: StoredRows) -> None:
        self._rows = rows
        self._runs: dict[int, list[SortedRun]] = {}
        self.indexed = 0

    @property
    def nbytes(self) -> int:
        """The memory of the runs."""
        return sum(run.nbytes for runs in self._runs.values() for run in runs)

    def candidates(self, numbers: Column, lo: Ticks, hi: Ticks) -> Iterator[tuple[Rows, Rows]]:
        """Yield which asked, and the slots of rows with their number that start before `hi` and may live after `lo`."""
        last = len(self._rows) - self.indexed
        if last > _FEW or last * len(lo) > _COMPARED:
            self._index_last()
        elif last:
            yield self._among_last(numbers, hi)
        for runs in self._runs.values():
            for run in runs:
                yield from run.candidates(numbers, lo, hi)

    def _among_last(self, numbers: Column, hi: Ticks) -> tuple[Rows, Rows]:
        last = slice(self.indexed, None)
        same = self._rows.numbers.values[last] == numbers[:, None]
        at, found = np.nonzero(same & (self._rows.le.values[last] < hi[:, None]))
        return at, found + self.indexed

    def _index_last(self) -> None:
        """Make runs of the rows that have come last."""
        rows = self._rows
        slots = np.arange(self.indexed, len(rows))
        last = slice(self.indexed, None)
        self.indexed = len(rows)
        numbers, le, ends = rows.numbers.values[last], rows.le.values[last], np.maximum(rows.re.values[last], rows.was.values[last])
        there = np.flatnonzero(ends > le)
        if len(there) < len(slots):
            numbers, le, ends, slots = numbers[there], le[there], ends[there], slots[there]
        for magnitude, here in by_magnitude(le, ends):
            self._add(magnitude, numbers[here], le[here], ends[here], slots[here])

    def _add(self, magnitude: int, numbers: Column, le: Ticks, ends: Ticks, slots: Rows) -> None:
        longest = None if magnitude == _UNBOUNDED else int((ends - le).max())
        runs = self._runs.setdefault(magnitude, [])
        runs.append(SortedRun.of(numbers, le, slots, longest))
        _compact(runs)

    def rebuild(self) -> None:
        """Make the runs anew: the numbers of keys are others."""
        self._runs, self.indexed = {}, 0

    def move(self, places: Rows) -> None:
        """Follow rows to other slots, -1 where they are let go."""
        self.indexed = int((places[: self.indexed] >= 0).sum())
        for magnitude, runs in list(self._runs.items()):
            moved = [run.moved(places[run.slots]) for run in runs]
            self._runs[magnitude] = [run for run in moved if len(run)]
            _compact(self._runs[magnitude])
            if not self._runs[magnitude]:
                del self._runs[magnitude]


def _compact(runs: list[SortedRun]) -> None:
    while len(runs) > 1 and (len(runs[-2]) <= len(runs[-1]) or len(runs[-2]) <= _SMALL):
        other = runs.pop()
        runs.append(runs.pop().merged(other))


def by_magnitude(le: Ticks, re: Ticks) -> Iterator[tuple[int, Rows | slice]]:
    """Yield each order of magnitude of the durations of some rows, and which rows those are.

    >>> [(magnitude, rows) for magnitude, rows in by_magnitude(np.array([0, 5]), np.array([9, 14]))]
    [(2, slice(None, None, None))]
    """
    found = magnitudes(le, re)
    if not len(found):
        return
    if found.min() == found.max():
        yield int(found[0]), slice(None)
        return
    for magnitude in np.flatnonzero(np.bincount(found)).tolist():
        yield magnitude, np.flatnonzero(found == magnitude)


def magnitudes(le: Ticks, re: Ticks) -> Rows:
    """Return the order of magnitude of durations, to the base of four; the longest are as those without end.

    >>> magnitudes(np.array([0, 0, 0]), np.array([3, 4, INFINITY])).tolist()
    [1, 2, 32]
    """
    _, bits = np.frexp(re.astype(np.float64) - le.astype(np.float64))
    return np.where((bits >= 62) | (re == INFINITY), _UNBOUNDED, (bits + 1) >> 1)
