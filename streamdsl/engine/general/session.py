"""Session windows of one group: an event makes a session, extends or joins some; without it one may fall apart."""

from __future__ import annotations

from streamdsl.engine.general.event_index import EventRow
from streamdsl.engine.general.group import HiddenWindows, Setting
from streamdsl.engine.general.window_index import WindowEntry, WindowIndex
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import INFINITY, MIN_TIME
from streamdsl.udm.incremental import MemberChange
from streamdsl.windows import Output, Session, unending


class SessionWindows(HiddenWindows):
    """`sessions` are the periods `[first LE, end + gap)`; `windows` is what they are cut into, as far as it has begun.

    A CTI may close the first windows of a session that goes on, because its start cannot change any more. Their events are
    forgotten; `forgotten` is how far those reach.
    """

    def __init__(self, setting: Setting, windows: Session) -> None:
        super().__init__(setting, windows)
        self.spec = windows
        self.sessions = WindowIndex()
        self.forgotten = MIN_TIME
        self.made_before = self._made_before(MIN_TIME)

    def _made_before(self, high_water: int) -> int:
        """Return the time before which windows start that are made: they have begun, and may end by the bound of the run."""
        return min(high_water + 1, self.setting.emit_policy.until)

    # Changes: sessions grow and merge, shrink and fall apart.

    def change(self, row: EventRow, re_old: int, re_new: int) -> None:
        row = self.events.get(row.id, row.le) or row
        if re_new > re_old:
            self._lengthen(row, re_old, re_new)
        else:
            self._shorten(row, re_old, re_new)
        if self.setting.time_sensitive and re_old > row.le and re_new > row.le:
            self._touch_stayed(MemberChange(row, re_old, re_new), row.le, min(re_old, re_new))

    def _lengthen(self, row: EventRow, re_old: int, re_new: int) -> None:
        """Let the sessions that an event reaches become one, which starts where the first of them did, or the event does."""
        reach = self.spec.reach(re_new)
        joined = self._overlapping(row.le, reach)
        keeps_start = bool(joined) and joined[0].le <= row.le
        session = Lifetime(joined[0].le if keeps_start else row.le, max([reach, *(s.re for s in joined)]))
        dissolved = joined[1:] if keeps_start else joined
        newcomers = [member for other in dissolved for member in self._dissolve(other)]
        self._set_reach(session)
        self.move(row, re_old, re_new)
        self._enter(session, row, first=self._numbers(session, row.le, re_old).stop)
        for newcomer in newcomers:
            self._enter(session, newcomer)

    def _shorten(self, row: EventRow, re_old: int, re_new: int) -> None:
        """Let a session fall into what is left of it once an event ends earlier, or is gone."""
        session = self._around(row.le)
        assert session is not None
        self.move(row, re_old, re_new)
        self._leave(session, row, re_old, first=self._numbers(session, row.le, re_new).stop)
        bare = Lifetime(self.spec.reach(re_new) if re_new > row.le else row.le, self.spec.reach(re_old))
        parts = self._parts(session, bare)
        if parts and parts[0].le == session.le:
            self._set_reach(parts[0])
            if len(parts) > 1:
                self._recount_last(parts[0])
            parts = parts[1:]
        else:
            self._dissolve(session)
        for part in parts:
            self._set_reach(part)
            for member in self.events.overlapping(*part):
                self._enter(part, member)

    def _parts(self, session: Lifetime, bare: Lifetime) -> list[Lifetime]:
        """Return the sessions that one falls into when an event no longer holds it together in the period `bare`.

        Only the events there are looked at: before and after it nothing has changed.
        """
        parts = [Lifetime(session.le, max(bare.le, self.forgotten))] if session.le < bare.le else []
        for row in sorted(self.events.overlapping(bare.le - self.spec.gap, bare.re), key=lambda row: row.le):
            reach = self.spec.reach(row.re)
            if parts and row.le < parts[-1].re:
                parts[-1] = Lifetime(parts[-1].le, max(parts[-1].re, reach))
            else:
                parts.append(Lifetime(row.le, reach))
        if session.re > bare.re:
            parts[-1] = Lifetime(parts[-1].le, session.re)
        return parts

    def _dissolve(self, session: Lifetime) -> list[EventRow]:
        """Remove a session and its windows; return its events."""
        for entry in self.windows.between(*session):
            self.drop(entry)
        self.sessions.remove(session.le)
        return self.events.overlapping(*session)

    def _set_reach(self, session: Lifetime) -> None:
        """Make a session, or let it reach so far: its last window ends there."""
        known = self.sessions.get(session.le) or self.sessions.add(WindowEntry(*session))
        before, known.re = known.re, session.re
        for entry in self.windows.between(session.re, before):
            self.drop(entry)
        last = self._last_window(Lifetime(session.le, min(before, session.re)))
        if last is not None:
            re, last.re = last.re, self.spec.window(session, self.spec.number(session, last.le)).re
            if last.re != re:
                self._reshape(last)
                if self.setting.states_know_period:
                    last.forget_computed()

    def _recount_last(self, session: Lifetime) -> None:
        """Count the members of a session's last window anew: some are in other sessions now."""
        last = self._last_window(session)
        if last is not None:
            last.n_events = len(self.members(last))
            last.forget_computed()
            self._reshape(last)

    def _last_window(self, session: Lifetime) -> WindowEntry | None:
        last = self.windows.before(session.re)
        return last if last is not None and last.le >= session.le else None

    # Members: which windows of its session an event is in.

    def _numbers(self, session: Lifetime, le: int, re: int, first: int = 0) -> range:
        """Return the numbers, from `first` on, of a session's windows that are made and that a lifetime is in."""
        numbers = self.spec.numbers(session, Lifetime(le, re), self.made_before)
        return range(max(first, numbers.start), numbers.stop)

    def _enter(self, session: Lifetime, row: EventRow, first: int = 0) -> None:
        """Count an event in as a member of its windows from number `first` on."""
        for k in self._numbers(session, row.le, row.re, first):
            period = self.spec.window(session, k)
            entry = self.windows.get(period.le)
            if entry is None:
                self.setting.budget.take(1)
                entry = self.windows.add(WindowEntry(*period))
            entry.n_events += 1
            self.touch(entry, MemberChange(row, None, row.re))

    def _leave(self, session: Lifetime, row: EventRow, re_old: int, first: int) -> None:
        """Count an event that ended at `re_old` out of its windows from number `first` on."""
        for k in self._numbers(session, row.le, re_old, first):
            entry = self.windows.get(self.spec.window(session, k).le)
            assert entry is not None
            entry.n_events -= 1
            self._reshape(entry, MemberChange(row, re_old, None))

    def _reshape(self, entry: WindowEntry, change: MemberChange | None = None) -> None:
        """Touch a window whose period or members are others than before; without members it is gone."""
        if entry.n_events:
            self.touch(entry, change)
        else:
            self.drop(entry)

    def _touch_stayed(self, change: MemberChange, le: int, shorter: int) -> None:
        """Touch the windows that an event stays in and whose module sees its RE."""
        session = self._around(le)
        assert session is not None
        first = self.spec.window(session, self.spec.number(session, le if self.setting.sees_ends else shorter))
        for entry in self.windows.between(first.le, shorter):
            self.touch(entry, change)

    def members(self, entry: WindowEntry) -> list[EventRow]:
        return self.events.overlapping(entry.le, entry.re)

    # Sessions by time.

    def _around(self, time: int) -> Lifetime | None:
        """Return the session that a time is in."""
        session = self.sessions.covering(time)
        return session.period if session is not None and time < session.re else None

    def _overlapping(self, lo: int, hi: int) -> list[Lifetime]:
        """Return the sessions that overlap a period, in order."""
        first = self._around(lo)
        return [session.period for session in self.sessions.between(lo if first is None else first.le, hi)]

    def _first_from(self, session: Lifetime, time: int) -> int:
        """Return the number of a session's first window with LE >= `time`."""
        return max(0, self.spec.number(session, time - 1) + 1)

    # Watermarks: windows are made when they begin.

    def reveal(self, high_water: int) -> None:
        if high_water == INFINITY and self._fill_for_ever(self.events.latest_end()):
            raise unending(self.spec, next(self.events.ending_from(INFINITY)).id)
        if high_water > self.high_water:
            start, self.made_before = self.made_before, self._made_before(high_water)
            for session in self._overlapping(start, self.made_before):
                self._make(session, start)
        super().reveal(high_water)

    def _make(self, session: Lifetime, start: int) -> None:
        """Make the windows of a session that begin from `start` on."""
        first = self._first_from(session, start)
        le = self.spec.window(session, first).le
        if le >= self.made_before:
            return
        for row in self.events.overlapping(le, session.re):
            self._enter(session, row, first)

    def _fill_for_ever(self, end: int | None) -> bool:
        """Say whether events that end then, in a run without a bound, are in infinitely many windows."""
        return end == INFINITY == self.setting.emit_policy.until and self.spec.max_duration is not None

    def next_reveal(self) -> int | None:
        times = (super().next_reveal(), self._next_begin())
        return min((time for time in times if time is not None), default=None)

    def _next_begin(self) -> int | None:
        """Return when the next window begins that has members already; it is one of the last session's."""
        end, last = self.events.latest_end(), self.sessions.covering(INFINITY)
        if end is None or last is None:
            return None
        le = last.le + self._first_from(last.period, self.made_before) * self.spec.longest
        if self._fill_for_ever(end):
            return min(le, INFINITY)
        return le if le < min(end, self.setting.emit_policy.until) else None

    # CTIs: windows close, and sessions end.

    def closed(self, cti: int) -> int:
        return min(cti, self.earliest_alive(cti)) if self.setting.sees_ends else cti

    def _first_open(self, cti: int) -> Lifetime | None:
        """Return the earliest window that has begun before the CTI and is not closed, empty or not."""
        settled = self.closed(cti)
        session = self._around(settled)
        return None if session is None else self.spec.window(session, self.spec.number(session, settled))

    def earliest_start(self, cti: int) -> int:
        window = self._first_open(cti)
        return cti if window is None else window.le

    def forget(self, cti: int) -> list[WindowEntry]:
        closed = self.close(self.closed(cti))
        self.sessions.forget(cti)
        dead = self.events.forget(min(self.earliest_start(cti) + 1, cti))
        self.forgotten = max([self.forgotten, *(self.spec.reach(row.re) for row in dead)])
        return closed

    @property
    def is_empty(self) -> bool:
        return not self.sessions

    def output_cti(self, cti: int) -> int:
        window = self._first_open(cti)
        if window is None or self.setting.output is Output.TIME_BOUND:
            return cti
        if self.setting.output is Output.POINT_AT_END:
            return min(cti, window.re)
        return window.le
