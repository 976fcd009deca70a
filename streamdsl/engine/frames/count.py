"""Count windows: N consecutive distinct starts, or ends, of a partition (paper 001, III.B.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.data_driven.sorted_index import Portion
from streamdsl.engine.data_driven.timeline import UNTOUCHED, Touched
from streamdsl.engine.frames.arrangement import Arrangement
from streamdsl.engine.frames.frame import MOST, ChangedRows, Frame, Policy, RowUpdate
from streamdsl.engine.sorting import sorted_integers
from streamdsl.expr.table import Column, Rows, flatnonzero
from streamdsl.temporal.time import CHRONON, INFINITY, MIN_TIME, Ticks, add_time
from streamdsl.windows import Count, Output


class ChangedPoints(NamedTuple):
    """The points at which rows have changed, in order, and the change in the number of rows at each."""

    low: Column
    codes: Rows
    times: Ticks
    more: Ticks


class CountFrame(Frame):
    """Every point is in the table. It starts a window, which has an end and rows once N - 1 points follow."""

    by_point: ClassVar[bool] = True

    def __init__(self, policy: Policy, windows: Count) -> None:
        super().__init__(policy, windows)
        self._n = windows.n
        self.by_end = windows.by == "end"
        self._kept: Ticks | None = None

    def change(self, changed: ChangedRows, rows: Arrangement) -> Touched:
        points = self._points(changed)
        if not len(points.times):
            return UNTOUCHED
        portion, at = self._counted(points)
        table, slots = self.table, portion.slots
        is_bare = table.starting[slots] == 0
        bare = flatnonzero(is_bare)
        gone = slots[bare]
        # A window that starts at one of the N - 1 points before has changed; so has one at the point itself.
        ranks = np.cumsum(~is_bare) - ~is_bare
        last = ranks[at] - is_bare[at]
        first = ranks[at] - (self._n - 1)
        portion = portion.without(bare)
        numbers, slots = portion.numbers, portion.slots
        steps = np.bincount(np.maximum(first, 0), minlength=len(slots) + 1) - np.bincount(last + 1, minlength=len(slots) + 1)
        near = flatnonzero(np.cumsum(steps[:-1]) > 0)
        re, sizes = self._windows(slots, near)
        windows = slots[near]
        self.formed = windows[(table.rows[windows] == 0) & (sizes > 0)]
        stop = np.searchsorted(points.low, table.any_places(table.code[windows], re))
        # Where a member ends does not matter to a window that has ended, unless a module sees that.
        has_changed = (stop > np.searchsorted(points.low, numbers[near])) & (self.policy.sees_ends | (re > self.cti))
        touched = windows[(table.re[windows] != re) | has_changed]
        table.re[windows], table.rows[windows] = re, sizes
        table.index.put(portion)
        return Touched(touched, np.ones(len(touched), dtype=np.bool_), gone)

    # Row by row

    def takes(self, rows: Sequence[tuple[int, int, int]], high_water: int, held: Arrangement) -> bool:
        # A point between others takes the last one out of windows, of which only their members tell what is left.
        if self.policy.time_sensitive or self._n * len(rows) > MOST:
            return False
        table = self.table
        points = [(code, re if self.by_end else le) for code, le, re in rows]
        first, last = min(point for _, point in points), max(point for _, point in points)
        if last >= INFINITY - CHRONON or not table.fit(first, last):
            return False
        latest: dict[int, int] = {}
        for code, point in points:
            low = table.place(code, point)
            numbers, _ = table.index.around(low, low + 1)
            if numbers[-1:] != [low]:
                if table.index.has_more(low, table.place(code, INFINITY), 0) or point < latest.get(code, point):
                    return False
                latest[code] = point
        return True

    def take(self, code: int, le: int, re: int, place: int, held: Arrangement) -> RowUpdate:
        table, point = self.table, re if self.by_end else le
        low = table.place(code, point)
        windows = [slot for slot in table.index.before(low, self._n - 1) if table.code.item(slot) == code]
        numbers, slots = table.index.around(low, low + 1)
        is_new = numbers[-1:] != [low]
        slot = table.make_one(code, point, INFINITY, low) if is_new else slots[-1]
        windows.append(slot)
        table.starting[slot] += 1
        for window in windows:
            table.rows[window] += table.rows.item(window) > 0
        if is_new and len(windows) == self._n:
            table.re[windows[0]] = add_time(point, CHRONON)
            table.rows[windows[0]] = table.starting[windows].sum()
        return RowUpdate(windows, [slot] if is_new else [])

    # Columns

    def _points(self, changed: ChangedRows) -> ChangedPoints:
        """Return the points that changed rows enter or leave, or where they read differently to a module."""
        codes, times, more = [], [], []
        for re, sign in ((changed.re_old, -1), (changed.re_new, 1)):
            there = re > changed.le
            there &= (re != INFINITY) if self.by_end else (True if self.policy.time_sensitive else ~changed.stay)
            at = flatnonzero(there)
            codes.append(changed.codes[at])
            times.append((re if self.by_end else changed.le)[at])
            more.append(np.full(len(at), sign))
        all_codes, all_times = np.concatenate(codes), np.concatenate(times)
        if not len(all_times):
            return ChangedPoints(all_times, all_codes, all_times, all_times)
        self.table.fit(int(all_times.min()), min(int(all_times.max()) + CHRONON, INFINITY - 1))
        order, ordered = sorted_integers(self.table.places(all_codes, all_times))
        heads = flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        first = order[heads]
        return ChangedPoints(
            ordered[heads], all_codes[first], all_times[first], np.add.reduceat(np.concatenate(more)[order], heads)
        )

    def _counted(self, points: ChangedPoints) -> tuple[Portion, Rows]:
        """Update the numbers of rows at points; return the portion with all of them, and their indices."""
        table = self.table
        portion = table.index.portion(points.low, points.low, self._n + len(points.low))
        at = np.searchsorted(portion.numbers, points.low)
        if len(portion.slots):
            new = flatnonzero(portion.numbers.take(at, mode="clip") != points.low)
        else:
            new = np.arange(len(at))
        if len(new):
            made = table.make(points.codes[new], points.times[new])
            portion = portion.insert(at[new], points.low[new], made)
            at += np.searchsorted(new, np.arange(len(at)))
        table.starting[portion.slots[at]] += points.more
        return portion, at

    def _windows(self, slots: Rows, near: Rows) -> tuple[Ticks, Ticks]:
        """Return the ends and sizes of the windows that start at some entries; the end is INFINITY if points are missing."""
        table = self.table
        last = near + self._n - 1
        end = slots[np.minimum(last, len(slots) - 1)]
        is_whole = (last < len(slots)) & (table.code[end] == table.code[slots[near]])
        if is_whole.any():
            add_time(int(table.le[end[is_whole]].max()), CHRONON)
        re = np.where(is_whole, table.le[end] + is_whole, INFINITY)
        sums = np.concatenate([[0], np.cumsum(table.starting[slots])])
        sizes = sums[np.minimum(last + 1, len(slots))] - sums[near]
        return re, np.where(is_whole, sizes, 0)

    # Time

    def _starts(self, codes: Rows, time: int | Ticks) -> tuple[Column, Rows, Rows]:
        """Return all slots, and for each partition where its points begin and where those from a time on do."""
        entries = self.table.index.all()
        times = np.broadcast_to(np.asarray(time, dtype=np.int64), codes.shape)
        begin = np.searchsorted(entries.numbers, self.table.any_places(codes, np.full(len(codes), MIN_TIME)))
        return entries.slots, begin, np.searchsorted(entries.numbers, self.table.any_places(codes, times))

    def _first_open(self, cti: int) -> Ticks:
        """Return for each partition the first point at which a window that is open, or not formed yet, can start."""
        codes = np.arange(max(1, len(self.table.codes)))
        slots, begin, stop = self._starts(codes, cti)
        first = np.full(len(codes), cti)
        start = np.maximum(begin, stop - (self._n - 1))
        some = flatnonzero(start < stop)
        first[some] = self.table.le[slots[start[some]]]
        return first

    def _alive_windows(self, cti: int, rows: Arrangement) -> tuple[Rows, Rows]:
        """Return by code the first window with a member whose RE a module reads and a change may still move."""
        first = self.first_alive(cti, rows)
        codes = flatnonzero(first != INFINITY)
        if self.by_end or not len(codes):
            return codes[:0], codes[:0]
        slots, begin, at = self._starts(codes, first[codes])
        windows = slots[np.maximum(begin, at - (self._n - 1))]
        whole = flatnonzero(self.table.rows[windows] > 0)
        return codes[whole], windows[whole]

    def closed_until(self, cti: int, rows: Arrangement) -> Ticks:
        settled = np.full(max(1, len(self.table.codes)), cti)
        codes, windows = self._alive_windows(cti, rows)
        settled[codes] = np.minimum(cti, self.table.re[windows] - 1)
        return settled

    def _kept_from(self, cti: int, rows: Arrangement) -> Ticks:
        """Return for each partition the first point that is needed."""
        if self._kept is not None:
            return self._kept
        kept, slots = self._first_open(cti), self.open_windows(cti, rows)
        np.minimum.at(kept, self.table.code[slots], self.table.le[slots])
        return kept

    def forget(self, cti: int, rows: Arrangement) -> None:
        self._kept = self._kept_from(cti, rows)  # what is dropped before it does not change it
        super().forget(cti, rows)
        self._kept = None

    def open_windows(self, cti: int, rows: Arrangement) -> Rows:
        slots = super().open_windows(cti, rows)
        return slots[self.table.rows[slots] > 0]

    def is_kept(self, cti: int, rows: Arrangement, slots: Rows) -> NDArray[np.bool_]:
        kept: NDArray[np.bool_] = self.table.le[slots] >= self._kept_from(cti, rows)[self.table.code[slots]]
        return kept

    def is_needed(self, cti: int, rows: Arrangement, places: Rows) -> NDArray[np.bool_]:
        points = rows.rows.re[places] if self.by_end else rows.rows.le[places]
        needed: NDArray[np.bool_] = points >= self._kept_from(cti, rows)[rows.rows.groups[places]]
        return needed

    def first_start(self, cti: int, rows: Arrangement) -> int:
        slots = self.table.all()
        return int(self.table.le[slots[self.is_kept(cti, rows, slots)]].min(initial=cti))

    def settled_output(self, cti: int, rows: Arrangement) -> int:
        _, alive = self._alive_windows(cti, rows)
        if self.policy.output is Output.POINT_AT_END:
            return int(self.table.re[alive].min(initial=cti))
        return int(min(self._first_open(cti).min(), self.table.le[alive].min(initial=cti)))
