"""The windows of a grid: they are there before any row; rows only enter and leave them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.columnar.grid_numbers import ENDLESS, GridNumbers
from streamdsl.engine.data_driven.timeline import UNTOUCHED, Touched
from streamdsl.engine.frames.arrangement import Arrangement
from streamdsl.engine.frames.covered import Covered, covered
from streamdsl.engine.frames.frame import MOST, ChangedRows, Frame, Policy, RowUpdate, refuse_unending
from streamdsl.engine.frames.window_table import WindowTable
from streamdsl.engine.frontiers import grid_cti
from streamdsl.engine.index.pair_index import PairIndex
from streamdsl.engine.pairs import distinct
from streamdsl.engine.window_budget import Arrivals
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks
from streamdsl.udm.invoke import stamp
from streamdsl.windows import Grid


class _Slots(PairIndex):
    """A slot for each window, by its number and the code of its partition. `new` are the slots made since it was last cleared."""

    def __init__(self) -> None:
        self.new: list[Rows] = []
        super().__init__()

    def made(self, slots: Rows) -> None:
        self.new.append(slots)


class GridTable(WindowTable):
    """Windows in slots, found by hashing: there may be many partitions, of which a change touches few."""

    def __init__(self, grid: Grid) -> None:
        super().__init__()
        self._grid = grid
        self._slots = _Slots()

    def __len__(self) -> int:
        return len(self._slots)

    def find(self, codes: Rows, numbers: Ticks) -> Rows:
        """Return the slots of windows; missing windows are created."""
        slots = self._slots.find(numbers, codes)
        made, self._slots.new = self._slots.new, []
        if made:
            self._begin(np.concatenate(made))
        return slots

    def find_one(self, code: int, number: int) -> tuple[int, bool]:
        """Return the slot of a single window, and whether it was created."""
        slot = self._slots.find_one(number, code)
        if not self._slots.new:
            return slot, False
        self._slots.new = []
        self._begin(np.array([slot]))
        return slot, True

    def _begin(self, new: Rows) -> None:
        if self._slots.size > self.capacity:
            self._grow(max(self._slots.size, 2 * self.capacity))
        self.code[new] = self._slots.group[new]
        numbers = self._slots.number[new]
        self.le[new], self.re[new] = self._grid.starts_of(numbers), self._grid.ends_of(numbers)
        self.rows[new] = 0
        self.results.enter(new, self.le[new], self.code[new])

    def release(self, slots: Rows) -> None:
        self._slots.release(slots)

    def all(self) -> Rows:
        """Return the slots of all windows, in no order."""
        return self._slots.slots()

    def keep(self, is_kept: NDArray[np.bool_]) -> None:
        self.drop(self.all()[~is_kept])


class GridFrame(Frame):
    """A window is in the table once it may show. Until then its rows are marked in the arrangement."""

    table: GridTable

    def __init__(self, policy: Policy, windows: Grid) -> None:
        super().__init__(policy, windows)
        self.grid = windows
        self.numbers = GridNumbers(windows, policy.emit_policy)
        self.table = GridTable(windows)
        self.last = MIN_TIME
        """The number of the last window that may show."""
        self._latest = MIN_TIME

    # Which windows change

    def change(self, changed: ChangedRows, rows: Arrangement) -> Touched:
        if self.last == MIN_TIME:
            return UNTOUCHED
        first = self.numbers.first_ending_after(changed.le)
        old, new = (self._stops(first, changed.le, re) for re in (changed.re_old, changed.re_new))
        signs = np.where(new < old, -1, 1)
        parts = [covered(changed.codes, np.minimum(old, new), np.maximum(old, new), signs)]
        if self.policy.time_sensitive and changed.stay.any():
            parts.append(self._seen_otherwise(changed, first))
        return self._touched(parts)

    def open(self, high_water: int, rows: Arrangement) -> Touched:
        """Open the windows that a high water lets show."""
        last = self.numbers.last_open(high_water)
        if last <= self.last:
            return UNTOUCHED
        places = rows.take_marked()
        if high_water == INFINITY and self.numbers.emit_policy.until == INFINITY:
            refuse_unending(self.grid, rows, places)
        codes, le, re = rows.rows.groups[places], rows.rows.le[places], rows.rows.re[places]
        stop = self._after_last(le, re)
        if high_water == INFINITY:  # a window that would end beyond the range of times never ends
            can_show = stop[(stop < ENDLESS) & (stop <= self.numbers.stop)]
            self._check(int(can_show.max(initial=self._latest + 1)) - 1)
        rows.mark(places[flatnonzero(stop > last + 1)])
        opened = self._between(codes, le, stop, last)
        self.last = last
        return self._touched([opened])

    def begun(self, high_water: int, rows: Arrangement) -> Rows:
        """Return temporary slots for the windows that have begun and may not show yet, in order."""
        waiting = self.waiting(high_water, rows)
        at, numbers = waiting.spread()
        return self.table.find(waiting.codes[at], numbers)

    def waiting(self, high_water: int, rows: Arrangement) -> Covered:
        """Return the windows that have begun, and may not show yet."""
        places = rows.marked()
        le = rows.rows.le[places]
        stop = self._after_last(le, rows.rows.re[places])
        return self._between(rows.rows.groups[places], le, stop, self.numbers.last_begun(high_water))

    def reserve(self, changed: ChangedRows, high_water: int) -> None:
        """Raise `UnboundedOutputError` if there is no room for windows that have begun, which rows come into."""
        last, first = self.numbers.last_begun(high_water), self.numbers.first_ending_after(changed.le)
        stop = np.minimum(self._after_last(changed.le, changed.re_new), last + 1)
        if float((stop - first).sum(dtype=np.float64)) > self.policy.budget.left:
            self.policy.budget.take(int(self._between(changed.codes, changed.le, stop, last).lengths.sum()))

    def _between(self, codes: Rows, le: Ticks, stop: Ticks, last: int) -> Covered:
        """Return the windows of rows up to a number that are not open yet."""
        first = np.maximum(self.numbers.first_ending_after(le), self.last + 1)
        return covered(codes, first, np.minimum(stop, last + 1), np.ones(len(le), dtype=np.int64))

    def _after_last(self, le: Ticks, re: Ticks) -> Ticks:
        """Return what comes after the last window of each row."""
        is_endless = re == INFINITY
        return np.where(is_endless, ENDLESS, self.numbers.after_last(le, np.where(is_endless, le, re)))

    def _stops(self, first: Ticks, le: Ticks, re: Ticks) -> Ticks:
        """Return what comes after the last window of each row that is open."""
        stops = np.minimum(self._after_last(le, re), self.last + 1)
        return np.where(re > le, np.maximum(stops, first), first)

    def _seen_otherwise(self, changed: ChangedRows, first: Ticks) -> Covered:
        """Return the windows in which rows stay that read differently to a module."""
        at = flatnonzero(changed.stay)
        le, earlier = changed.le[at], np.minimum(changed.re_old, changed.re_new)[at]
        # A clipped member reads differently only if the earlier of its two ends is inside of the window.
        lo = first[at] if self.policy.sees_ends else self.numbers.first_ending_after(earlier)
        return covered(changed.codes[at], lo, self._stops(first[at], le, earlier), np.zeros(len(at), dtype=np.int64))

    def _touched(self, parts: list[Covered]) -> Touched:
        """Update the numbers of rows in windows, and return these."""
        found = Covered(*map(np.concatenate, zip(*parts, strict=True))) if len(parts) > 1 else parts[0]
        if not len(found.codes):
            return UNTOUCHED
        self.policy.budget.take(int(found.lengths.sum()))
        at, numbers = found.spread()
        self._check(int(numbers.max()))
        table, slots = self.table, self.table.find(found.codes[at], numbers)
        np.add.at(table.rows, slots, found.more[at])
        slots = distinct(slots, table.capacity) if len(parts) > 1 else slots
        is_empty = table.rows[slots] == 0
        touched = slots[~is_empty]
        return Touched(touched, np.ones(len(touched), dtype=np.bool_), slots[is_empty])

    def _check(self, last: int) -> None:
        """Raise `TimeOverflow` if a window, or its results, end beyond the range of times."""
        if last > self._latest:
            stamp(self.grid.window(last), self.policy.output)
            self._latest = last

    # Row by row

    def takes(self, rows: Sequence[tuple[int, int, int]], high_water: int, held: Arrangement) -> bool:
        last = self.numbers.last_open(high_water)
        if last > self.last and held.n_marked:
            return False
        spans = [self.numbers.entered(le, le, re) for _, le, re in rows]
        if None in spans or sum(map(len, filter(None, spans))) > MOST:
            return False
        self.last = max(self.last, last)
        self._check(max([min(span.stop - 1, self.last) for span in spans if span], default=MIN_TIME))
        return True

    def take(self, code: int, le: int, re: int, place: int, held: Arrangement) -> RowUpdate:
        table, span = self.table, self.numbers.entered(le, le, re) or range(0)
        step = RowUpdate([], [])
        for number in range(span.start, min(span.stop, self.last + 1)):
            slot, is_new = table.find_one(code, number)
            table.rows[slot] += 1
            step.entered.append(slot)
            if is_new:
                step.new.append(slot)
        if span.stop > self.last + 1:
            held.mark(np.array([place]))
        return step

    # Bounds

    def n_waiting(self, rows: Arrangement) -> int:
        return rows.n_marked

    def max_new_windows(self, arrivals: Arrivals, high_water: int, rows: Arrangement) -> float:
        held, grid = rows.n_marked, self.grid
        opened = min(high_water, grid.start(self.last + 1)) if held else None
        groups, held = (arrivals.rows, held) if self.is_grouped else (1, min(held, 1))
        return arrivals.beyond(opened, grid.longest, grid.least_hop, groups, held)

    # Time

    def settled_output(self, cti: int, rows: Arrangement) -> int:
        return grid_cti(self.grid, self.policy.output, cti, self.closed(cti, rows))

    def closed(self, cti: int, rows: Arrangement) -> int:
        return super().closed(cti, rows) if self.policy.sees_ends else cti

    def is_needed(self, cti: int, rows: Arrangement, places: Rows) -> NDArray[np.bool_]:
        re, settled = rows.rows.re[places], self.closed_until(cti, rows)
        needed: NDArray[np.bool_] = re >= cti
        if cti == INFINITY:
            return needed
        grid = self.grid
        is_early = settled < grid.lowest
        first = np.where(is_early, MIN_TIME, grid.starts_of(grid.firsts_ending_after(np.where(is_early, 0, settled))))
        return needed | (re > first[rows.rows.groups[places]])

    def first_start(self, cti: int, rows: Arrangement) -> int:
        return cti

    def first_return(self, cti: int, rows: Arrangement) -> int:
        return self.grid.start(self.grid.first_ending_after(self.closed(cti, rows)))
