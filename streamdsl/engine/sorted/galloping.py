"""Galloping search: reads the rows that start in a period from one end on, until those found show that no later one matters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import numpy as np

from streamdsl.engine.sorted.overlap import OverlapIndex, Probe
from streamdsl.engine.sorted.sorted_run import RunRanges, SortedRun
from streamdsl.engine.sorting import Codes
from streamdsl.expr.table import Rows, flatnonzero

Look: TypeAlias = Callable[[Rows, Rows], tuple[Rows, Rows]]
"""Given probes and the slots of candidates: which candidates are found, and which of them limit the search."""

_NO_RANGES: Final = RunRanges(*np.empty((3, 0), dtype=np.intp))
_LEAST: Final = np.iinfo(np.int64).min
_MOST: Final = np.iinfo(np.int64).max


class GallopingSearch:
    """All probes search at the same time, through 1 row, then 2, 4, 8, ...: each reads at most twice the rows that it needs.

    A run is in order of codes, and rows with the same code are in any order; so a limit is a code, and rows that have it are
    still read. If reading is cheap (`is_cheap`), all unindexed rows are read at once.
    """

    def __init__(self, index: OverlapIndex, probe: Probe, is_forward: bool, look: Look, is_cheap: bool) -> None:
        self._index = index
        self._probe = probe
        self._is_forward = is_forward
        self._look = look
        self._is_cheap = is_cheap
        self._limits: Codes = np.full(len(probe.lo), _MOST if is_forward else _LEAST, dtype=np.int64)

    def found(self) -> Iterator[tuple[Rows, Rows]]:
        """Yield pairs of a probe and the slot of a row that it finds."""
        at, slots = self._index.among_unindexed(self._probe)
        if len(at) and self._is_cheap:
            found, _ = self._look(at, slots)
            yield at[found], slots[found]
        elif len(at):
            yield from self._through(*self._index.run_of(at, slots))
        for run, ranges in self._index.ranges(self._probe):
            yield from self._through(run, ranges)

    def _through(self, run: SortedRun, ranges: RunRanges) -> Iterator[tuple[Rows, Rows]]:
        width = 1
        while len((ranges := self._continuing(run, ranges)).rows):
            near, ranges = self._split(ranges, width)
            for at, places in near.expanded():
                yield self._looked(run, at, places)
            width *= 2

    def _continuing(self, run: SortedRun, ranges: RunRanges) -> RunRanges:
        """Return the ranges whose next row is not beyond the limit."""
        if not len(ranges.rows):
            return ranges
        limits = self._limits[ranges.rows]
        if self._is_forward:
            on = flatnonzero(run.first[ranges.first] <= limits)
        else:
            on = flatnonzero(run.first[ranges.first + ranges.size - 1] >= limits)
        return ranges if len(on) == len(limits) else ranges.take(on)

    def _split(self, ranges: RunRanges, width: int) -> tuple[RunRanges, RunRanges]:
        """Split ranges: the next rows of each, as many as `width`, and the rest."""
        rows, first, size = ranges
        near = np.minimum(size, width)
        far = size - near
        if not far.any():
            return ranges, _NO_RANGES
        if self._is_forward:
            parts = RunRanges(rows, first, near), RunRanges(rows, first + near, far)
        else:
            parts = RunRanges(rows, first + far, near), RunRanges(rows, first, far)
        return parts[0], parts[1].take(flatnonzero(far > 0))

    def _looked(self, run: SortedRun, at: Rows, places: Rows) -> tuple[Rows, Rows]:
        slots = run.slots[places]
        found, limiting = self._look(at, slots)
        limit = np.minimum if self._is_forward else np.maximum
        limit.at(self._limits, at[limiting], run.first[places[limiting]])
        return at[found], slots[found]
