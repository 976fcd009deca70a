"""The windows of a grid of one group: only windows that are open and have members exist."""

from __future__ import annotations

from collections.abc import Iterator

from streamdsl.engine.frontiers import grid_cti
from streamdsl.engine.general.event_index import EventRow
from streamdsl.engine.general.group import GroupWindows, Setting
from streamdsl.engine.general.window_index import WindowEntry
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import INFINITY, MIN_TIME
from streamdsl.udm.incremental import MemberChange
from streamdsl.windows import Grid, unending


class GridWindows(GroupWindows):
    """Windows are made lazily: an event without end fills only those that the high water has opened."""

    def __init__(self, setting: Setting, windows: Grid) -> None:
        super().__init__(setting, windows)
        self.grid = windows
        self.last_open = self._last_open(MIN_TIME)

    def _last_open(self, high_water: int) -> int:
        grid, emit_policy = self.grid, self.setting.emit_policy
        shown = grid.first_ending_after(high_water) - 1 if emit_policy.by_end else grid.last_starting_by(high_water)
        return min(shown, grid.first_ending_after(emit_policy.until) - 1) if emit_policy.until < INFINITY else shown

    def change(self, row: EventRow, re_old: int, re_new: int) -> None:
        old = self._numbers(row, re_old)
        new = self._numbers(row, re_new)
        row = self.move(row, re_old, re_new)
        self._join_windows(row, range(max(new.start, old.stop), new.stop) if old else new)
        self._leave_windows(row, re_old, range(max(old.start, new.stop), old.stop) if new else old)
        if self.setting.time_sensitive and old and new:
            self._touch_stayed(row, re_old, re_new)

    def _numbers(self, row: EventRow, re: int) -> range:
        if re <= row.le:
            return range(0)
        self._refuse_unending(row, re)
        numbers = self.grid.numbers(Lifetime(row.le, re))
        return range(numbers.start, max(numbers.start, min(numbers.stop, self.last_open + 1)))

    def _refuse_unending(self, row: EventRow, re: int) -> None:
        """Raise `UnboundedOutputError` for an event that fills windows for ever, once time has come to its end."""
        if re == INFINITY and self.high_water == INFINITY and self.setting.emit_policy.until == INFINITY:
            raise unending(self.grid, row.id)

    def _join_windows(self, row: EventRow, numbers: range) -> None:
        budget = self.setting.budget
        if len(numbers) > budget.left + len(self.windows):  # at least so many are new
            budget.take(len(numbers) - len(self.windows))
        for k in numbers:
            period = self.grid.window(k)
            entry = self.windows.get(period.le)
            if entry is None:
                budget.take(1)
                entry = self.windows.add(WindowEntry(period.le, period.re))
            entry.n_events += 1
            self.touch(entry, MemberChange(row, None, row.re))

    def _leave_windows(self, row: EventRow, re_old: int, numbers: range) -> None:
        for k in numbers:
            entry = self.windows.get(self.grid.start(k))
            assert entry is not None
            entry.n_events -= 1
            if entry.n_events:
                self.touch(entry, MemberChange(row, re_old, None))
            else:
                self.drop(entry)

    def _touch_stayed(self, row: EventRow, re_old: int, re_new: int) -> None:
        """Touch the windows that the event stays in and whose module sees its RE."""
        shorter = min(re_old, re_new)
        first = self.grid.first_ending_after(row.le if self.setting.sees_ends else shorter)
        first = max(first, self.grid.first_ending_after(row.le))
        last = self.grid.last_starting_before(shorter)
        for entry in self.windows.between(self.grid.start(first), self.grid.start(last) + 1):
            self.touch(entry, MemberChange(row, re_old, re_new))

    def reveal(self, high_water: int) -> None:
        if high_water <= self.high_water:
            return
        self.high_water = high_water
        if high_water == INFINITY and self.events.latest_end() == INFINITY:
            for row in self.events.ending_from(INFINITY):
                self._refuse_unending(row, row.re)
        first, self.last_open = self.last_open + 1, self._last_open(high_water)
        if not len(self.events) or first > self.last_open:
            return
        start = self.grid.start(first)
        end = min(self.grid.end(self.last_open), INFINITY)
        for row in self.events.overlapping(start, end):
            numbers = self._numbers(row, row.re)
            self._join_windows(row, range(max(first, numbers.start), numbers.stop))

    def next_reveal(self) -> int | None:
        end = self.events.latest_end()
        le, re = self.grid.start(self.last_open + 1), self.grid.end(self.last_open + 1)
        opens = re if self.setting.emit_policy.by_end else le
        if end == INFINITY and self.setting.emit_policy.until == INFINITY:
            return min(opens, INFINITY)
        if end is None or end <= le or re > self.setting.emit_policy.until:
            return None
        return opens

    def hidden_windows(self, high_water: int) -> Iterator[WindowEntry]:
        first = self.last_open + 1
        begun = range(first, self.grid.last_starting_by(high_water) + 1)
        rows = self.events.ending_from(self.grid.start(first) + 1)
        numbers = {k for row in rows for k in self.grid.numbers(Lifetime(row.le, min(row.re, high_water + 1))) if k in begun}
        return (WindowEntry(*self.grid.window(k)) for k in sorted(numbers))

    def earliest_start(self, cti: int) -> int:
        return min(cti, self.grid.start(self.grid.first_ending_after(self.closed(cti))))

    def members(self, entry: WindowEntry) -> list[EventRow]:
        return self.events.overlapping(entry.le, entry.re)

    def closed(self, cti: int) -> int:
        return min(cti, self.earliest_alive(cti)) if self.setting.sees_ends else cti

    def forget(self, cti: int) -> list[WindowEntry]:
        settled = self.closed(cti)
        closed = self.windows.forget(settled)
        first_kept = self.grid.start(self.grid.first_ending_after(settled))
        self.events.forget(min(first_kept + 1, cti))
        return closed

    def output_cti(self, cti: int) -> int:
        return grid_cti(self.grid, self.setting.output, cti, self.closed(cti))
