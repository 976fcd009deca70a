"""The ids of a source's events that can still change, and the policy for late events (semantics, sections 1 and 7)."""

from __future__ import annotations

import heapq
import itertools
import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from streamdsl.errors import CtiViolation, EventError, shortened
from streamdsl.temporal.events import MISSING, Cti, Insert, Retract, sync_time
from streamdsl.temporal.payload import payload_key
from streamdsl.temporal.rejected import LE_MOVED, RE_MOVED, TOO_FAR, TOO_LATE, WAS_DROPPED, CtiOrigin, Rejected, Rejections
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks
from streamdsl.temporal.value_arrays import distinct

OnViolation: TypeAlias = Literal["error", "drop", "adjust"]
DataEvent: TypeAlias = Insert[Any] | Retract

_STALE_EXPIRATIONS: Final = 64
"""Entries that the heap may have beyond two per id before it is rebuilt."""


class EventState(NamedTuple):
    """The state of an event id: current lifetime and payload, the LE that its sender gave it, and whether it has been deleted.

    `sent_le` differs from `le` if the insertion was late and its LE was moved to the CTI (`on_violation="adjust"`).
    """

    le: int
    re: int
    payload: Any
    sent_le: int
    is_deleted: bool = False

    @property
    def expiry(self) -> int:
        """The time that a CTI must pass before the id can be forgotten."""
        return self.le if self.re <= self.le else self.re


_event_state: Final[Callable[[tuple[int, int, Any, int, bool]], EventState]] = partial(tuple.__new__, EventState)
"""Constructs an `EventState` at less than half the cost of calling the class; it runs once per event."""


class EventTable:
    """The ids of a source's events that can still change; checks each next event against them and against the CTI.

    `admit` returns the event as it takes effect (the same, an adjusted one, or None if it was dropped) and raises `EventError` or
    `CtiViolation`; an event that raises changes nothing. Events that were admitted since the last `commit` can be rolled back.

    `cti` is the largest CTI, which came from the `origin`, `high_water` the largest LE or CTI so far. An id is forgotten once a
    CTI has passed its expiry; a heap of expirations finds these ids, so that an event costs O(log ids) amortized.

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

    def __init__(self, name: str | None = None, on_violation: OnViolation = "error") -> None:
        self.name = name
        self.on_violation = on_violation
        self.cti = MIN_TIME
        self.high_water = MIN_TIME
        self.origin: tuple[str | None, str, int] = (name, "the beginning", 0)
        self._rejected = Rejections()
        self._late = Rejections()
        self._known: dict[Hashable, EventState] = {}
        self._dropped: dict[Hashable, int] = {}
        self._expirations: list[tuple[int, int, Hashable]] = []
        self._new_expirations: list[tuple[int, Hashable]] = []
        self._ticket = itertools.count()
        self._undo: list[Callable[[], None]] = []

    def __len__(self) -> int:
        return len(self._known)

    def knows(self, id: Hashable) -> bool:
        """Say whether an event with this id can still change, or could since the last commit."""
        return _is_hashable(id) and id in self._known

    @property
    def rejected(self) -> Rejections:
        """The events that were dropped or adjusted."""
        if not len(self._late):
            return self._rejected
        found = self._rejected.copy()
        found.extend(self._late)
        return found

    def forget_rejected(self) -> Rejections:
        """Return the committed rejections, and reset them."""
        found, self._rejected = self._rejected, self._rejected.anew()
        return found

    @property
    def late(self) -> Rejections:
        """The events that were dropped or adjusted since the last commit."""
        return self._late

    def keep_all_rejected(self) -> None:
        """Keep every event that is dropped or adjusted from now on, not only a sample; the caller has to fetch them."""
        self._rejected.keep_all()
        self._late.keep_all()

    def advance(self, cti: int, origin: tuple[str | None, str, int] | None = None) -> None:
        """Apply a CTI: times before it are closed, and ids that can no longer change are forgotten."""
        if cti > self.cti:
            self.cti = cti
            self.origin = origin or self.origin
            if cti > self.high_water:
                self.high_water = cti
        self.commit()

    def promise(self, cti: int, origin: tuple[str | None, str, int] | None = None) -> None:
        """Apply a CTI as `advance` does, but so that `rollback` can undo it."""
        if cti > self.cti:
            self._undo.append(partial(self._restore, self.cti, self.high_water, self.origin))
            self.cti = cti
            self.origin = origin or self.origin
            self.high_water = max(self.high_water, cti)

    def commit(self) -> None:
        """Make all changes since the last commit permanent, and forget the ids that the CTI has passed."""
        if self._undo:
            self._undo.clear()
            if len(self._late):
                self._rejected.extend(self._late)
                self._late.clear()
            for time, id in self._new_expirations:
                heapq.heappush(self._expirations, (time, next(self._ticket), id))
            self._new_expirations.clear()
        deaths, cti = self._expirations, self.cti
        while deaths and deaths[0][0] < cti:
            time, _, id = heapq.heappop(deaths)
            entry = self._known.get(id)
            if entry is not None and entry.expiry == time:
                del self._known[id]
            if self._dropped and id not in self._known and self._dropped.get(id, cti) < cti:
                del self._dropped[id]
        self._compact_expirations()

    def rollback(self) -> None:
        """Undo all changes since the last commit."""
        while self._undo:
            self._undo.pop()()
        self._late.clear()
        self._new_expirations.clear()

    def _expire_at(self, time: int, id: Hashable) -> None:
        """Schedule an id to be checked when a CTI has passed this time."""
        if time != INFINITY:
            self._new_expirations.append((time, id))

    def _compact_expirations(self) -> None:
        """Rebuild the heap once most of its entries are stale, because the expiry of their ids has changed."""
        if len(self._expirations) <= 2 * (len(self._known) + len(self._dropped)) + _STALE_EXPIRATIONS:
            return
        dying = [(entry.expiry, id) for id, entry in self._known.items()] + [(time, id) for id, time in self._dropped.items()]
        self._expirations = [(time, number, id) for number, (time, id) in enumerate(dying) if time != INFINITY]
        heapq.heapify(self._expirations)
        self._ticket = itertools.count(len(dying))

    def _restore(self, cti: int, watermark: int, origin: tuple[str | None, str, int]) -> None:
        self.cti, self.high_water, self.origin = cti, watermark, origin

    def _write(self, entries: dict[Hashable, Any], id: Hashable, entry: Any) -> None:
        old = entries.get(id, MISSING)
        self._undo.append(partial(self._undo_write, entries, id, old))
        entries[id] = entry

    @staticmethod
    def _undo_write(entries: dict[Hashable, Any], id: Hashable, old: Any) -> None:
        if old is MISSING:
            entries.pop(id, None)  # an interrupt may have prevented the write
        else:
            entries[id] = old

    def _lookup(self, id: Hashable) -> EventState | None:
        entry = self._known.get(id)
        return None if entry is None or entry.expiry < self.cti else entry

    def _is_free(self, id: Hashable) -> bool:
        """Say whether an id can be used again: the CTI has passed its event, for a late one as its sender knows it."""
        last_time = self._dropped.get(id)
        return self._lookup(id) is None if last_time is None else last_time < self.cti

    def _was_dropped(self, id: Hashable) -> bool:
        """Say whether an event with this id was dropped, and its sender may still correct it."""
        last_time = self._dropped.get(id)
        return last_time is not None and last_time >= self.cti

    def admit(self, event: DataEvent, is_numbered: bool = False, is_jump: bool = False) -> DataEvent | None:
        """Return the event as it takes effect, or None if it is dropped, as an insertion is that `is_jump`.

        An insertion that `is_numbered` keeps no state.
        """
        if is_numbered and isinstance(event, Insert):
            return self._insert(event, is_numbered, is_jump)
        if not _is_hashable(event.id):
            raise self._malformed(event, "its id is not hashable")
        if event.id != event.id:
            raise self._malformed(event, "its id is not equal to itself, so nothing could name it again")
        return self._insert(event, is_jump=is_jump) if isinstance(event, Insert) else self._retract(event)

    def admit_all(self, ids: Sequence[Hashable], le: Ticks, re: Ticks, payloads: Sequence[Any]) -> bool:
        """Admit insertions at once if all are valid; else return False, and change nothing.

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
        self._undo.append(partial(self._restore, self.cti, self.high_water, self.origin))
        self._undo.append(partial(self._undo_writes, ids))
        self.high_water = max(self.high_water, *starts)
        self._known.update(zip(ids, map(EventState, starts, ends, payloads, starts), strict=True))
        self._new_expirations += [(time, id) for time, id in zip(ends, ids, strict=True) if time != INFINITY]
        return True

    def admit_alone(self, id: Hashable, le: int, re: int, payload: Any) -> bool:
        """Admit an insertion permanently if it is valid; else return False, and change nothing. The fast path for one event.

        >>> table = EventTable()
        >>> table.admit_alone("a", 1, 5, "x"), table.admit_alone("a", 2, 5, "y")
        (True, False)
        """
        if not self.cti <= le <= re <= INFINITY or le == INFINITY or type(id) not in (int, str):
            return False
        if id in self._known or (self._dropped and id in self._dropped):
            return False
        if le > self.high_water:
            self.high_water = le
        self._known[id] = _event_state((le, re, payload, le, False))
        if re != INFINITY:
            heapq.heappush(self._expirations, (re, next(self._ticket), id))
        return True

    def _are_new(self, ids: Sequence[Hashable]) -> bool:
        """Say whether ids are distinct and unknown; False unless all are int or str, as only their `==` is reliable."""
        if not distinct(map(type, ids)) <= {int, str}:
            return False
        given = set(ids)
        return len(given) == len(ids) and self._known.keys().isdisjoint(given) and self._dropped.keys().isdisjoint(given)

    def _undo_writes(self, ids: Sequence[Hashable]) -> None:
        for id in ids:
            self._known.pop(id, None)  # an interrupt may have prevented the write

    def _insert(self, event: Insert[Any], is_numbered: bool = False, is_jump: bool = False) -> Insert[Any] | None:
        if event.le == INFINITY:
            raise self._malformed(event, "its LE is not finite")
        if event.le > event.re:
            raise self._malformed(event, "its LE {} is after its RE {}", event.le, event.re)
        if not is_numbered and not self._is_free(event.id):
            raise EventError(
                event,
                f"an event with the id {event.id!r} is known already",
                where=self.name,
                hint="each insertion has an id of its own; sd.correct(event, payload, new_id) replaces one that was sent",
            )
        if is_jump:
            self._drop(event, event.re, TOO_FAR, is_numbered)
            return None
        sent_le = event.le
        if event.le < self.cti:
            if self.on_violation == "error":
                raise self._violation(event, event.le)
            if self.on_violation == "drop" or event.re <= self.cti:
                self._drop(event, event.re, is_numbered=is_numbered)
                return None
            self._reject(event, LE_MOVED)
            event = Insert(event.id, self.cti, event.re, event.payload)
        self._undo.append(partial(self._restore, self.cti, self.high_water, self.origin))
        self.high_water = max(self.high_water, event.le)
        if not is_numbered:
            self._clear_dropped(event.id)
            self._remember(event.id, EventState(event.le, event.re, event.payload, sent_le))
        return event

    def _retract(self, event: Retract) -> Retract | None:
        if event.re_new < event.le:
            raise self._malformed(event, "its RE_new {} is before its LE {}", event.re_new, event.le)
        entry = self._lookup(event.id)
        sync = sync_time(event)
        if sync < self.cti and (entry is None or self.on_violation != "adjust" or event.re < self.cti):
            self._violate(event, sync)
            return None
        if self._was_dropped(event.id) and (entry is None or event.re != entry.re):
            self._drop(event, event.re_new, WAS_DROPPED)
            return None
        if entry is None:
            raise self._malformed(event, f"no event with the id {event.id!r} is known (or a CTI has passed it)")
        self._check_match(event, entry)
        re_new = max(event.re_new, entry.le)
        if sync < self.cti:
            self._reject(event, RE_MOVED)
            self._mark_dropped(event.id, event.re_new)
            re_new = max(self.cti, entry.le)
        else:
            self._clear_dropped(event.id)
        self._remember(event.id, entry._replace(re=re_new, is_deleted=event.re_new == event.le))
        return Retract(event.id, entry.le, entry.re, re_new, entry.payload)

    def _check_match(self, event: Retract, entry: EventState) -> None:
        if entry.is_deleted:
            raise self._malformed(event, f"the event {event.id!r} has been fully retracted already")
        if event.le not in (entry.sent_le, entry.le):
            raise self._malformed(event, "its LE {} is not the event's, {}", event.le, entry.sent_le)
        if event.re != entry.re:
            raise self._malformed(event, "its RE {} is not the event's current one, {}", event.re, entry.re)
        if event.payload is not MISSING and payload_key(event.payload) != payload_key(entry.payload):
            raise self._malformed(event, f"its payload is not the event's, {shortened(entry.payload)}")

    def _violation(self, event: DataEvent, sync: int) -> CtiViolation:
        origin = None if self.name is None else CtiOrigin(*self.origin)
        return CtiViolation(event, sync, self.cti, where=self.name, origin=origin)

    def _violate(self, event: Retract, sync: int) -> None:
        if self.on_violation == "error":
            raise self._violation(event, sync)
        self._drop(event, event.re_new)

    def _drop(self, event: DataEvent, re: int, reason: str | None = None, is_numbered: bool = False) -> None:
        if not is_numbered:
            self._mark_dropped(event.id, re)
        self._reject(event, reason or TOO_LATE)

    def _mark_dropped(self, id: Hashable, last_time: int) -> None:
        self._write(self._dropped, id, last_time)
        self._expire_at(last_time, id)

    def _clear_dropped(self, id: Hashable) -> None:
        """Record that an event is again in the state that its sender knows."""
        if id in self._dropped:
            self._undo.append(partial(self._dropped.__setitem__, id, self._dropped.pop(id)))

    def _reject(self, event: DataEvent, reason: str) -> None:
        self.reject([Rejected(event, self.cti, reason, CtiOrigin(*self.origin))], {reason: 1})

    def reject(self, newest: Sequence[Rejected], counts: Mapping[str, int]) -> None:
        """Count late events by reason, and keep the newest ones as a sample; `rollback` undoes this."""
        self._undo.append(partial(self._restore, self.cti, self.high_water, self.origin))
        self._late.add(self.name, newest, counts)

    def _remember(self, id: Hashable, entry: EventState) -> None:
        self._write(self._known, id, entry)
        self._expire_at(entry.expiry, id)

    def _malformed(self, event: DataEvent, rule: str, *times: int) -> EventError:
        return EventError(event, rule, times=times, where=self.name)


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
