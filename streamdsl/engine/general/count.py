"""Count windows of one group: one for every N consecutive distinct endpoints."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from streamdsl.engine.general.event_index import EventRow
from streamdsl.engine.general.group import HiddenWindows, Setting
from streamdsl.engine.general.point_index import PointIndex
from streamdsl.engine.general.window_index import WindowEntry
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import CHRONON, INFINITY, add_time
from streamdsl.udm.incremental import MemberChange
from streamdsl.windows import Count, Output


class CountWindows(HiddenWindows):
    """`points` are the events by the endpoint that counts; an event without one is `waiting` for its end."""

    def __init__(self, setting: Setting, windows: Count) -> None:
        super().__init__(setting, windows)
        self.spec = windows
        self.points = PointIndex()
        self.waiting: dict[Hashable, EventRow] = {}

    def change(self, row: EventRow, re_old: int, re_new: int) -> None:
        old = self.spec.position(Lifetime(row.le, re_old))
        new = self.spec.position(Lifetime(row.le, re_new))
        if old == new and old is not None:
            self._change_end(row, old, re_new)
            return
        if re_old <= row.le:
            self.note_alive(row)
        kept = self.waiting.pop(row.id, row) if old is None else self._take(old, row)
        kept.re = re_new
        if new is not None:
            self._put(new, kept)
        elif re_new > row.le:
            self.waiting[row.id] = kept

    def _change_end(self, row: EventRow, point: int, re_new: int) -> None:
        """Take a new RE that leaves the event where it is: only modules that see it must run again."""
        kept = self.points.get(point, row.id)
        if kept is None:
            return
        re_old, kept.re = kept.re, re_new
        if not self.setting.time_sensitive:
            return
        for entry in self._containing(point):
            if self.setting.sees_ends or entry.re > min(re_old, re_new):
                self.touch(entry, MemberChange(kept, re_old, re_new))

    def _put(self, point: int, row: EventRow) -> None:
        for entry in self._containing(point):
            self._count(entry, +1, MemberChange(row, None, row.re))
        if self.points.add(point, row):
            self._reform(point)

    def _take(self, point: int, row: EventRow) -> EventRow:
        kept, is_gone = self.points.remove(point, row.id)
        for entry in self._containing(point):
            self._count(entry, -1, MemberChange(kept, kept.re, None))
        if is_gone:
            self._reform(point)
        return kept

    def _count(self, entry: WindowEntry, number: int, change: MemberChange) -> None:
        entry.n_events += number
        self.touch(entry, change)

    def _starts_near(self, point: int) -> list[int]:
        """Return the last N - 1 points before this one, and it: where windows that contain it may start."""
        return [*self.points.last(self.spec.n - 1, before=point), point]

    def _containing(self, point: int) -> Iterable[WindowEntry]:
        for start in self._starts_near(point):
            entry = self.windows.get(start)
            if entry is not None and entry.re > point:
                yield entry

    def _reform(self, point: int) -> None:
        """Set the windows right that a point which has come or gone is, or was, in."""
        for start in self._starts_near(point):
            entry = self.windows.get(start)
            last = self.points.following(start, self.spec.n - 1) if start in self.points else None
            if last is not None and entry is not None:
                self._stretch(entry, add_time(last, CHRONON))
            elif last is not None:
                entry = WindowEntry(start, add_time(last, CHRONON), n_endpoints=self.spec.n)
                entry.n_events = len(self.members(entry))
                self.touch(self.windows.add(entry))
            elif entry is not None:
                self.drop(entry)

    def _stretch(self, entry: WindowEntry, re: int) -> None:
        """Give a window another end, and the points between it and the old one."""
        for row in self.points.between(re, entry.re):
            self._count(entry, -1, MemberChange(row, row.re, None))
        for row in self.points.between(entry.re, re):
            self._count(entry, +1, MemberChange(row, None, row.re))
        self.reshape(entry, re)

    def members(self, entry: WindowEntry) -> list[EventRow]:
        return list(self.points.between(entry.le, entry.re))

    @property
    def n_events(self) -> int:
        return self.points.n_events + len(self.waiting)

    @property
    def is_empty(self) -> bool:
        return not self.points and not self.waiting

    def _first_open(self, cti: int) -> int:
        """Return the first point that a window not closed yet, or not formed yet, can start at."""
        return next(iter(self.points.last(self.spec.n - 1, before=cti)), cti)

    def _first_alive(self, cti: int) -> WindowEntry | None:
        """Return the first window with a member whose RE a time-sensitive module sees and a change may still move."""
        if not self.setting.sees_ends or self.spec.by == "end":
            return None
        return next(iter(self._containing(self.earliest_alive(cti))), None)

    def closed(self, cti: int) -> int:
        alive = self._first_alive(cti)
        return min(cti, alive.re - 1) if alive else cti

    def forget(self, cti: int) -> list[WindowEntry]:
        closed = self.close(self.closed(cti))
        keep = min(self._first_open(cti), min((entry.le for entry in self.windows), default=INFINITY))
        self.points.forget(keep)
        return closed

    def earliest_start(self, cti: int) -> int:
        first = self.points.first()
        return cti if first is None else min(cti, first)

    def output_cti(self, cti: int) -> int:
        if self.setting.output is Output.TIME_BOUND:
            return cti
        alive = self._first_alive(cti)
        if self.setting.output is Output.POINT_AT_END:
            return min(cti, alive.re) if alive else cti
        first = min(cti, self._first_open(cti))
        return min(first, alive.le) if alive else first
