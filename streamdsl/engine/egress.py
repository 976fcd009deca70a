"""Egress: net changes become physical events, at once or when they are final (api, section 5)."""

from __future__ import annotations

import heapq
import itertools
import operator
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from streamdsl.engine.batch import Batch
from streamdsl.engine.order import ordered
from streamdsl.expr.table import every, largest
from streamdsl.temporal import INFINITY, MIN_TIME, Cti, Event, Insert, Retract, payload_order

_FEW: Final = 32
"""So many rows are ordered in columns; fewer one by one."""


@dataclass(frozen=True, slots=True)
class RowVersion:
    """The id of a row that came back after a full retraction."""

    id: Hashable
    version: int


class OutRow(NamedTuple):
    """One changed row of the output."""

    id: Any
    le: int
    re_old: int
    re_new: int
    payload: Any

    @property
    def is_insertion(self) -> bool:
        """Whether the row was not there before."""
        return self.re_old == self.le

    @property
    def lifetime_order(self) -> tuple[bool, int, int]:
        """Retractions first, then insertions, each by (LE, RE)."""
        _, le, re_old, re_new, _ = self
        return (True, le, re_new) if re_old == le else (False, le, re_old)


def insertions(batch: Batch) -> list[Event[Any]]:
    """Return insertions as events, in the order in which they go out."""
    batch = ordered(batch)
    return list(map(Insert, batch.ids.tolist(), batch.le.tolist(), batch.re_new.tolist(), batch.table.payloads()))


def rows_of(batch: Batch) -> list[OutRow]:
    """Return rows that change in the order in which they go out."""
    batch = batch if len(batch) < _FEW else ordered(batch)
    columns = (batch.ids.tolist(), batch.le.tolist(), batch.re_old.tolist(), batch.re_new.tolist(), batch.table.payloads())
    rows = list(map(OutRow._make, zip(*columns, strict=True)))
    return in_order(rows) if len(rows) < _FEW else rows


def in_order(rows: list[OutRow]) -> list[OutRow]:
    """Return retractions first, then insertions, each by (LE, RE, payload); only ties are compared by payload, which is slow."""
    if len(rows) < 2:
        return rows
    orders = [row.lifetime_order for row in rows]
    if all(map(operator.lt, orders, orders[1:])):
        return rows
    ties = Counter(orders) if len(set(orders)) < len(rows) else {}

    def key(place: int) -> tuple[Any, ...]:
        order = orders[place]
        return (*order, payload_order(rows[place].payload)) if ties.get(order, 1) > 1 else order

    return [rows[place] for place in sorted(range(len(rows)), key=key)]


class Version(NamedTuple):
    """What is known of a row that was retracted: its version, the id that this goes by, and the last time of all its versions."""

    number: int
    name: Hashable
    last_time: int


class Versions:
    """The ids of output rows: one that comes back after a full retraction gets a new version of its id."""

    def __init__(self) -> None:
        self._versions: dict[Hashable, Version] = {}
        self._deaths: list[tuple[int, int, Hashable]] = []
        self._tickets = itertools.count()

    def event(self, row: OutRow) -> Event[Any]:
        """Return the event that tells of a change."""
        id, le, re_old, re_new, payload = row
        known = self._versions.get(id)
        if re_old == le:
            if known is None:
                return Insert(id, le, re_new, payload)
            name = RowVersion(id, known.number + 1)
            self._note(id, known, Version(known.number + 1, name, max(known.last_time, re_new)))
            return Insert(name, le, re_new, payload)
        if known is None and re_new > le:
            return Retract(id, le, re_old, re_new, payload)
        now = Version(0, id, re_new) if known is None else known._replace(last_time=max(known.last_time, re_new))
        self._note(id, known, now)
        return Retract(now.name, le, re_old, re_new, payload)

    def _note(self, id: Hashable, known: Version | None, now: Version) -> None:
        """Remember a row's version until no change can reach it or an earlier one: its LE if it is gone, else its RE."""
        self._versions[id] = now
        if known is None or known.last_time < now.last_time:
            heapq.heappush(self._deaths, (now.last_time, next(self._tickets), id))

    def __bool__(self) -> bool:
        return bool(self._versions)

    def forget(self, cti: int) -> None:
        """Forget the versions of rows that nothing can reach after an output CTI."""
        while self._deaths and self._deaths[0][0] < cti:
            time, _, id = heapq.heappop(self._deaths)
            if id in self._versions and self._versions[id].last_time == time:
                del self._versions[id]


class SpeculativeEgress:
    """Sends every change at once."""

    def __init__(self) -> None:
        self.cti = MIN_TIME
        self._versions = Versions()

    def send(self, batch: Batch, cti: int, now: int = INFINITY) -> list[Event[Any]]:
        """Return the events of one piece, its CTI last if it has risen; `now` is the largest LE or CTI of the input."""
        batch = batch.changed()
        if not self._versions and every(batch.re_old == batch.le):
            events = insertions(batch)
        else:
            events = list(map(self._versions.event, rows_of(batch)))
        if cti > self.cti:
            self.cti = cti
            self._versions.forget(cti)
            events.append(Cti(cti))
        return events


class FinalEgress:
    """Holds each row back until it cannot change, so that no retraction is ever sent."""

    def __init__(self, fixed_end: bool) -> None:
        self.cti = MIN_TIME
        self._settled = MIN_TIME
        self.fixed_end = fixed_end
        self._held: dict[Hashable, OutRow] = {}
        self._by_re: list[tuple[int, int, Hashable]] = []
        self._by_le: list[tuple[int, int, Hashable]] = []
        self._tickets = itertools.count()

    def send(self, batch: Batch, cti: int, now: int = INFINITY) -> list[Event[Any]]:
        """Return the rows that the CTI makes final, then the CTI, as far as the first row that is still held."""
        self._settled = max(self._settled, cti)
        batch = batch.changed()
        if not len(batch) and not self._held:
            return self._with_cti([])
        if not self._held and every(batch.re_old == batch.le) and self._is_final(largest(batch.re_new)):
            return self._with_cti(insertions(batch))
        final = []
        for row in rows_of(batch):
            if row.is_insertion and self._is_final(row.re_new):
                final.append(row)
            else:
                self._hold(row)
        held = self._release()
        final = in_order(final + held) if held else final
        return self._with_cti([Insert(row.id, row.le, row.re_new, row.payload) for row in final])

    def _with_cti(self, events: list[Event[Any]]) -> list[Event[Any]]:
        cti = min(self._settled, self._first_held())
        if cti > self.cti:
            self.cti = cti
            events.append(Cti(cti))
        return events

    def held_ends(self) -> list[int]:
        """Return the REs of the rows that are held back."""
        return [row.re_new for row in self._held.values()]

    def _hold(self, row: OutRow) -> None:
        if row.re_new == row.le:
            self._held.pop(row.id, None)
            return
        self._held[row.id] = row._replace(re_old=row.le)
        heapq.heappush(self._by_re, (row.re_new, next(self._tickets), row.id))
        heapq.heappush(self._by_le, (row.le, next(self._tickets), row.id))

    def _release(self) -> list[OutRow]:
        final = []
        while self._by_re and self._is_final(self._by_re[0][0]):
            re, _, id = heapq.heappop(self._by_re)
            if id in self._held and self._held[id].re_new == re:
                final.append(self._held.pop(id))
        return final

    def _is_final(self, re: int) -> bool:
        if self._settled == INFINITY:
            return True
        return re <= self._settled if self.fixed_end else re < self._settled

    def _first_held(self) -> int:
        while self._by_le:
            le, _, id = self._by_le[0]
            if id in self._held and self._held[id].le == le:
                return le
            heapq.heappop(self._by_le)
        return INFINITY


class HoldingEgress(FinalEgress):
    """Holds each row back until it is final, or application time is so much later than its LE; then come its corrections."""

    def __init__(self, fixed_end: bool, hold: int) -> None:
        super().__init__(fixed_end)
        self._hold_for = hold
        self._versions = Versions()

    def send(self, batch: Batch, cti: int, now: int = INFINITY) -> list[Event[Any]]:
        """Return the corrections of rows that are out and the rows that need not wait any more, then the CTI."""
        going = []
        for row in rows_of(batch.changed()):
            if row.is_insertion or row.id in self._held:
                self._hold(row)
            else:
                going.append(row)
        self._settled = max(self._settled, cti)
        going += self._release() + self._ripe(now)
        events = self._with_cti(list(map(self._versions.event, in_order(going))))
        self._versions.forget(self.cti)
        return events

    def first_release(self) -> int:
        """Return the time of the input at which the next row goes out, if nothing else settles it."""
        return min(self._first_held() + self._hold_for, INFINITY)

    def _ripe(self, now: int) -> list[OutRow]:
        """Return the rows that have waited for long enough."""
        ripe = []
        while self._by_le and self._by_le[0][0] <= now - self._hold_for:
            le, _, id = heapq.heappop(self._by_le)
            if id in self._held and self._held[id].le == le:
                ripe.append(self._held.pop(id))
        return ripe
