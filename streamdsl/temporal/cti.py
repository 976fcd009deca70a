"""Events under CTIs: the table of known ids, and what is done with an event that breaks a CTI (semantics, sections 1 and 7)."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from streamdsl.errors import CtiViolation, EventError
from streamdsl.temporal.events import MISSING, Cti, Insert, Retract, sync_time
from streamdsl.temporal.payload import payload_key
from streamdsl.temporal.time import INFINITY, MIN_TIME

OnViolation: TypeAlias = Literal["error", "drop", "adjust"]
DataEvent: TypeAlias = Insert[Any] | Retract


class Rejected(NamedTuple):
    """An event that a source dropped or adjusted, with the CTI that it broke."""

    event: DataEvent
    cti: int
    reason: str


class Known(NamedTuple):
    """What is known of an event id: its lifetime and payload now, and the LE that the sender believes in."""

    le: int
    re: int
    payload: Any
    sent_le: int

    @property
    def last_time(self) -> int:
        """Return the time that a CTI must pass before the id may be forgotten."""
        return self.le if self.re <= self.le else self.re


@dataclass
class EventTable:
    """The ids of a stream that can still change, and the rules that every next event must obey.

    `admit` gives the event as it takes effect (the same, an adjusted one, or None if it was dropped) and raises `EventError` or
    `CtiViolation`; nothing is changed by an event that raises. Ids are forgotten once a CTI has passed them.

    >>> table = EventTable()
    >>> table.admit(Insert("a", 1, 9, "x"))
    Insert(id='a', le=1, re=9, payload='x')
    >>> table.advance(5)
    >>> table.admit(Retract("a", 1, 9, 4))
    Traceback (most recent call last):
        ...
    streamdsl.errors.CtiViolation: event 'a' is refused: its sync time 4 is before the CTI 5
      event: Retract(id='a', le=1, re=9, re_new=4, payload=...)
    Hint: choose on_violation="drop" or "adjust" at the source, or give its Progress more slack
    """

    name: str | None = None
    on_violation: OnViolation = "error"
    cti: int = MIN_TIME
    watermark: int = MIN_TIME
    rejected: list[Rejected] = field(default_factory=list)
    _known: dict[Hashable, Known] = field(default_factory=dict)
    _dropped: dict[Hashable, tuple[int, int]] = field(default_factory=dict)
    _deaths: list[tuple[int, int, Hashable]] = field(default_factory=list)
    _ticket: itertools.count[int] = field(default_factory=itertools.count)

    def __len__(self) -> int:
        return len(self._known)

    def copy(self) -> EventTable:
        """Return an independent copy, for trying a batch out before it counts."""
        return EventTable(
            self.name,
            self.on_violation,
            self.cti,
            self.watermark,
            list(self.rejected),
            dict(self._known),
            dict(self._dropped),
            list(self._deaths),
            self._ticket,
        )

    def advance(self, cti: int) -> None:
        """Take a CTI: times before it are closed, and ids that can no longer change are forgotten."""
        if cti <= self.cti:
            return
        self.cti = cti
        self.watermark = max(self.watermark, cti)
        while self._deaths and self._deaths[0][0] < cti:
            time, _, id = heapq.heappop(self._deaths)
            entry = self._known.get(id)
            if entry is not None and entry.last_time == time:
                del self._known[id]
            elif id in self._dropped and self._dropped[id][1] == time:
                del self._dropped[id]

    def admit(self, event: DataEvent) -> DataEvent | None:
        """Return the event as it takes effect, or None if it is dropped."""
        return self._insert(event) if isinstance(event, Insert) else self._retract(event)

    def _insert(self, event: Insert[Any]) -> Insert[Any] | None:
        if event.le == INFINITY:
            raise self._malformed(event, "its LE is not finite")
        if event.le > event.re:
            raise self._malformed(event, f"its LE {event.le} is after its RE {event.re}")
        if event.id in self._known:
            raise self._malformed(event, f"an event with the id {event.id!r} is known already")
        sent_le = event.le
        if event.le < self.cti:
            if self.on_violation == "error":
                raise CtiViolation(event, event.le, self.cti, where=self.name)
            if self.on_violation == "drop" or event.re <= self.cti:
                return self._drop(event, event.re)
            self._reject(event, f"adjusted: LE {event.le} became the CTI")
            event = Insert(event.id, self.cti, event.re, event.payload)
        self.watermark = max(self.watermark, event.le)
        self._remember(event.id, Known(event.le, event.re, event.payload, sent_le))
        return event

    def _retract(self, event: Retract) -> Retract | None:
        if event.re_new < event.le:
            raise self._malformed(event, f"its RE_new {event.re_new} is before its LE {event.le}")
        if event.id in self._dropped:
            return self._drop(event, event.re_new, "dropped: the insertion that it corrects was dropped")
        entry = self._known.get(event.id)
        sync = sync_time(event)
        if entry is None:
            if sync < self.cti:
                return self._violate(event, sync)
            raise self._malformed(event, f"no event with the id {event.id!r} is known (or a CTI has passed it)")
        self._check_match(event, entry)
        re_new = event.re_new
        if sync < self.cti:
            if self.on_violation != "adjust" or event.re < self.cti:
                return self._violate(event, sync)
            self._reject(event, f"adjusted: RE_new {re_new} became the CTI")
            re_new = self.cti
        re_new = max(re_new, entry.le)
        self._remember(event.id, entry._replace(re=re_new))
        return Retract(event.id, entry.le, entry.re, re_new, entry.payload)

    def _check_match(self, event: Retract, entry: Known) -> None:
        if entry.re <= entry.le:
            raise self._malformed(event, f"the event {event.id!r} has been fully retracted already")
        if event.le not in (entry.sent_le, entry.le):
            raise self._malformed(event, f"its LE {event.le} is not the event's, {entry.sent_le}")
        if event.re != entry.re:
            raise self._malformed(event, f"its RE {event.re} is not the event's current one, {entry.re}")
        if event.payload is not MISSING and payload_key(event.payload) != payload_key(entry.payload):
            raise self._malformed(event, f"its payload is not the event's, {entry.payload!r}")

    def _violate(self, event: Retract, sync: int) -> None:
        if self.on_violation == "error":
            raise CtiViolation(event, sync, self.cti, where=self.name)
        self._reject(event, "dropped: it changes a time before the CTI")

    def _drop(self, event: DataEvent, re: int, reason: str = "dropped: it changes a time before the CTI") -> None:
        self._dropped[event.id] = (event.le, re)
        heapq.heappush(self._deaths, (re, next(self._ticket), event.id))
        self._reject(event, reason)

    def _reject(self, event: DataEvent, reason: str) -> None:
        self.rejected.append(Rejected(event, self.cti, reason))

    def _remember(self, id: Hashable, entry: Known) -> None:
        self._known[id] = entry
        heapq.heappush(self._deaths, (entry.last_time, next(self._ticket), id))

    def _malformed(self, event: DataEvent, rule: str) -> EventError:
        return EventError(event, rule, where=self.name)


def problems(events: list[Insert[Any] | Retract | Cti]) -> list[tuple[int, str]]:
    """Return `(index, kind)` of every event that is refused: `"cti-violation"` or `"malformed"`.

    >>> problems([Insert("a", 1, 20, "x"), Cti(10), Retract("a", 1, 20, 9), Retract("b", 1, 20, 15)])
    [(2, 'cti-violation'), (3, 'malformed')]
    """
    table, found = EventTable(), []
    for index, event in enumerate(events):
        if isinstance(event, Cti):
            table.advance(event.time)
            continue
        try:
            table.admit(event)
        except CtiViolation:
            found.append((index, "cti-violation"))
        except EventError:
            found.append((index, "malformed"))
    return found
