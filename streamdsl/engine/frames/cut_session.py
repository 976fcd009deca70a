"""Sessions that are cut: each is a grid of its own, from its start to its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.data_driven.group_codes import GroupCodes
from streamdsl.engine.data_driven.sorted_index import Portion
from streamdsl.engine.data_driven.timeline import UNTOUCHED
from streamdsl.engine.frames.arrangement import Arrangement
from streamdsl.engine.frames.covered import covered
from streamdsl.engine.frames.frame import MOST, ChangedRows, DisjointFrame, Policy, RowUpdate, WindowColumns, refuse_unending
from streamdsl.engine.frames.session import Extents, SessionFrame
from streamdsl.engine.frames.stretches import Stretches
from streamdsl.engine.frames.window_table import WindowTable
from streamdsl.engine.pairs import distinct, spread
from streamdsl.engine.window_budget import Arrivals
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks
from streamdsl.windows import Output, Session

Bits: TypeAlias = NDArray[np.uint64]

_LONGEST: Final = 2**63 - 1
"""The largest distance of two times at which a session may be cut."""


def _as_bits(times: Ticks) -> Bits:
    """Return times as numbers whose differences are right even of the first time and the last."""
    return times.view(np.uint64)


def _as_times(bits: Bits) -> Ticks:
    return bits.view(np.int64)


def _numbers(starts: Ticks, times: Ticks, longest: int) -> Ticks:
    """Return the numbers of the windows that times are in, of sessions that start then."""
    return _as_times((_as_bits(times) - _as_bits(starts)) // np.uint64(longest))


def _windows(starts: Ticks, ends: Ticks, numbers: Ticks, longest: int) -> tuple[Ticks, Ticks]:
    """Return where windows of such sessions begin and end."""
    begins = _as_bits(starts) + _as_bits(numbers) * np.uint64(longest)
    is_last = _as_bits(ends) - begins < longest
    return _as_times(begins), np.where(is_last, ends, _as_times(begins + np.uint64(longest)))


class SessionGrids:
    """The sessions around some stretches, which are in order; each session is a grid of windows."""

    def __init__(self, table: WindowTable, around: Stretches, longest: int) -> None:
        self._table = table
        self._portion = table.portion(table.stretches(around.codes, around.lo, around.hi))
        slots = self._portion.slots
        self.codes, self._starts, self._ends = table.code[slots], table.le[slots], table.re[slots]
        self._longest = longest

    def at(self, codes: Rows, times: Ticks) -> tuple[Rows, Ticks]:
        """Return the session that each time is in, -1 if there is none, and the number of its window there."""
        if not len(self.codes):
            return np.full(len(codes), -1, dtype=np.intp), np.zeros(len(codes), dtype=np.int64)
        at = np.searchsorted(self._portion.numbers, self._table.any_places(codes, times), side="right") - 1
        at = np.maximum(at, 0)
        is_inside = (self.codes[at] == codes) & (self._starts[at] <= times) & (times < self._ends[at])
        at = np.where(is_inside, at, -1)
        return at, _numbers(self._starts[at], times, self._longest)

    def windows(self, sessions: Rows, numbers: Ticks) -> tuple[Ticks, Ticks]:
        """Return where windows of sessions begin and end."""
        return _windows(self._starts[sessions], self._ends[sessions], numbers, self._longest)

    def whole_windows(self, around: Stretches) -> tuple[Ticks, Ticks]:
        """Widen stretches to whole windows."""
        lo, hi = around.lo, around.hi
        if not len(self.codes):
            return lo, hi
        first, last = self.at(around.codes, lo), self.at(around.codes, hi - 1)
        begins, ends = self.windows(*first)[0], self.windows(*last)[1]
        return np.where(first[0] >= 0, begins, lo), np.where(last[0] >= 0, np.maximum(hi, ends), hi)


class _UncutSessions(SessionFrame):
    """The sessions before they are cut. One that goes on may have lost rows that only closed windows had."""

    def __init__(self, policy: Policy, windows: Session, codes: GroupCodes) -> None:
        super().__init__(replace(policy, output=Output.ALIGN, time_sensitive=False, sees_ends=False), windows)
        self.table.codes = codes
        self._forgotten: Ticks = np.empty(0, dtype=np.int64)
        """For each partition how far its dropped rows reach."""

    def note_forgotten(self, codes: Rows, re: Ticks) -> None:
        """Record how far rows reach that are dropped."""
        if len(self._forgotten) < len(self.table.codes):
            more = np.full(2 * len(self.table.codes) - len(self._forgotten), MIN_TIME)
            self._forgotten = np.concatenate([self._forgotten, more])
        np.maximum.at(self._forgotten, codes, self._reach(re))

    def forget_partitions(self, codes: Rows) -> None:
        self._forgotten[codes[codes < len(self._forgotten)]] = MIN_TIME

    def known_without_rows(self, slots: Rows) -> Extents:
        # What has started before the CTI holds together for ever: it may end earlier, but not before the CTI.
        table, codes = self.table, self.table.code[slots]
        reach = np.full(len(slots), MIN_TIME)
        known = flatnonzero(codes < len(self._forgotten))
        reach[known] = self._forgotten[codes[known]]
        left = flatnonzero(reach > table.le[slots])
        return Extents(codes[left], table.le[slots[left]], reach[left], np.ones(len(left), dtype=np.int64))


class CutSessionFrame(DisjointFrame):
    """Sessions that are cut into windows. A window is in the table once it has begun: an unending row is in infinitely many."""

    def __init__(self, policy: Policy, windows: Session) -> None:
        super().__init__(policy, windows)
        self._spec = windows
        self._longest = min(windows.longest, _LONGEST)
        self._until = policy.emit_policy.until
        self.whole = _UncutSessions(policy, windows, self.table.codes)
        self._begun = MIN_TIME
        """Windows that start before this time are in the table."""
        self._coming: int | None = None
        """When the next window begins; None if that has not been computed yet."""

    # Which windows change

    def _begins_before(self) -> int:
        return min(self.clock + 1, self._until)

    def opens(self) -> bool:
        return self._begins_before() > self._begun and len(self.whole.table) > 0

    def around(self, changed: ChangedRows, rows: Arrangement) -> Stretches:
        if self.clock == INFINITY == self._until:
            refuse_unending(self._spec, rows, flatnonzero(rows.rows.alive))
        whole, before = self.whole.table, self._begun
        self._begun, self._coming = max(before, self._begins_before()), None
        gone = (self.whole.change(changed, rows) if len(changed.le) else UNTOUCHED).gone
        # A session that has come, or gone, is looked at as a whole; the end of another one moves behind a row that has changed.
        whole_ones, sessions = np.concatenate([gone, self.whole.new]), whole.all()
        opened = sessions[(whole.re[sessions] > before) & (whole.le[sessions] < self._begun)]
        codes = np.concatenate([changed.codes, whole.code[whole_ones], whole.code[opened]])
        lo = np.concatenate([changed.le, whole.le[whole_ones], np.maximum(whole.le[opened], before)])
        hi = np.concatenate([np.maximum(changed.re_old, changed.re_new), whole.re[whole_ones], whole.re[opened]])
        whole.drop(gone)
        # Windows that are closed stay as they are, and are forgotten; of their rows some may have more to come.
        lo, hi = np.maximum(lo, self.closed_until(self.cti, rows)[codes]), np.minimum(hi, self._begun)
        at = flatnonzero(lo < hi)
        if not len(at):
            return Stretches(codes[at], lo[at], hi[at], lo[at], hi[at])
        around = self._widened(codes[at], lo[at], hi[at])
        lo, hi = SessionGrids(whole, around, self._longest).whole_windows(around)
        return self.table.stretches(around.codes, lo, hi).merged()

    def windows(self, changed: ChangedRows, around: Stretches, portion: Portion, rows: Arrangement) -> WindowColumns:
        table = self.table
        grids = SessionGrids(self.whole.table, around, self._longest)
        places = rows.overlapping(around, table.any_places)
        codes, le = rows.rows.groups[places], rows.rows.le[places]
        re = np.minimum(rows.rows.re[places], self._begun)
        # A row may be in several stretches of its session.
        first = np.searchsorted(around.high, table.any_places(codes, le), side="right")
        last = np.searchsorted(around.low, table.any_places(codes, re), side="left")
        at, stretches = spread(first, np.maximum(last, first))
        lo, hi = np.maximum(le[at], around.lo[stretches]), np.minimum(re[at], around.hi[stretches])
        inside = flatnonzero(lo < hi)
        at, lo, hi = at[inside], lo[inside], hi[inside]
        (sessions, begins), (_, ends) = grids.at(codes[at], lo), grids.at(codes[at], hi - 1)
        filled = covered(sessions, begins, ends + 1, np.ones(len(at), dtype=np.int64))
        self.policy.budget.take(max(0, int(filled.lengths.sum()) - int(np.count_nonzero(around.holds(portion.numbers)))))
        of, numbers = filled.spread()
        sessions = filled.codes[of]
        starts, stops = grids.windows(sessions, numbers)
        if not len(sessions):
            return WindowColumns(around.low[sessions], grids.codes[sessions], starts, stops, numbers)
        found = table.stretches(grids.codes[sessions], starts, stops)
        self._looked_at = members = self.spans(found, codes, rows.extents(places), places)
        return WindowColumns(found.low, found.codes, starts, stops, members.sizes)

    def differ(self, changed: ChangedRows, found: WindowColumns) -> NDArray[np.bool_]:
        starts, ends = (self.table.any_places(changed.codes, times) for times in self._span(changed))
        stops = self.table.any_places(found.codes, found.re)
        # In the window in which it ended, or ends now, a row that stays is before and after; how it looks there may differ.
        first = np.searchsorted(stops, starts, side="right")
        if not self.policy.time_sensitive:
            first = np.where(changed.stay, np.searchsorted(found.low, starts, side="left"), first)
        last = np.maximum(np.searchsorted(found.low, ends, side="left"), first)
        steps = np.bincount(first, minlength=len(found.low) + 1) - np.bincount(last, minlength=len(found.low) + 1)
        differ: NDArray[np.bool_] = np.cumsum(steps[:-1]) > 0
        return differ

    # Row by row

    def takes(self, rows: Sequence[tuple[int, int, int]], high_water: int, held: Arrangement) -> bool:
        begun, whole = self._begins_before(), self.whole.table
        if self._coming is None:
            self._coming = self._next_start()
        if begun > self._coming or self.policy.time_sensitive or not self.whole.takes(rows, high_water, held):
            return False
        times: list[int] = []
        for code, le, re in rows:
            joined = self.whole.joined(code, le, re)
            start = whole.le.item(joined[0]) if joined else le
            if len(joined) > 1 or start > le or (min(re, begun) - le) // self._longest > MOST // len(rows):
                return False
            ends = [self.whole.end(re), *(whole.re.item(slot) for slot in joined)]
            times += [le - (le - start) % self._longest, *(end for end in ends if end != INFINITY)]
        # Rows of one partition may join one another.
        if len({code for code, _, _ in rows}) < len(rows) or not self.table.fit(min(times), max(times)):
            return False
        self._begun = max(self._begun, begun)
        return True

    def _next_start(self) -> int:
        """Return the start of the next window of a session that exists."""
        whole = self.whole.table
        slots = whole.all()
        slots = slots[whole.re[slots] > self._begun]
        starts, has_begun = whole.le[slots], whole.le[slots] < self._begun
        numbers = _numbers(starts, np.full(len(starts), max(self._begun, MIN_TIME + 1) - 1), self._longest)
        starts[has_begun] = _windows(starts, whole.re[slots], numbers, self._longest)[1][has_begun]
        return int(starts.min(initial=INFINITY))

    def take(self, code: int, le: int, re: int, place: int, held: Arrangement) -> RowUpdate:
        whole, table = self.whole.table, self.table
        before = [whole.re.item(slot) for slot in self.whole.joined(code, le, re)]
        (session,) = self.whole.take(code, le, re, place, held).entered
        start, end = whole.le.item(session), whole.re.item(session)
        step = RowUpdate([], [], [], [], [])
        for slot in table.index.before(table.place(code, before[0]), 1) if before else ():
            stop = min(table.le.item(slot) + self._longest, end)
            if table.code.item(slot) == code and table.le.item(slot) >= start and table.re.item(slot) < stop:
                table.re[slot] = stop
                step.moved.append(slot)
        for begin in range(le - (le - start) % self._longest, min(re, self._begun), self._longest):
            step.entered.append(self._entered(code, begin, min(begin + self._longest, end), step))
        begin = max(start, self._begun - (self._begun - start) % -self._longest)
        if begin < end:
            self._coming = begin if self._coming is None else min(self._coming, begin)
        return step

    def _entered(self, code: int, le: int, re: int, step: RowUpdate) -> int:
        """Count a row in a window, which is created if it does not exist, and return its slot."""
        table, number = self.table, self.table.place(code, le)
        numbers, slots = table.index.around(number, number + 1)
        if numbers[-1:] == [number]:
            slot = slots[-1]
        else:
            slot = table.make_one(code, le, re, number)
            step.new.append(slot)
        table.rows[slot] += 1
        return slot

    def end_step(self) -> None:
        super().end_step()
        self.whole.end_step()

    # Time

    def _first_open(self, cti: int, rows: Arrangement) -> tuple[Rows, Ticks, Ticks]:
        """Return the windows of sessions that have begun before a CTI and are not closed, with or without rows."""
        whole, settled = self.whole.table, self.closed_until(cti, rows)
        slots = whole.all()
        times = settled[whole.code[slots]]
        going_on = flatnonzero((whole.le[slots] <= times) & (times < whole.re[slots]))
        slots, times = slots[going_on], times[going_on]
        starts, ends = whole.le[slots], whole.re[slots]
        return whole.code[slots], *_windows(starts, ends, _numbers(starts, times, self._longest), self._longest)

    def _first_starts(self, cti: int, rows: Arrangement) -> Ticks:
        """Return for each partition the start of its first open window at a CTI, the CTI if none has begun."""
        first = np.full(max(1, len(self.table.codes)), cti)
        codes, le, _ = self._first_open(cti, rows)
        first[codes] = np.minimum(first[codes], le)
        return first

    def is_needed(self, cti: int, rows: Arrangement, places: Rows) -> NDArray[np.bool_]:
        re = rows.rows.re[places]
        needed: NDArray[np.bool_] = (re >= cti) | (re > self._first_starts(cti, rows)[rows.rows.groups[places]])
        return needed

    def before_sweep(self, rows: Arrangement, gone: Rows) -> None:
        self.whole.note_forgotten(rows.rows.groups[gone], rows.rows.re[gone])

    def needed_codes(self, cti: int, rows: Arrangement) -> Rows:
        whole = self.whole.table
        slots = whole.all()
        codes = [super().needed_codes(cti, rows), whole.code[slots[whole.re[slots] > cti]]]
        return distinct(np.concatenate(codes), len(self.table.codes))

    @property
    def n_kept(self) -> int:
        return super().n_kept + len(self.whole.table)

    def sweep(self, cti: int, rows: Arrangement) -> None:
        super().sweep(cti, rows)
        whole = self.whole.table
        whole.keep(whole.re[whole.all()] > cti)

    def forget_partitions(self, codes: Rows) -> None:
        self.whole.forget_partitions(codes)

    def first_return(self, cti: int, rows: Arrangement) -> int:
        return int(self._first_starts(cti, rows).min())

    def settled_output(self, cti: int, rows: Arrangement) -> int:
        _, le, re = self._first_open(cti, rows)
        return int((re if self.policy.output is Output.POINT_AT_END else le).min(initial=cti))

    def slowest_code(self, cti: int, rows: Arrangement) -> Rows:
        codes, le, _ = self._first_open(cti, rows)
        return codes[flatnonzero(le == le.min(initial=INFINITY))[:1]]

    def n_waiting(self, rows: Arrangement) -> int:
        return len(self.table.codes)

    def max_new_windows(self, arrivals: Arrivals, high_water: int, rows: Arrangement) -> float:
        held = len(self.whole.table)
        groups = arrivals.rows if self.is_grouped else 1
        return arrivals.beyond(high_water if held else None, self._longest, self._longest, groups, held)
