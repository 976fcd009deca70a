"""The buffer: the rows that the windows of a grid may still need, and which of them are in a window.

A row is found by its LE, which lies in its windows but for those that start later. Rows that reach the start of a later window
are also kept apart by the magnitude of their duration, so that one long row never makes the search for short ones long.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from streamdsl.engine.buffered.group_times import GroupTimes
from streamdsl.engine.buffered.rows import NewRows, RowTable
from streamdsl.engine.buffered.runs import Order, Run, SortedRows, in_order, spread
from streamdsl.engine.ids import Ids
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks
from streamdsl.windows import Hopping

_UNENDING: Final = 64
"""The magnitude of rows without end."""
_WORTH: Final = 16
"""To sort a member by itself costs as much as to put so many rows into one run."""
LITTLE: Final = 512
"""With so many pairs of rows and windows, to look through all is cheaper than to keep rows in order."""
FEW: Final = 256
"""So few rows are not worth a sweep."""


class Members(NamedTuple):
    """The members of windows: those of window i are at `places[lo[i]:hi[i]]`; windows that overlap may share them."""

    places: Rows
    lo: Rows
    hi: Rows

    def at(self, windows: Rows) -> Members:
        """Return those of some windows."""
        return Members(self.places, self.lo[windows], self.hi[windows])


class Buffer:
    """Rows by group and LE."""

    def __init__(self, grid: Hopping, n_arguments: int, order: Order) -> None:
        self.grid = grid
        self.order = order
        self.rows = RowTable(n_arguments, order is not Order.ANY)
        self.by_start = SortedRows(self.rows, order)
        self.reaching: dict[int, SortedRows] = {}
        self.limit = MIN_TIME
        """The rows that end before this time are not needed any more."""
        self._new: list[Rows] = []
        self._latest = MIN_TIME
        self._n_kept = 0
        self._middle = INFINITY

    def add(self, new: NewRows) -> Rows:
        """Add rows, and return their places."""
        if not len(new.le):
            return np.empty(0, dtype=np.intp)
        places = self.rows.add(new)
        self._latest = max(self._latest, int(new.re.max()))
        self._new.append(places)
        return places

    def _sort_in(self, places: Rows) -> None:
        """Put rows into the runs, when someone asks for more than can be looked through."""
        self._new = []
        self.by_start.add(places)
        le, re = self.rows.le[places], self.rows.re[places]
        reaching = flatnonzero(re > self._next_starts(le))
        if not len(reaching):
            return
        magnitudes = _magnitudes(le[reaching], re[reaching])
        for magnitude in set(magnitudes.tolist()):
            known = self.reaching.get(magnitude)
            if known is None:
                known = self.reaching[magnitude] = SortedRows(self.rows, Order.ANY)
            known.add(places[reaching[magnitudes == magnitude]])

    def _next_starts(self, le: Ticks) -> Ticks:
        """Return the first start of a window after each time, INFINITY where that may leave time."""
        gap = self.grid.hop - (le - self.grid.offset) % self.grid.hop
        return np.where(le > INFINITY - self.grid.hop, INFINITY, le + gap)

    def remove(self, ids: Ids, le: Ticks) -> Rows:
        """Let rows go, and return the places where they were: what they held is there until the next sweep."""
        return self.rows.remove(ids, le)

    def members(self, groups: Ticks, starts: Ticks) -> Members:
        """Return the members of windows, in order. O(those found) amortised, if many windows share some then once for all."""
        if len(self.rows) * len(starts) <= LITTLE:
            return self._looked_through(groups, starts)
        if self._new:
            self._sort_in(np.concatenate(self._new))
        found = self._ranges(groups, starts)
        n_found = sum(int((stop - start).sum()) for _, start, stop in found)
        if n_found * _WORTH >= len(self.by_start) and not self.by_start.is_tidy:
            self.by_start.tidy()
            found = self._ranges(groups, starts)
        windows, places = self._reaching(groups, starts)
        if self.by_start.is_tidy:
            if not found:
                return self._in_order(windows, places, len(starts))
            return self._after(*found[0], self._in_order(windows, places, len(starts))) if len(places) else _shared(*found[0])
        return self._gathered(found, windows, places, len(starts))

    def _after(self, run: Run, start: Rows, stop: Rows, reaching: Members) -> Members:
        """Return as members those that have begun before, then these ranges of a run, without rows that are gone."""
        run.settle()
        sizes, before = stop - start, reaching.hi - reaching.lo
        stops = np.cumsum(sizes + before)
        lo = stops - sizes - before
        places = np.empty(len(reaching.places) + int(sizes.sum()), dtype=np.intp)
        is_own = np.ones(len(places), dtype=np.bool_)
        at = np.arange(len(reaching.places)) + np.repeat(lo - reaching.lo, before)
        places[at], is_own[at] = reaching.places, False
        places[is_own] = run.places[spread(start, stop)[1]]
        return Members(places, lo, stops)

    def _looked_through(self, groups: Ticks, starts: Ticks) -> Members:
        """Return the members of a few windows, found among all rows."""
        rows, ends = self.rows, starts + self.grid.size
        is_member = (rows.le < ends[:, None]) & (rows.re > starts[:, None]) & (rows.groups == groups[:, None]) & rows.alive
        windows, places = np.nonzero(is_member)
        return self._in_order(windows, places, len(starts))

    def _ranges(self, groups: Ticks, starts: Ticks) -> list[tuple[Run, Rows, Rows]]:
        ends = starts + self.grid.size
        return [(run, *run.ranges(groups, starts, ends)) for run in self.by_start.runs]

    def _reaching(self, groups: Ticks, starts: Ticks) -> tuple[Rows, Rows]:
        """Return the rows that start before a window and end in it or after it, each with the window's place."""
        windows, places = [np.empty(0, dtype=np.intp)], [np.empty(0, dtype=np.intp)]
        for magnitude, rows in self.reaching.items():
            first = _earliest(starts, magnitude)
            for run in rows.runs:
                at, found = spread(*run.ranges(groups, first, starts))
                found = run.places[found]
                inside = flatnonzero(self.rows.alive[found] & (self.rows.re[found] > starts[at]))
                windows.append(at[inside])
                places.append(found[inside])
        return np.concatenate(windows), np.concatenate(places)

    def _gathered(self, found: list[tuple[Run, Rows, Rows]], windows: Rows, places: Rows, n_windows: int) -> Members:
        """Return the members of windows, each window's by themselves."""
        parts = [(run, *spread(start, stop)) for run, start, stop in found]
        windows = np.concatenate([windows, *(at for _, at, _ in parts)])
        places = np.concatenate([places, *(run.places[rows] for run, _, rows in parts)])
        alive = flatnonzero(self.rows.alive[places])
        return self._in_order(windows[alive], places[alive], n_windows)

    def _in_order(self, windows: Rows, places: Rows, n_windows: int) -> Members:
        """Return rows as members of windows, each window's in order."""
        if self.order is Order.ANY:
            places = places[np.argsort(windows, kind="stable")]
        elif len(places):
            times = self.rows.le[places]
            places = in_order(self.rows, places, GroupTimes(windows, times).pack(windows, times), self.order)
        stops = np.cumsum(np.bincount(windows, minlength=n_windows))
        return Members(places, np.concatenate([[0], stops[:-1]]), stops)

    def settle(self) -> None:
        """Let go what is not there any more, if that is much: all places change."""
        if self.rows.n_gone > max(FEW, len(self.rows) // 2):
            self._sweep()

    def forget(self, limit: int) -> None:
        """Let go the rows with RE < `limit`, when half of all have ended: then a sweep costs what it frees."""
        self.limit = limit
        n_rows = len(self.rows)
        if limit > self._latest:
            if n_rows:
                self._sweep()
        elif n_rows > FEW and (limit > self._middle or n_rows >= 2 * self._n_kept):
            self._sweep()

    def _sweep(self) -> None:
        places = flatnonzero(self.rows.alive & (self.rows.re >= self.limit))
        renumbered = np.full(len(self.rows), -1, dtype=np.intp)
        renumbered[places] = np.arange(len(places))
        self.rows.keep(places)
        self._n_kept = len(places)
        self._middle = int(np.partition(self.rows.re, len(places) // 2)[len(places) // 2]) if len(places) else INFINITY
        self._new = [renumbered[new][renumbered[new] >= 0] for new in self._new]
        self.by_start.renumber(renumbered)
        for rows in self.reaching.values():
            rows.renumber(renumbered)
        self.reaching = {magnitude: rows for magnitude, rows in self.reaching.items() if len(rows)}

    def __len__(self) -> int:
        return int(np.count_nonzero(self.rows.alive & (self.rows.re >= self.limit)))

    def held_groups(self) -> Ticks:
        """Return the groups of the rows that are still needed."""
        return np.unique(self.rows.groups[self.rows.alive & (self.rows.re >= self.limit)])


def _magnitudes(le: Ticks, re: Ticks) -> Rows:
    """Return for each lifetime an even m with RE - LE < 2 ** m, about the smallest."""
    spans = (re.astype(np.uint64) - le.astype(np.uint64)).astype(np.float64)
    magnitudes: Rows = np.where((re == INFINITY) | (spans >= 2.0**61), _UNENDING, (np.frexp(spans * (1 + 1e-12))[1] + 1) & ~1)
    return magnitudes


def _earliest(starts: Ticks, magnitude: int) -> Ticks:
    """Return the earliest LE with which a row of a magnitude can reach each start."""
    if magnitude == _UNENDING:
        return np.full(len(starts), MIN_TIME)
    longest = 2**magnitude
    earliest: Ticks = np.maximum(starts, MIN_TIME + longest) - longest
    return earliest


def _shared(run: Run, lo: Rows, hi: Rows) -> Members:
    """Return ranges of a run as members: what several ranges have in common is there once."""
    run.settle()
    order = np.argsort(lo)
    first, last = lo[order], hi[order]
    furthest = np.maximum.accumulate(last)
    begins = np.concatenate([[True], first[1:] > furthest[:-1]])
    heads = flatnonzero(begins)
    start, stop = first[heads], furthest[np.concatenate([heads[1:] - 1, [len(first) - 1]])]
    moved = (start - (np.cumsum(stop - start) - (stop - start)))[np.cumsum(begins) - 1]
    places = run.places[start[0] : stop[0]] if len(start) == 1 else run.places[spread(start, stop)[1]]
    new_lo, new_hi = np.empty_like(lo), np.empty_like(hi)
    new_lo[order], new_hi[order] = first - moved, last - moved
    return Members(places, new_lo, new_hi)


def _none(n_windows: int) -> Members:
    nothing = np.zeros(n_windows, dtype=np.intp)
    return Members(nothing[:0], nothing, nothing)
