"""A sorted run: slots of rows by key and LE, and the ranges of it in which partners may be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from streamdsl.engine.sorted.packed import Codes, order_of_codes
from streamdsl.engine.sorted.scale import Layout, is_sorted
from streamdsl.expr.table import Column, Rows
from streamdsl.temporal.time import MIN_TIME, Ticks

CHUNK: Final = 2**20
"""So many candidates are looked at together, unless one row has more."""
FEW: Final = 4
"""So few rows look one by one."""


class SortedRun:
    """Rows in order of (number of the key, LE); none of them lives for longer than `longest` (None: no bound is known).

    >>> run = SortedRun.of(np.array([1, 1, 1]), np.array([30, 10, 20]), np.array([0, 1, 2]), 5)
    >>> [(at.tolist(), slots.tolist()) for at, slots in run.candidates(np.array([1]), np.array([12]), np.array([21]))]
    [([0, 0], [1, 2])]
    """

    __slots__ = ("_codes", "_layout", "_longest", "slots")

    def __init__(self, layout: Layout, codes: Codes, slots: Rows, longest: int | None) -> None:
        self._layout = layout
        self._codes = codes
        self._longest = longest
        self.slots = slots

    @classmethod
    def of(cls, numbers: Column, le: Ticks, slots: Rows, longest: int | None) -> SortedRun:
        """Return a run of at least one row."""
        layout = Layout(numbers, le)
        codes = layout.codes(numbers, le)
        if is_sorted(codes):
            return cls(layout, codes, slots, longest)
        order = order_of_codes(codes, layout.bits)
        return cls(layout, codes[order], slots[order], longest)

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def nbytes(self) -> int:
        """The memory of its columns."""
        return self._codes.nbytes + self.slots.nbytes + self._layout.nbytes

    def merged(self, other: SortedRun) -> SortedRun:
        """Return both runs as one."""
        numbers, le = zip(self._layout.columns(self._codes), other._layout.columns(other._codes), strict=True)
        longest = None if self._longest is None or other._longest is None else max(self._longest, other._longest)
        slots = np.concatenate([self.slots, other.slots])
        layout = Layout(np.concatenate(numbers), np.concatenate(le))
        codes = layout.codes(np.concatenate(numbers), np.concatenate(le))
        order = np.argsort(codes, kind="stable")  # two runs that are sorted become one in linear time
        return SortedRun(layout, codes[order], slots[order], longest)

    def moved(self, slots: Rows) -> SortedRun:
        """Return the run of the rows that are kept (-1: not) in these slots."""
        kept = np.flatnonzero(slots >= 0)
        return SortedRun(self._layout, self._codes[kept], slots[kept], self._longest)

    def candidates(self, numbers: Column, lo: Ticks, hi: Ticks) -> Iterator[tuple[Rows, Rows]]:
        """Yield which asked, and the slots of rows with their number that start before `hi` and may live after `lo`."""
        if len(numbers) <= FEW:
            yield from self._of_few(numbers, lo, hi)
            return
        rows, since, until = self._layout.bounds(numbers, self._since(lo), hi)
        first = np.searchsorted(self._codes, since)
        some = self._any(first, until)
        first = first[some]
        count = np.searchsorted(self._codes, until[some]) - first
        for at, places in expanded(rows[some], first, count):
            yield at, self.slots[places]

    def _of_few(self, numbers: Column, lo: Ticks, hi: Ticks) -> Iterator[tuple[Rows, Rows]]:
        """Yield the candidates of one row after the other: of a few that takes less than columns do."""
        for row, number, since, until in zip(range(FEW), numbers.tolist(), self._since(lo).tolist(), hi.tolist(), strict=False):
            period = self._layout.period(number, since, until)
            if period is None:
                continue
            first, last = self._codes.searchsorted(period[0]), self._codes.searchsorted(period[1])
            if first < last:
                yield np.full(last - first, row, dtype=np.intp), self.slots[first:last]

    def _any(self, first: Rows, until: Codes) -> Rows:
        """Return which of these places have a code before the end: to look is cheaper than to search, and many have none."""
        inside = np.flatnonzero(first < len(self._codes))
        return inside[self._codes[first[inside]] < until[inside]]

    def _since(self, lo: Ticks) -> Ticks:
        """Return the first LEs of rows that may live after `lo`."""
        if self._longest is None:
            return np.full(len(lo), MIN_TIME, dtype=np.int64)
        within = self._longest - 1
        since: Ticks = np.maximum(lo, MIN_TIME + within) - within
        return since


def expanded(rows: Rows, first: Rows, count: Rows) -> Iterator[tuple[Rows, Rows]]:
    """Yield each row with each place of its range, some rows at a time.

    >>> [(rows.tolist(), places.tolist()) for rows, places in expanded(np.array([4, 7]), np.array([0, 9]), np.array([2, 1]))]
    [([4, 4, 7], [0, 1, 9])]
    """
    stops = np.cumsum(count)
    start = 0
    while start < len(rows):
        done = int(stops[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(stops, done + CHUNK, side="right")))
        part = slice(start, stop)
        total = int(stops[stop - 1]) - done
        begins = first[part] - (stops[part] - count[part] - done)
        yield np.repeat(rows[part], count[part]), np.repeat(begins, count[part]) + np.arange(total)
        start = stop
