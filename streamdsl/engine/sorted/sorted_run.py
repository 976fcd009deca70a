"""A sorted run: slots of rows by key and LE, and the ranges of it in which partners may be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from streamdsl.engine.pairs import spread
from streamdsl.engine.sorting import Codes
from streamdsl.expr.table import Rows, flatnonzero

CHUNK: Final = 2**20
"""The most candidates that are expanded at once, unless a single probe has more."""


class Spans(NamedTuple):
    """Lifetimes as codes (`sort_keys.py`): of the first moment, and of the last."""

    first: Codes
    last: Codes


class RunRanges(NamedTuple):
    """For some probes (`rows`), a range of a run each: where it begins, and how many rows it has."""

    rows: Rows
    first: Rows
    size: Rows

    def take(self, at: Rows) -> RunRanges:
        """Return the ranges at these indices."""
        return RunRanges(self.rows[at], self.first[at], self.size[at])

    def expanded(self) -> Iterator[tuple[Rows, Rows]]:
        """Yield each probe with each place of its range, in chunks.

        >>> ranges = RunRanges(np.array([4, 7]), np.array([0, 9]), np.array([2, 1]))
        >>> [(rows.tolist(), places.tolist()) for rows, places in ranges.expanded()]
        [([4, 4, 7], [0, 1, 9])]
        """
        stops = np.cumsum(self.size)
        start = 0
        while start < len(stops):
            done = int(stops[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(stops, done + CHUNK, side="right")))
            part = slice(start, stop)
            at, places = spread(self.first[part], self.first[part] + self.size[part])
            yield self.rows[part][at], places
            start = stop


class SortedRun:
    """Rows in order of key and LE. At each, `_reach` is the latest end of it and the rows of its key before it.

    So the rows that live in a period are between two places, which are found by binary search: before the first, all rows have
    ended; from the second on, none has begun. A search costs O(log n).

    >>> run = SortedRun(Spans(np.array([10, 20, 30]), np.array([14, 24, 34])), np.array([0, 1, 2]))
    >>> run.ranges(Spans(np.array([16]), np.array([20])))
    RunRanges(rows=array([0]), first=array([1]), size=array([1]))
    """

    __slots__ = ("_reach", "first", "slots")

    def __init__(self, spans: Spans, slots: Rows) -> None:
        self.first = spans.first
        self._reach = np.maximum.accumulate(spans.last)
        self.slots = slots

    def __len__(self) -> int:
        return len(self.slots)

    def merged(self, other: SortedRun) -> SortedRun:
        """Return both runs as one; the larger reach of a row stays valid."""
        first = np.concatenate([self.first, other.first])
        order = np.argsort(first, kind="stable")  # linear, as both runs are sorted
        reach, slots = np.concatenate([self._reach, other._reach]), np.concatenate([self.slots, other.slots])
        return SortedRun(Spans(first[order], reach[order]), slots[order])

    def moved(self, slots: Rows) -> SortedRun:
        """Return the run with the rows in these slots; -1 drops a row."""
        kept = flatnonzero(slots >= 0)
        return SortedRun(Spans(self.first[kept], self._reach[kept]), slots[kept])

    def ranges(self, probe: Spans) -> RunRanges:
        """Return for each probe the range of rows that begin by its last moment and may live at its first.

        The probes must be in order of key and LE.
        """
        first = np.searchsorted(self._reach, probe.first)
        first = first[: first.searchsorted(len(self))]  # as probes are in order
        # A comparison is cheaper than a search, and many probes find nothing.
        rows = flatnonzero(self.first.take(first) <= probe.last[: len(first)])
        first = first.take(rows)
        return RunRanges(rows, first, np.searchsorted(self.first, probe.last.take(rows), side="right") - first)

    def range(self, first: int, last: int) -> tuple[int, int]:
        """Return the range for one probe."""
        return int(self._reach.searchsorted(first)), int(self.first.searchsorted(last, side="right"))
