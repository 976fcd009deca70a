"""Snapshot windows: between consecutive endpoints of a partition (paper 001, III.B.3)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.buffered.members import Members
from streamdsl.engine.data_driven.sorted_index import Portion
from streamdsl.engine.frames.arrangement import Arrangement
from streamdsl.engine.frames.frame import ChangedRows, DisjointFrame, Policy, RowUpdate, WindowColumns
from streamdsl.engine.frames.stretches import Stretches
from streamdsl.engine.sorting import ascending, sorted_integers
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.temporal.time import CHRONON, INFINITY, MIN_TIME, Ticks
from streamdsl.windows import Output, Snapshot


class SnapshotFrame(DisjointFrame):
    """A window exists while it has rows; between two windows there are none."""

    are_uniform: ClassVar[bool] = True

    def __init__(self, policy: Policy, windows: Snapshot) -> None:
        super().__init__(policy, windows)
        self._last = np.empty(0, dtype=np.int64)
        self._cti = MIN_TIME

    def around(self, changed: ChangedRows, rows: Arrangement) -> Stretches:
        # Where an endpoint comes or goes a window may end, which is there a chronon before: it counts too. Where a row stays,
        # so does its LE; the rows of a window that ends there may be forgotten.
        lo, hi = self._span(changed)
        if self.policy.sees_ends:
            lo = np.where(changed.stay, lo, _before(lo))
        else:
            lo = _before(lo)
        around = self._widened(changed.codes, lo, np.where(hi == INFINITY, hi, hi + 1))
        table, due = self.table, self.due
        if not len(due):
            return around
        # Due windows have not changed, but their members are needed in the same step.
        codes, starts = np.concatenate([around.codes, table.code[due]]), np.concatenate([around.lo, table.le[due]])
        return table.stretches(codes, starts, np.concatenate([around.hi, table.re[due]])).merged()

    def windows(self, changed: ChangedRows, around: Stretches, portion: Portion, rows: Arrangement) -> WindowColumns:
        table = self.table
        places = rows.overlapping(around, table.any_places)
        codes, (le, re) = rows.rows.groups[places], rows.extents(places)
        ends = [around.low, around.high, table.any_places(codes, le), table.any_places(codes, re)]
        order, ordered = sorted_integers(np.concatenate(ends))
        is_first = np.append(True, ordered[1:] != ordered[:-1])
        ranks = np.empty(len(order), dtype=np.intp)
        ranks[order] = np.cumsum(is_first) - 1
        low_ranks, _, starts, stops = np.split(ranks, np.cumsum([len(part) for part in ends[:-1]]))
        numbers = ordered[flatnonzero(is_first)]
        # Endpoints beyond the stretches, where windows stay as they are, do not count.
        stretch = np.cumsum(np.bincount(low_ranks, minlength=len(numbers))) - 1
        is_inside = (stretch >= 0) & (numbers <= around.high.take(stretch, mode="clip"))
        is_window = np.append(is_inside[1:] & is_inside[:-1] & (stretch[1:] == stretch[:-1]), False)
        at = flatnonzero(is_window)
        before = np.cumsum(is_window) - is_window
        members = Members(places, before[starts], before[stops], len(at))
        filled = flatnonzero(members.sizes)
        self._looked_at, at = members.at(filled), at[filled]
        times = table.times(numbers)
        return WindowColumns(numbers[at], around.codes[stretch[at]], times[at], times[at + 1], members.sizes[filled])

    def take(self, code: int, le: int, re: int, place: int, held: Arrangement) -> RowUpdate:
        table = self.table
        low, high = table.place(code, le), table.place(code, re)
        step, at = RowUpdate([], [], [], [], []), le
        for slot in self._around(code, low, high, le):
            start, end = table.le.item(slot), table.re.item(slot)
            if start < le:
                slot = self._cut(slot, le, low, step)
            elif at < start:
                self._fill(code, at, start, step)
            if end > re:
                self._cut(slot, re, high, step)
            step.entered.append(slot)
            table.rows[slot] += 1
            at = end
        if at < re:
            self._fill(code, at, re, step)
        return step

    def _cut(self, slot: int, time: int, number: int, step: RowUpdate) -> int:
        """Split a window at a time, and return the second part."""
        table = self.table
        new = table.make_one(table.code.item(slot), time, table.re.item(slot), number)
        table.rows[new], table.re[slot] = table.rows[slot], time
        step.split.append((new, slot))
        step.moved.append(slot)
        return new

    def _fill(self, code: int, le: int, re: int, step: RowUpdate) -> None:
        """Create a window where there was none."""
        slot = self.table.make_one(code, le, re, self.table.place(code, le))
        self.table.rows[slot] = 1
        step.new.append(slot)
        step.entered.append(slot)

    def differ(self, changed: ChangedRows, found: WindowColumns) -> NDArray[np.bool_]:
        # All members of a snapshot live at its start: a later change only moves its end.
        spans = (self.table.any_places(changed.codes, times) for times in self._span(changed))
        first, last = (np.searchsorted(found.low, ascending(places), side="left") for places in spans)
        n_steps = len(found.low) + 1
        steps = np.bincount(first, minlength=n_steps) - np.bincount(last, minlength=n_steps)
        differ: NDArray[np.bool_] = np.cumsum(steps[:-1]) > 0
        return differ

    def closed_until(self, cti: int, rows: Arrangement) -> Ticks:
        # A window that ends at the CTI is open: the endpoint there may still go, and the window is then longer.
        return np.minimum(self.first_alive(cti, rows), max(cti, MIN_TIME + 1) - 1)

    def forget(self, cti: int, rows: Arrangement) -> None:
        if self.policy.time_sensitive:
            self._note_endpoints(cti, rows)
        super().forget(cti, rows)

    def _note_endpoints(self, cti: int, rows: Arrangement) -> None:
        """Record the last endpoint before the CTI of each partition: it is final."""
        self._grow()
        alive = flatnonzero(rows.rows.alive)
        for times in (rows.rows.le[alive], rows.rows.re[alive]):
            passed = flatnonzero((times >= self._cti) & (times < cti))
            np.maximum.at(self._last, rows.rows.groups[alive[passed]], times[passed])
        # A partition that is not needed any more starts afresh, whether or not its rows have been swept.
        needed = self.needed_codes(cti, rows)
        last, self._last = self._last, np.full(len(self._last), MIN_TIME)
        self._last[needed] = last[needed]
        self._cti = cti

    def _grow(self) -> None:
        n_codes = len(self.table.codes)
        if len(self._last) < n_codes:
            self._last = np.concatenate([self._last, np.full(2 * n_codes - len(self._last), MIN_TIME)])

    def is_needed(self, cti: int, rows: Arrangement, places: Rows) -> NDArray[np.bool_]:
        needed: NDArray[np.bool_] = rows.rows.re[places] > self.closed_until(cti, rows)[rows.rows.groups[places]]
        return needed

    def forget_partitions(self, codes: Rows) -> None:
        self._last[codes[codes < len(self._last)]] = MIN_TIME

    def settled_output(self, cti: int, rows: Arrangement) -> int:
        if not self.policy.time_sensitive:
            return cti
        first = self.first_alive(cti, rows)
        if self.policy.output is Output.POINT_AT_END:
            return min(cti, self._first_end(first))
        last = self._last[self._last != MIN_TIME]
        return int(min(last.min(initial=cti), first.min(initial=cti)))

    def _first_end(self, first: Ticks) -> int:
        """Return the smallest RE of the windows that start at these times, one for each partition."""
        slots = self.table.all()
        return int(self.table.re[slots][self.table.le[slots] == first[self.table.code[slots]]].min(initial=INFINITY))


def _before(times: Ticks) -> Ticks:
    """Return the chronons before."""
    return np.maximum(times, MIN_TIME + CHRONON) - CHRONON
