"""The sessions of all groups, kept up to date by sweeps over those that changed rows are near."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.columnar.terms import Terms
from streamdsl.engine.sorting import sorted_integers
from streamdsl.engine.swept.agenda import Agenda
from streamdsl.engine.swept.boundaries import Boundaries
from streamdsl.engine.swept.event_log import EventLog
from streamdsl.engine.swept.group_codes import GroupCodes
from streamdsl.engine.swept.packing import Packing
from streamdsl.engine.swept.sorted_index import Portion, SortedIndex
from streamdsl.engine.swept.timeline import UNTOUCHED, Touched
from streamdsl.expr.table import Column, Rows, flatnonzero
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks
from streamdsl.windows import Session

_SPARE: Final = 256
_NONE: Final[Rows] = np.empty(0, dtype=np.intp)
_KNOWN, _DISSOLVED, _LOGGED, _NEW = range(4)


@dataclass(frozen=True, slots=True)
class Members:
    """What sessions are made of, in order of (group, LE): sessions as they were, dissolved ones, events of those, new events.

    `refs` are slots of sessions, slots of the log, or rows of the batch.
    """

    kinds: Rows
    refs: Rows
    numbers: Column
    codes: Rows
    le: Ticks
    reach: Ticks

    def __len__(self) -> int:
        return len(self.le)

    def take(self, rows: Rows) -> Members:
        """Return these members, in this order."""
        columns = (self.kinds, self.refs, self.numbers, self.codes, self.le, self.reach)
        return Members(*(column[rows] for column in columns))

    @staticmethod
    def merged(parts: list[Members]) -> Members:
        """Return all members in order; of those that start at once sessions come first."""
        names = ("kinds", "refs", "numbers", "codes", "le", "reach")
        whole = Members(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
        return whole.take(sorted_integers(whole.numbers)[0])


class SessionTable:
    """Sessions by (group, LE), each with its sums, and the log of events of which they are made anew when one goes."""

    def __init__(self, spec: Session, by_end: bool) -> None:
        self.spec = spec
        self.by_end = by_end
        self.watermark = MIN_TIME
        self.boundaries = Boundaries()
        self.codes = GroupCodes()
        self.log = EventLog()
        self._packing = Packing()
        self._index = SortedIndex()
        self._waiting = Agenda()
        self._most = self._most_logged = _SPARE

    def take(self, batch: Batch, codes: Rows, terms: Terms, watermark: int, is_last: bool) -> Touched:
        """Take changed rows in, raise the watermark, and return what is not as before; what is gone is still to be dropped.

        After the last change none can take back a row.
        """
        self.watermark = watermark
        touched = self._change(batch, codes, terms, is_last) if len(batch) else UNTOUCHED
        if not self.by_end:
            return touched
        ends, slots = self._waiting.pop_until(watermark)
        if not len(slots):
            return touched
        is_due = np.zeros(self.boundaries.lanes.size, dtype=np.bool_)
        is_due[slots[(self.boundaries.re[slots] == ends) & ~self.boundaries.results.is_out[slots]]] = True
        is_due[touched.gone] = is_due[touched.slots] = False
        slots = flatnonzero(is_due & (self.boundaries.rows > 0))
        summed = np.concatenate([touched.summed, np.zeros(len(slots), dtype=np.bool_)])
        return Touched(np.concatenate([touched.slots, slots]), summed, touched.gone)

    def wait(self, slots: Rows) -> None:
        """Note sessions whose results wait for their ends."""
        self._waiting.add(self.boundaries.re[slots], slots)

    def _change(self, batch: Batch, codes: Rows, terms: Terms, is_last: bool) -> Touched:
        came, went = flatnonzero(batch.re_new > batch.le), flatnonzero(batch.re_old > batch.le)
        self._fit(batch)
        numbers = self._packing.numbers(codes, batch.le)
        affected = self._affected(numbers[went])
        for rows, re, sign in ((came, batch.re_new, 1), (went, batch.re_old, -1)) if len(went) or not is_last else ():
            self.log.add(numbers[rows], codes[rows], batch.le[rows], re[rows], sign, terms.take(rows))
        logged = self._logged(affected)
        low, high = self._stretches(affected)
        outside = came[~_inside(numbers[came], low, high)] if len(affected) else came
        new = Members(
            np.full(len(outside), _NEW),
            outside,
            numbers[outside],
            codes[outside],
            batch.le[outside],
            self._reach(batch.re_new[outside]),
        )
        ends = [self._packing.numbers(part.codes, part.reach) for part in (logged, new)]
        portion = self._index.portion(np.concatenate([logged.numbers, new.numbers, low]), np.concatenate([*ends, high]))
        return self._join(portion, Members.merged([self._known(portion, affected), logged, new]), terms)

    def _fit(self, batch: Batch) -> None:
        """Make sure that all places have numbers."""
        ends = batch.re_new[(batch.re_new != INFINITY) & (batch.re_new > batch.le)]
        latest = int(ends.max(initial=MIN_TIME))
        low = int(batch.le.min())
        reach = self.spec.reach(latest) if len(ends) else low
        high = max(int(batch.le.max()), low if reach == INFINITY else reach)
        if self._packing.fits(len(self.codes), low, high):
            return
        slots = self._index.all().slots
        le, re = self.boundaries.le[slots], self.boundaries.re[slots]
        known = np.concatenate([le, re[re != INFINITY], self.log.starts()])
        self._packing.fit(len(self.codes), int(known.min(initial=low)), int(known.max(initial=high)))
        self._index.renumber(self._packing.numbers(self.boundaries.code[slots], le))
        self.log.renumber(self._packing)

    def _reach(self, re: Ticks) -> Ticks:
        if self.spec.gap == INFINITY:
            return np.full(len(re), INFINITY, dtype=np.int64)
        return np.where(re == INFINITY, INFINITY, re + self.spec.gap)

    def _affected(self, numbers: Column) -> Rows:
        """Return the sessions that some events were in, in order."""
        if not len(numbers):
            return _NONE
        portion = self._index.portion(numbers, numbers)
        is_in = np.zeros(len(portion.slots), dtype=np.bool_)
        is_in[np.searchsorted(portion.numbers, numbers, side="right") - 1] = True
        return portion.slots[is_in]

    def _stretches(self, slots: Rows) -> tuple[Column, Column]:
        code = self.boundaries.code[slots]
        return self._packing.numbers(code, self.boundaries.le[slots]), self._packing.numbers(code, self.boundaries.re[slots])

    def _logged(self, affected: Rows) -> Members:
        """Return the events that are left of some sessions."""
        entries = self.log.entries
        slots = self.log.between(*self._stretches(affected)) if len(affected) else _NONE
        slots = slots[self.log.counts(self._packing.numbers(entries.code[slots], entries.le[slots]), slots) > 0]
        code, le = entries.code[slots], entries.le[slots]
        numbers = self._packing.numbers(code, le)
        return Members(np.full(len(slots), _LOGGED), slots, numbers, code, le, self._reach(entries.re[slots]))

    def _known(self, portion: Portion, affected: Rows) -> Members:
        """Return sessions as they are; of dissolved ones only the place is left, for a session that starts there again."""
        slots = portion.slots
        is_dissolved = np.isin(slots, affected)
        le = self.boundaries.le[slots]
        self.boundaries.lanes.clear(affected)
        reach = np.where(is_dissolved, le + 1, self.boundaries.re[slots])
        kinds = np.where(is_dissolved, _DISSOLVED, _KNOWN)
        return Members(kinds, slots, portion.numbers, self.boundaries.code[slots], le, reach)

    def _join(self, portion: Portion, members: Members, terms: Terms) -> Touched:
        """Let members be one session where one starts before those before it end."""
        reach = np.maximum.accumulate(self._packing.numbers(members.codes, members.reach))
        is_first = np.concatenate([[True], members.numbers[1:] >= reach[:-1]])
        firsts = flatnonzero(is_first)
        group = np.cumsum(is_first) - 1
        re = np.maximum.reduceat(members.reach, firsts)
        is_event = members.kinds >= _LOGGED
        is_left = members.reach > members.le + (members.kinds == _DISSOLVED)
        changed = np.zeros(len(firsts), dtype=np.bool_)
        changed[group[members.kinds != _KNOWN]] = True
        lives = np.zeros(len(firsts), dtype=np.bool_)
        lives[group[is_left]] = True
        leaders = np.where(is_event[firsts], -1, members.refs[firsts])
        made = flatnonzero((leaders < 0) & lives)
        leaders[made] = self.boundaries.make(members.codes[firsts[made]], members.le[firsts[made]])
        self.boundaries.re[leaders[changed & lives]] = re[changed & lives]
        self._sum(members, leaders[group], is_event, terms)
        is_gone = ~is_event & ((leaders[group] != members.refs) | ~lives[group])
        kept = flatnonzero(lives)
        self._put(portion, members, firsts[kept], leaders[kept])
        slots = leaders[changed & lives]
        return Touched(slots, np.ones(len(slots), dtype=np.bool_), members.refs[is_gone])

    def _sum(self, members: Members, leaders: Rows, is_event: Column, terms: Terms) -> None:
        """Add to the session that each member is in now what it had, or what it adds."""
        lanes = self.boundaries.lanes
        moved = flatnonzero(~is_event & (leaders != members.refs) & (leaders >= 0))
        lanes.add_from(leaders[moved], members.refs[moved])
        logged = flatnonzero((members.kinds == _LOGGED) & (leaders >= 0))
        if len(logged):
            lanes.add_lanes(leaders[logged], self.log.entries.lanes.take(members.refs[logged]))
        new = flatnonzero(members.kinds == _NEW)
        if len(new):
            new = new[np.argsort(members.refs[new])]
            lanes.add(leaders[new], terms.take(members.refs[new]))

    def _put(self, portion: Portion, members: Members, firsts: Rows, slots: Rows) -> None:
        runs = np.full(len(members), -1, dtype=np.intp)
        known = flatnonzero(members.kinds < _LOGGED)
        runs[known] = portion.run
        runs = np.maximum(np.maximum.accumulate(runs), 0)
        self._index.put(Portion(members.numbers[firsts], slots, runs[firsts], portion.pieces))

    def drop(self, gone: Rows) -> None:
        """Let sessions go that are no more."""
        if len(gone):
            self.boundaries.drop(gone)

    def forget(self, cti: int) -> None:
        """Drop sessions that have ended and their events, once they may be half of all."""
        results = self.boundaries.results
        if len(self._index) + results.n_gone <= self._most and len(self.log) <= self._most_logged:
            return
        entries = self._index.all()
        ended = flatnonzero(self.boundaries.re[entries.slots] <= cti)
        kept = entries.without(ended)
        self._index.put(kept)
        self.boundaries.drop(entries.slots[ended])
        results.forget(cti)
        self.codes.keep(np.concatenate([self.boundaries.code[kept.slots], results.codes_of_gone]))
        numbers, slots = self.log.all()
        low, high = self._stretches(kept.slots)
        self.log.keep(_inside(numbers, low, high) & (self.log.counts(numbers, slots) != 0))
        self._most, self._most_logged = 2 * (len(kept.slots) + results.n_gone) + _SPARE, 2 * len(self.log) + _SPARE

    def open_slots(self, cti: int) -> Rows:
        """Return the sessions that have not ended."""
        slots = self._index.all().slots
        return slots[self.boundaries.re[slots] > cti]

    def n_events(self, cti: int) -> int:
        """Return how many entries of the log are of sessions that have not ended."""
        numbers, _ = self.log.all()
        return int(_inside(numbers, *self._stretches(self.open_slots(cti))).sum())

    def slowest_group(self, cti: int) -> int | None:
        """Return the group of the first session that goes on at a time."""
        slots = self.open_slots(cti)
        if not len(slots):
            return None
        first = slots[np.argmin(self.boundaries.le[slots])]
        return int(self.codes.groups(self.boundaries.code[first : first + 1])[0])

    def first_start(self, cti: int) -> int:
        """Return the LE of the first session that goes on at a time, that time if there is none."""
        le = self.boundaries.le[self.open_slots(cti)]
        return int(le.min(initial=cti))


def _inside(numbers: Column, low: Column, high: Column) -> Column:
    """Say which numbers are in one of some stretches, which are in order."""
    if not len(low):
        return np.zeros(len(numbers), dtype=np.bool_)
    at = np.searchsorted(low, numbers, side="right") - 1
    inside: Column = (at >= 0) & (numbers < high[at])
    return inside
