"""The arrangement: the rows that windows may still need, in columns, indexed by partition and extent in time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.batch import Batch
from streamdsl.engine.buffered.row_table import NewRows, RowTable
from streamdsl.engine.buffered.runs import SortedRows
from streamdsl.engine.frames.stretches import Stretches
from streamdsl.engine.pairs import distinct, spread
from streamdsl.engine.sorting import sorted_integers, stable_order
from streamdsl.expr.table import Column, Rows, flatnonzero
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks

_SPARE: Final = 256
"""The rows that may be kept beyond those that are needed: a sweep has a cost too."""
_FEW: Final = 8192
"""Up to this many rows are scanned; no index is kept."""
_SCANNED: Final = 16
"""The cost of looking a stretch up in the index, in rows scanned."""
_FOUND: Final = 4
"""The cost of finding a row in the index, in rows scanned."""
_STEP: Final = 2
"""Rows are indexed apart by duration, in powers of 2 ** _STEP."""


PlacesOf: TypeAlias = Callable[[Rows, Ticks], Column]


class Moves(NamedTuple):
    """The place of each changed row before and after, -1 where there is no row."""

    before: Rows
    after: Rows


class _ByEnd:
    """Rows in order of RE."""

    payloads = None

    def __init__(self, rows: RowTable) -> None:
        self._rows = rows

    @property
    def groups(self) -> Ticks:
        return self._rows.groups

    @property
    def le(self) -> Ticks:
        return self._rows.re

    @property
    def alive(self) -> Column:
        return self._rows.alive

    @property
    def n_gone(self) -> int:
        return self._rows.n_gone


class Arrangement:
    """Rows indexed by partition and time, as in differential dataflow, but with a lifetime instead of a point.

    A row whose end changes moves to a new place; a place is used once, until `forget` sweeps. Rows are indexed apart by the
    magnitude of their duration, in sorted runs that are merged as they grow, so that one long row does not make the search for
    short ones long. A search costs O(log n + rows found) for each stretch and magnitude; where many of few rows are found, all
    are scanned instead.
    """

    def __init__(self, n_arguments: int, has_payloads: bool, by_point: bool = False, by_end: bool = False) -> None:
        self.rows = RowTable(n_arguments, has_payloads)
        self._by_point = by_point
        self._by_end = by_end
        self._runs: dict[int, SortedRows] = {}
        self._unsorted: list[Rows] = []
        self._marked: list[Rows] = []
        self._found = INFINITY
        """How many rows the last search found; at first, all are expected."""
        self.marks_new = False
        """Whether inserted rows are marked."""
        self._most = _SPARE

    def __len__(self) -> int:
        return len(self.rows) - self.rows.n_gone

    def change(self, batch: Batch, codes: Rows, new_rows: Callable[[Batch, Rows], NewRows]) -> Moves:
        """Apply a batch of changes, and return the place of each row before and after."""
        rows, n_rows = self.rows, len(batch)
        before, after = np.full(n_rows, -1, dtype=np.intp), np.full(n_rows, -1, dtype=np.intp)
        is_known, stays = batch.re_old > batch.le, batch.re_new > batch.le
        if is_known.any():
            known = flatnonzero(is_known)
            before[known] = rows.remove(batch.ids[known], batch.le[known])
            # The end of a row may still change after the row has been dropped, as no window needs it.
            moved = flatnonzero(stays & (before >= 0))
            if len(moved):
                after[moved] = self._add(rows.at(before[moved], batch.re_new[moved]))
        new = flatnonzero(stays & ~is_known)
        if len(new):
            after[new] = self._add(new_rows(batch.only(new), codes[new]))
        return Moves(before, after)

    def _add(self, new: NewRows) -> Rows:
        places = self.rows.add(new)
        self._unsorted.append(places)
        if self.marks_new:
            self.mark(places)
        return places

    def add_one(self, id: Hashable, code: int, le: int, re: int, arguments: Sequence[Any]) -> int:
        """Insert a single row, unmarked, and return its place."""
        place = self.rows.add_one(id, code, le, re, arguments)
        self._unsorted.append(np.array([place]))
        return place

    def mark(self, places: Rows) -> None:
        """Mark rows, until `take_marked`."""
        if len(places):
            self._marked.append(places)

    @property
    def n_marked(self) -> int:
        """An upper bound of the marked rows: some may have been removed since."""
        return sum(map(len, self._marked))

    def marked(self) -> Rows:
        """Return the marked rows."""
        places = np.concatenate([np.empty(0, dtype=np.intp), *self._marked])
        return places[flatnonzero(self.rows.alive[places])]

    def take_marked(self) -> Rows:
        """Return the marked rows, and clear the marks."""
        places, self._marked = self.marked(), []
        return places

    def extents(self, places: Rows) -> tuple[Ticks, Ticks]:
        """Return the periods by which rows are found: their lifetimes, or the chronon at LE, or at RE."""
        return self.extents_of(self.rows.le[places], self.rows.re[places])

    def extents_of(self, le: Ticks, re: Ticks) -> tuple[Ticks, Ticks]:
        """Do the same for lifetimes; an empty one has an empty period."""
        if not self._by_point:
            return le, re
        return (re, np.where((re == INFINITY) | (re <= le), re, re + 1)) if self._by_end else (le, np.where(re > le, le + 1, le))

    def among(self, code: int, lo: int, hi: int) -> Rows:
        """Return the rows of a partition that overlap a period. Raises `ArithmeticError` if there are too many rows to scan."""
        if len(self.rows) > _FEW:
            raise ArithmeticError("rows are looked for in order")
        rows = self.rows
        starts, ends = (rows.le, rows.re) if not self._by_point else (rows.re, rows.re) if self._by_end else (rows.le, rows.le)
        is_inside = (rows.groups == code) & rows.alive & (starts < hi)
        is_inside &= (ends >= lo) if self._by_point else (ends > lo)
        return flatnonzero(is_inside)

    def overlapping(self, stretches: Stretches, places_of: PlacesOf) -> Rows:
        """Return the rows that overlap some stretches, each once, by partition and start.

        The stretches are merged; `places_of` maps times of partitions to places. They are in order, because a binary search for
        ascending values is several times as fast.
        """
        is_scanned = len(self.rows) <= _FEW + _SCANNED * len(stretches) + _FOUND * self._found
        places = (self._scanned if is_scanned else self._searched)(stretches, places_of)
        self._found = len(places)
        return places

    def _searched(self, stretches: Stretches, places_of: PlacesOf) -> Rows:
        if self._unsorted:
            self._sort()
        found = [np.empty(0, dtype=np.intp)]
        for magnitude, rows in self._runs.items():
            longest = 1 << min(_STEP * magnitude, 62)
            first = np.where(stretches.lo < MIN_TIME + longest, MIN_TIME, stretches.lo - longest)
            for run in rows.runs:
                at, among = spread(*run.ranges(stretches.codes, first, stretches.hi))
                places = run.places[among]
                _, ends = self.extents(places)
                found.append(places[flatnonzero(self.rows.alive[places] & (ends > stretches.lo[at]))])
        places = distinct(np.concatenate(found), len(self.rows))
        return places[sorted_integers(places_of(self.rows.groups[places], self.extents(places)[0]))[0]]

    def _scanned(self, stretches: Stretches, places_of: PlacesOf) -> Rows:
        alive = flatnonzero(self.rows.alive)
        if not len(alive) or not len(stretches):
            return alive[:0]
        groups, (starts, ends) = self.rows.groups[alive], self.extents(alive)
        is_last = np.append(stretches.codes[1:] > stretches.codes[:-1], True)
        near = flatnonzero(_are_near(stretches, is_last, groups, starts, ends))
        alive = alive[near]
        low = places_of(groups[near], starts[near])
        if not is_last.all():
            # Of the stretches that begin before a row ends the last reaches furthest. There is one, as its partition has some.
            at = np.searchsorted(stretches.low, places_of(groups[near], ends[near])) - 1
            found = flatnonzero(stretches.high.take(at, mode="clip") > low)
            alive, low = alive[found], low[found]
        return alive[stable_order(low)]

    def _sort(self) -> None:
        places, self._unsorted = np.concatenate(self._unsorted), []
        starts, ends = self.extents(places)
        if self._by_point:
            self._sorted_of(0).add(places[flatnonzero(starts != INFINITY)])
            return
        spans = (ends.astype(np.uint64) - starts.astype(np.uint64)).astype(np.float64)
        magnitudes = np.where(ends == INFINITY, 64, (np.frexp(spans * (1 + 1e-12))[1] + _STEP - 1) // _STEP)
        for magnitude in set(magnitudes.tolist()):
            self._sorted_of(magnitude).add(places[flatnonzero(magnitudes == magnitude)])

    def _sorted_of(self, magnitude: int) -> SortedRows:
        known = self._runs.get(magnitude)
        if known is None:
            rows: Any = _ByEnd(self.rows) if self._by_end else self.rows
            known = self._runs[magnitude] = SortedRows(rows)
        return known

    def forget(self, is_needed: Callable[[Rows], NDArray[np.bool_]]) -> None:
        """Drop the rows that are not needed, once they may be half of all. `is_needed` says which places are."""
        if len(self.rows) <= self._most:
            return
        alive = flatnonzero(self.rows.alive)
        kept = alive[flatnonzero(is_needed(alive))]
        renumbered = np.full(len(self.rows), -1, dtype=np.intp)
        renumbered[kept] = np.arange(len(kept))
        self.rows.keep(kept)
        self._unsorted, self._marked = (
            [left[flatnonzero(left >= 0)] for left in ([renumbered[np.concatenate(parts)]] if parts else [])]
            for parts in (self._unsorted, self._marked)
        )
        for rows in self._runs.values():
            rows.renumber(renumbered)
        self._runs = {magnitude: rows for magnitude, rows in self._runs.items() if len(rows)}
        self._most = 2 * len(kept) + _SPARE


def _are_near(stretches: Stretches, is_last: NDArray[np.bool_], codes: Rows, lo: Ticks, hi: Ticks) -> NDArray[np.bool_]:
    """Say which rows overlap the period from the first to the last stretch of their partition."""
    n_codes = 1 + max(int(codes.max()), int(stretches.codes[-1]))
    begins, ends = np.full(n_codes, INFINITY), np.full(n_codes, MIN_TIME)
    is_first = np.append(True, is_last[:-1])
    begins[stretches.codes[is_first]], ends[stretches.codes[is_last]] = stretches.lo[is_first], stretches.hi[is_last]
    are_near: NDArray[np.bool_] = (lo < ends[codes]) & (hi > begins[codes]) & (lo < hi)
    return are_near
