"""Events under CTIs: the table of known ids, and what is done with an event that breaks a CTI (semantics, sections 1 and 7)."""

from __future__ import annotations

import heapq
import itertools
import operator
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from streamdsl.errors import CtiViolation, EventError, shortened
from streamdsl.temporal.alike import unique
from streamdsl.temporal.events import MISSING, Cti, Insert, Retract, sync_time
from streamdsl.temporal.payload import payload_key
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks

OnViolation: TypeAlias = Literal["error", "drop", "adjust"]
DataEvent: TypeAlias = Insert[Any] | Retract


class Rejected(NamedTuple):
    """An event that a source dropped or adjusted, with the CTI that it broke."""

    event: DataEvent
    cti: int
    reason: str


class Known(NamedTuple):
    """What is known of an event id: its lifetime and payload now, the LE that the sender believes in, whether it was deleted."""

    le: int
    re: int
    payload: Any
    sent_le: int
    is_deleted: bool = False

    @property
    def last_time(self) -> int:
        """Return the time that a CTI must pass before the id may be forgotten."""
        return self.le if self.re <= self.le else self.re


_known_of: Final[Callable[[tuple[int, int, Any, int, bool]], Known]] = partial(tuple.__new__, Known)
"""What is known of an id, of its parts, made at less than half the cost: there is one for each event."""


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
    _dropped: dict[Hashable, int] = field(default_factory=dict)
    _deaths: list[tuple[int, int, Hashable]] = field(default_factory=list)
    _ticket: itertools.count[int] = field(default_factory=itertools.count)
    _undo: list[Callable[[], None]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._known)

    def advance(self, cti: int) -> None:
        """Take a CTI: times before it are closed, and ids that can no longer change are forgotten."""
        if cti > self.cti:
            self.cti = cti
            if cti > self.watermark:
                self.watermark = cti
        self.commit()

    def promise(self, cti: int) -> None:
        """Take a CTI as `advance` does, but in a way that `rollback` can undo."""
        if cti > self.cti:
            self._undo.append(partial(self._restore, self.cti, self.watermark, len(self.rejected)))
            self.cti = cti
            self.watermark = max(self.watermark, cti)

    def commit(self) -> None:
        """Keep everything since the last commit, and forget what the CTI has passed."""
        if self._undo:
            self._undo.clear()
        deaths, cti = self._deaths, self.cti
        while deaths and deaths[0][0] < cti:
            time, _, id = heapq.heappop(deaths)
            entry = self._known.get(id)
            if entry is not None and entry.last_time == time:
                del self._known[id]
            if self._dropped and self._dropped.get(id) == time:
                del self._dropped[id]

    def rollback(self) -> None:
        """Undo everything since the last commit."""
        while self._undo:
            self._undo.pop()()

    def _restore(self, cti: int, watermark: int, rejected: int) -> None:
        self.cti, self.watermark = cti, watermark
        del self.rejected[rejected:]

    def _write(self, entries: dict[Hashable, Any], id: Hashable, entry: Any) -> None:
        old = entries.get(id, MISSING)
        self._undo.append(partial(self._unwrite, entries, id, old))
        entries[id] = entry

    @staticmethod
    def _unwrite(entries: dict[Hashable, Any], id: Hashable, old: Any) -> None:
        if old is MISSING:
            del entries[id]
        else:
            entries[id] = old

    def _lookup(self, id: Hashable) -> Known | None:
        entry = self._known.get(id)
        return None if entry is None or entry.last_time < self.cti else entry

    def _was_dropped(self, id: Hashable) -> bool:
        """Say whether an event with this id was dropped that, as its sender believes, the CTI has not passed."""
        last_time = self._dropped.get(id)
        return last_time is not None and last_time >= self.cti

    def admit(self, event: DataEvent) -> DataEvent | None:
        """Return the event as it takes effect, or None if it is dropped."""
        if not _is_hashable(event.id):
            raise self._malformed(event, "its id is not hashable")
        if event.id != event.id:
            raise self._malformed(event, "its id is not equal to itself, so nothing could name it again")
        return self._insert(event) if isinstance(event, Insert) else self._retract(event)

    def admit_all(self, ids: Sequence[Hashable], le: Ticks, re: Ticks, payloads: Sequence[Any]) -> bool:
        """Admit insertions at once if not one of them breaks a rule; else return False, and leave all as it was.

        >>> import numpy as np
        >>> table = EventTable()
        >>> table.admit_all(["a", "b"], np.array([1, 2]), np.array([5, 9]), ["x", "y"])
        True
        >>> table.admit_all(["c", "a"], np.array([1, 2]), np.array([5, 9]), ["x", "y"])
        False
        """
        starts, ends = le.tolist(), re.tolist()
        if min(starts) < self.cti or max(starts) == INFINITY or any(map(operator.gt, starts, ends)) or not self._are_new(ids):
            return False
        self._undo.append(partial(self._restore, self.cti, self.watermark, len(self.rejected)))
        self._undo.append(partial(self._unwrite_all, ids))
        self.watermark = max(self.watermark, *starts)
        self._known.update(zip(ids, map(Known, starts, ends, payloads, starts), strict=True))
        for death in zip(ends, self._ticket, ids, strict=False):
            heapq.heappush(self._deaths, death)
        return True

    def admit_alone(self, id: Hashable, le: int, re: int, payload: Any) -> bool:
        """Admit an insertion for good if it breaks no rule; else return False, and leave all as it was.

        >>> table = EventTable()
        >>> table.admit_alone("a", 1, 5, "x"), table.admit_alone("a", 2, 5, "y")
        (True, False)
        """
        if not self.cti <= le <= re <= INFINITY or le == INFINITY or type(id) not in (int, str):
            return False
        if id in self._known or (self._dropped and id in self._dropped):
            return False
        if le > self.watermark:
            self.watermark = le
        self._known[id] = _known_of((le, re, payload, le, False))
        heapq.heappush(self._deaths, (re, next(self._ticket), id))
        return True

    def _are_new(self, ids: Sequence[Hashable]) -> bool:
        """Say whether these are different ids that nothing is known of; of others than int and str it is not said."""
        if not unique(map(type, ids)) <= {int, str}:
            return False
        given = set(ids)
        return len(given) == len(ids) and self._known.keys().isdisjoint(given) and self._dropped.keys().isdisjoint(given)

    def _unwrite_all(self, ids: Sequence[Hashable]) -> None:
        for id in ids:
            del self._known[id]

    def _insert(self, event: Insert[Any]) -> Insert[Any] | None:
        if event.le == INFINITY:
            raise self._malformed(event, "its LE is not finite")
        if event.le > event.re:
            raise self._malformed(event, f"its LE {event.le} is after its RE {event.re}")
        if self._lookup(event.id) is not None or self._was_dropped(event.id):
            raise self._malformed(event, f"an event with the id {event.id!r} is known already")
        sent_le = event.le
        if event.le < self.cti:
            if self.on_violation == "error":
                raise CtiViolation(event, event.le, self.cti, where=self.name)
            if self.on_violation == "drop" or event.re <= self.cti:
                self._drop(event, event.re)
                return None
            self._reject(event, f"adjusted: LE {event.le} became the CTI")
            event = Insert(event.id, self.cti, event.re, event.payload)
        self._undo.append(partial(self._restore, self.cti, self.watermark, len(self.rejected)))
        self.watermark = max(self.watermark, event.le)
        self._remember(event.id, Known(event.le, event.re, event.payload, sent_le))
        return event

    def _retract(self, event: Retract) -> Retract | None:
        if event.re_new < event.le:
            raise self._malformed(event, f"its RE_new {event.re_new} is before its LE {event.le}")
        entry = self._lookup(event.id)
        sync = sync_time(event)
        if sync < self.cti and (entry is None or self.on_violation != "adjust" or event.re < self.cti):
            self._violate(event, sync)
            return None
        if self._was_dropped(event.id) and (entry is None or event.re != entry.re):
            self._drop(event, event.re_new, "dropped: an event that it corrects was dropped")
            return None
        if entry is None:
            raise self._malformed(event, f"no event with the id {event.id!r} is known (or a CTI has passed it)")
        self._check_match(event, entry)
        re_new = max(event.re_new, entry.le)
        if sync < self.cti:
            self._reject(event, f"adjusted: RE_new {event.re_new} became the CTI")
            re_new = max(self.cti, entry.le)
        if event.id in self._dropped:
            self._mark_dropped(event.id, MIN_TIME)
        self._remember(event.id, entry._replace(re=re_new, is_deleted=event.re_new == event.le))
        return Retract(event.id, entry.le, entry.re, re_new, entry.payload)

    def _check_match(self, event: Retract, entry: Known) -> None:
        if entry.is_deleted:
            raise self._malformed(event, f"the event {event.id!r} has been fully retracted already")
        if event.le not in (entry.sent_le, entry.le):
            raise self._malformed(event, f"its LE {event.le} is not the event's, {entry.sent_le}")
        if event.re != entry.re:
            raise self._malformed(event, f"its RE {event.re} is not the event's current one, {entry.re}")
        if event.payload is not MISSING and payload_key(event.payload) != payload_key(entry.payload):
            raise self._malformed(event, f"its payload is not the event's, {shortened(entry.payload)}")

    def _violate(self, event: Retract, sync: int) -> None:
        if self.on_violation == "error":
            raise CtiViolation(event, sync, self.cti, where=self.name)
        self._drop(event, event.re_new)

    def _drop(self, event: DataEvent, re: int, reason: str = "dropped: it changes a time before the CTI") -> None:
        self._mark_dropped(event.id, re)
        self._reject(event, reason)

    def _mark_dropped(self, id: Hashable, last_time: int) -> None:
        self._write(self._dropped, id, last_time)
        heapq.heappush(self._deaths, (last_time, next(self._ticket), id))

    def _reject(self, event: DataEvent, reason: str) -> None:
        self._undo.append(partial(self._restore, self.cti, self.watermark, len(self.rejected)))
        self.rejected.append(Rejected(event, self.cti, reason))

    def _remember(self, id: Hashable, entry: Known) -> None:
        self._write(self._known, id, entry)
        heapq.heappush(self._deaths, (entry.last_time, next(self._ticket), id))

    def _malformed(self, event: DataEvent, rule: str) -> EventError:
        return EventError(event, rule, where=self.name)


def _is_hashable(id: object) -> bool:
    try:
        hash(id)
    except TypeError:
        return False
    return True


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
