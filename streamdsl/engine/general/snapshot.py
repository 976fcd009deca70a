"""Snapshot windows of one group: they are split by a new endpoint and merged when the last event leaves one (paper 001, V.D)."""

from __future__ import annotations

import itertools

from streamdsl.engine.general.event_index import EventRow
from streamdsl.engine.general.group import HiddenWindows
from streamdsl.engine.general.window_index import WindowEntry
from streamdsl.temporal.time import INFINITY, MIN_TIME
from streamdsl.udm.incremental import MemberChange
from streamdsl.windows import Output


class SnapshotWindows(HiddenWindows):
    """One entry per finite endpoint, from it to the next; `n_endpoints` counts the endpoints at its start."""

    def change(self, row: EventRow, re_old: int, re_new: int) -> None:
        le = row.le
        row = self.move(row, re_old, re_new)
        if re_old <= le:
            self._add_endpoint(le)
        if re_new > le:
            self._add_endpoint(re_new)
        if re_new > re_old:
            self._count(max(re_old, le), re_new, +1, MemberChange(row, None, re_new))
        else:
            self._count(max(re_new, le), re_old, -1, MemberChange(row, re_old, None))
        if re_old > le:
            self._remove_endpoint(re_old)
        if re_new <= le:
            self._remove_endpoint(le)
        if self.setting.sees_ends and re_old > le and re_new > le:
            for entry in self.windows.between(le, min(re_old, re_new)):
                self.touch(entry, MemberChange(row, re_old, re_new))

    def _add_endpoint(self, time: int) -> None:
        if time == INFINITY:
            return
        entry = self.windows.get(time)
        if entry is None:
            entry = self._split(time)
        entry.n_endpoints += 1

    def _split(self, time: int) -> WindowEntry:
        earlier = self.windows.before(time)
        later = self.windows.after(time)
        entry = WindowEntry(time, later.le if later else INFINITY, n_events=earlier.n_events if earlier else 0)
        if earlier:
            self.reshape(earlier, time)
            entry.states, entry.changes = self.setting.copy_states(earlier), list(earlier.changes)
            entry.results = earlier.results
        self.windows.add(entry)
        self.touch(entry)
        return entry

    def _remove_endpoint(self, time: int) -> None:
        if time == INFINITY:
            return
        entry = self.windows.get(time)
        assert entry is not None
        entry.n_endpoints -= 1
        if entry.n_endpoints:
            return
        earlier = self.windows.before(time)
        self.drop(entry)
        if earlier:
            self.reshape(earlier, entry.re)

    def _count(self, lo: int, hi: int, number: int, change: MemberChange) -> None:
        for entry in self.windows.between(lo, hi):
            entry.n_events += number
            self.touch(entry, change)

    def members(self, entry: WindowEntry) -> list[EventRow]:
        return self.events.overlapping(entry.le, entry.re)

    def closed(self, cti: int) -> int:
        # A window that ends at the CTI stays: an endpoint there may still go, and the window is then longer.
        settled = max(cti, MIN_TIME + 1) - 1
        return min(settled, self.earliest_alive(cti)) if self.setting.sees_ends else settled

    def forget(self, cti: int) -> list[WindowEntry]:
        settled = self.closed(cti)
        closed = self.close(settled)
        self.events.forget(settled + 1)
        return closed

    def earliest_start(self, cti: int) -> int:
        return min([cti, *(entry.le for entry in itertools.islice(self.windows, 1))])

    def output_cti(self, cti: int) -> int:
        if self.setting.output is Output.TIME_BOUND or not self.setting.time_sensitive:
            return cti
        alive = self.earliest_alive(cti) if self.setting.sees_ends else INFINITY
        first = self.windows.get(alive)
        if self.setting.output is Output.POINT_AT_END:
            return min(cti, first.re) if first else cti
        last = self.windows.before(cti)
        return min(last.le if last else cti, alive)
