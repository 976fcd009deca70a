"""The overlap index: finds the rows with a key whose lifetimes may overlap a period."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from streamdsl.engine.sorted.sort_keys import SortKeyEncoding
from streamdsl.engine.sorted.sorted_run import RunRanges, SortedRun, Spans
from streamdsl.engine.sorted.stored_rows import StoredRows
from streamdsl.engine.sorting import order_by
from streamdsl.expr.table import Column, Rows, flatnonzero
from streamdsl.temporal.time import INFINITY, Ticks

_UNBOUNDED: Final = 20
_LAST: Final = 512
"""Up to this many of the latest rows stay unindexed, and are compared one by one."""
_COMPARED: Final = 2**14
"""The most comparisons with unindexed rows in a step; beyond that they become a run."""
_SOUGHT: Final = 64
"""A single probe compares at most this many rows; if more of its key are unindexed, all of these become a run."""
_SMALL: Final = 2**13
"""Runs of up to this many rows are always merged: that is cheaper than searching both."""
_FEW: Final = 4
"""Up to this many probes are searched one by one, more in columns."""

_NONE: Final = np.empty(0, dtype=np.intp)


class Probe(NamedTuple):
    """Probe rows: the numbers of their keys, and the periods `[lo, hi)` that partners must overlap."""

    numbers: Column
    lo: Ticks
    hi: Ticks


class OverlapIndex:
    """Sorted runs of rows, apart by the magnitude of their duration: one long row does not make searches for short ones long.

    As in a log-structured merge tree, a run is merged with the one before it once it is as long: there are O(log n) runs of each
    magnitude, and each row is merged O(log n) times. Durations of one magnitude differ at most sixteenfold, so a search looks at
    no more than sixteen times the overlapping rows. The latest rows are in no run; single probes find them by the numbers of
    their keys.
    """

    def __init__(self, rows: StoredRows, encoding: SortKeyEncoding) -> None:
        self._rows = rows
        self._encoding = encoding
        self._version = encoding.version
        self._runs: dict[int, list[SortedRun]] = {}
        self._gone: Counter[int] = Counter()
        self.indexed = 0
        self._by_number: dict[int, list[int]] = {}
        self._noted = 0

    def candidates(self, probe: Probe) -> Iterator[tuple[Rows, Rows]]:
        """Yield pairs of a probe and the slot of a row that may overlap it. Rows that are gone overlap nothing."""
        last = self.among_unindexed(probe)
        if len(last[0]):
            yield last
        if len(probe.lo) <= _FEW:
            for row, run, first, last_place in self._of_few(probe):
                yield np.full(last_place - first, row, dtype=np.intp), run.slots[first:last_place]
        elif self._runs:
            yield from self._of_many(probe, self._all_runs())

    def ranges(self, probe: Probe) -> Iterator[tuple[SortedRun, RunRanges]]:
        """Yield each run with the ranges of it that may overlap the probes; call `among_unindexed` first."""
        if len(probe.lo) <= _FEW:
            for row, run, first, last in self._of_few(probe):
                yield run, RunRanges(*(np.array([number]) for number in (row, first, last - first)))
        elif self._runs:
            spans, order = self._sorted(*probe)
            for run in self._all_runs():
                ranges = run.ranges(spans)
                yield run, ranges._replace(rows=order[ranges.rows])

    def _all_runs(self) -> list[SortedRun]:
        return [run for runs in self._runs.values() for run in runs]

    def among_unindexed(self, probe: Probe) -> tuple[Rows, Rows]:
        """Return pairs of a probe and an unindexed row that may overlap it.

        If these rows are too many, they become a run instead.
        """
        if self._version != self._encoding.version:
            self.rebuild()
        count = len(self._rows) - self.indexed
        if count > _LAST or count * len(probe.lo) > _COMPARED:
            self._index_rest()
            return _NONE, _NONE
        if not count:
            return _NONE, _NONE
        rows, last = self._rows, slice(self.indexed, None)
        if len(probe.lo) == 1:
            found = self.indexed + flatnonzero(rows.numbers.take(last) == probe.numbers)
            if len(found):
                found = found[(rows.le.take(found) < probe.hi) & (rows.ends(found) > probe.lo)]
            return np.zeros(len(found), dtype=np.intp), found
        numbers, lo, hi = (column[:, None] for column in probe)
        meet = rows.numbers.take(last) == numbers
        meet &= rows.le.take(last) < hi
        meet &= rows.ends(last) > lo
        at, found = np.nonzero(meet)
        return at, found + self.indexed

    def of_one(self, number: int, lo: int, hi: int) -> list[int] | None:
        """Return the slots of rows with this key, or one in the same block, that may overlap `[lo, hi)`;

        None if they may be many.
        """
        if self._version != self._encoding.version:
            self.rebuild()
        if len(self._rows) - self._noted > _LAST:
            self._index_rest()
        elif self._noted < len(self._rows):
            self._note_last()
        found = self._by_number.get(number, [])
        if len(found) > _SOUGHT:
            self._index_rest()
            found = []
        if self._runs:
            found = found.copy()
            for run, start, stop in self._ranges_of(number, lo, hi, self._all_runs()):
                if stop - start > _SOUGHT:
                    return None
                found += run.slots[start:stop].tolist()
        return found

    def note(self, slot: int, number: int) -> None:
        """Note an unindexed row by the number of its key, if those before it are noted."""
        if slot == self._noted:
            self._noted = slot + 1
            if number in self._by_number:
                self._by_number[number].append(slot)
            else:
                self._by_number[number] = [slot]

    def _note_last(self) -> None:
        """Note all unindexed rows by the numbers of their keys: single probes then find them at once."""
        for slot, number in enumerate(self._rows.numbers.values[self._noted :].tolist(), self._noted):
            self.note(slot, number)

    def _note_anew(self) -> None:
        self._by_number, self._noted = {}, self.indexed

    def run_of(self, at: Rows, slots: Rows) -> tuple[SortedRun, RunRanges]:
        """Return what each probe has found as a run, with a range of its own for each."""
        rows = self._rows
        codes = self._encoding.codes(rows.numbers.take(slots), rows.le.take(slots))
        order = order_by([at, codes])
        if order is not None:
            at, slots, codes = at[order], slots[order], codes[order]
        size = np.bincount(at)
        asking = flatnonzero(size)
        size = size[asking]
        return SortedRun(Spans(codes, codes), slots), RunRanges(asking, np.cumsum(size) - size, size)

    def _of_few(self, probe: Probe) -> Iterator[tuple[int, SortedRun, int, int]]:
        """Search the runs probe by probe, and yield the ranges found."""
        runs = self._all_runs()
        for row, (number, lo, hi) in enumerate(zip(*(column.tolist() for column in probe), strict=True)):
            for run, first, last in self._ranges_of(number, lo, hi, runs):
                yield row, run, first, last

    def _ranges_of(self, number: int, lo: int, hi: int, runs: Sequence[SortedRun]) -> Iterator[tuple[SortedRun, int, int]]:
        """Yield each run with the range of it in which rows of a key that live in `[lo, hi)` may be."""
        encoding = self._encoding
        block = encoding.block(number)
        for run in runs:
            first, last = run.range(block | encoding.place(lo), block | encoding.place(hi - 1))
            if first < last:
                yield run, first, last

    def _of_many(self, probe: Probe, runs: list[SortedRun]) -> Iterator[tuple[Rows, Rows]]:
        """Search for the probes in each run, or for the rows of a short run among the probes, unless that finds too much."""
        spans, order = self._sorted(*probe)
        asking = None
        for run in runs:
            if 4 * len(run) < len(order):
                asking = asking or SortedRun(spans, order)
                ranges = asking.ranges(Spans(run.first, self._last_of(run.slots)))
                if ranges.size.sum() <= 4 * len(order):
                    yield from ((order[places], run.slots[rows]) for rows, places in ranges.expanded())
                    continue
            yield from ((order[rows], run.slots[places]) for rows, places in run.ranges(spans).expanded())

    def _last_of(self, slots: Rows) -> Column:
        first = self._rows.le.take(slots)
        last = np.maximum(self._rows.ends(slots), first + 1) - 1  # a row that is gone has its end before its start
        return self._encoding.codes(self._rows.numbers.take(slots), last)

    def _sorted(self, numbers: Column, le: Ticks, re: Ticks) -> tuple[Spans, Rows]:
        """Return lifetimes as codes, in order of their first ones, and that order."""
        encoding = self._encoding
        keys, places = encoding.keys(numbers), encoding.places(le)
        order = order_by([keys, places])
        first = encoding.codes_of(keys, places)
        first = first if order is None else first.take(order)
        length = encoding.length(le, re)
        if length is not None:
            last = first + length
        else:
            last = encoding.codes_of(keys, encoding.places(re - 1))
            last = last if order is None else last.take(order)
        return Spans(first, last), np.arange(len(first)) if order is None else order

    def _index_rest(self) -> None:
        """Make a run of the unindexed rows of each magnitude."""
        rows, last = self._rows, slice(self.indexed, None)
        slots = np.arange(self.indexed, len(rows))
        self.indexed = len(rows)
        self._note_anew()
        numbers, le, re = rows.numbers.take(last), rows.le.take(last), rows.ends(last)
        if not (re > le).all():
            there = flatnonzero(re > le)
            numbers, le, re, slots = numbers[there], le[there], re[there], slots[there]
        for magnitude, here in by_magnitude(le, re):
            runs = self._runs.setdefault(magnitude, [])
            spans, order = self._sorted(numbers[here], le[here], re[here])
            runs.append(SortedRun(spans, slots[here].take(order)))
            _compact(runs)

    def gone(self, le: Ticks, re: Ticks) -> None:
        """Count indexed rows that are gone. Once they are half of a magnitude, its runs are rewritten without them."""
        for magnitude, rows in by_magnitude(le, re):
            self._gone[magnitude] += len(le[rows])
            runs = self._runs.get(magnitude, [])
            if 2 * self._gone[magnitude] > sum(map(len, runs)):
                self._gone[magnitude] = 0
                self._replace(magnitude, [run.moved(self._still_there(run.slots)) for run in runs])

    def _still_there(self, slots: Rows) -> Rows:
        return np.where(self._rows.ends(slots) > self._rows.le.take(slots), slots, -1)

    def _replace(self, magnitude: int, runs: list[SortedRun]) -> None:
        self._runs[magnitude] = [run for run in runs if len(run)]
        _compact(self._runs[magnitude])
        if not self._runs[magnitude]:
            del self._runs[magnitude]

    def rebuild(self) -> None:
        """Drop all runs, because the codes have changed: all rows are unindexed then."""
        self._runs, self.indexed, self._version = {}, 0, self._encoding.version
        self._note_anew()
        self._gone.clear()

    def move(self, places: Rows) -> None:
        """Move rows to other slots; -1 drops them."""
        self.indexed = int((places[: self.indexed] >= 0).sum())
        self._note_anew()
        self._gone.clear()
        for magnitude, runs in list(self._runs.items()):
            self._replace(magnitude, [run.moved(places[run.slots]) for run in runs])


def _compact(runs: list[SortedRun]) -> None:
    while len(runs) > 1 and (len(runs[-2]) <= len(runs[-1]) or len(runs[-2]) <= _SMALL):
        runs[-2:] = [runs[-2].merged(runs[-1])]


def by_magnitude(le: Ticks, re: Ticks) -> Iterator[tuple[int, Rows | slice]]:
    """Yield each magnitude of the durations of some rows, with the rows that have it.

    >>> [(magnitude, rows) for magnitude, rows in by_magnitude(np.array([0, 5]), np.array([3, 14]))]
    [(1, slice(None, None, None))]
    """
    if not len(le):
        return
    durations = re - le
    least, most = magnitudes(np.array([0, 0]), np.array([durations.min(), durations.max()])).tolist()
    if least == most < _UNBOUNDED and int(re.max()) < INFINITY:
        yield least, slice(None)
        return
    found = magnitudes(le, re)
    for magnitude in flatnonzero(np.bincount(found)).tolist():
        yield magnitude, flatnonzero(found == magnitude)


def magnitudes(le: Ticks, re: Ticks) -> Rows:
    """Return the magnitudes of durations, to the base of sixteen. The longest count as unbounded.

    >>> magnitudes(np.array([0, 0, 0]), np.array([15, 16, INFINITY])).tolist()
    [1, 2, 20]
    """
    durations = re - le
    bits = (durations.astype(np.float64).view(np.int64) >> 52) - 1022
    return np.where((durations <= 0) | (bits > 60) | (re == INFINITY), _UNBOUNDED, (bits + 3) >> 2)
