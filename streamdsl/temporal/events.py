"""Physical events (insertions, retractions, CTIs), and constructors of point, interval and edge events (paper 001, II.A-C)."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from itertools import repeat
from typing import Any, Final, Generic, Never, TypeAlias, TypeVar, cast

from streamdsl.errors import EventError
from streamdsl.temporal.time import CHRONON, INFINITY, TimeLike, Unit, add_time, is_calendar, is_integer, time_repr

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
E = TypeVar("E")


class Missing(Enum):
    """The type of `MISSING`, the payload of a retraction without one."""

    MISSING = "..."

    def __repr__(self) -> str:
        return "..."


MISSING: Final = Missing.MISSING


class PhysicalEvent(Generic[T_co]):
    """The base of all events, through which type checkers infer one payload type for a list of events.

    An event that comes out of a stream over dates knows its unit, and prints dates; it is compared without it.
    """

    __slots__ = ("_unit",)

    def __repr__(self) -> str:
        unit = unit_of(self)
        shown = [f"{name}={_show(name, getattr(self, name), unit)}" for name in self.__slots__]
        return f"{type(self).__name__}({', '.join(shown)})"


def unit_of(dated: object) -> Unit | None:
    """Return the unit of the times of an event, or of a row, None if it does not know it."""
    return getattr(dated, "_unit", None)


_OF_WINDOW: Final = re.compile(r"(?:window_aggregate|window_apply|distinct)_\d+")
"""The operators in whose ids the last but one part is a start."""


def id_repr(id: Hashable, unit: Unit | None) -> str:
    """Return an id as Python text in which the start of a window is written as times are; the id itself has ticks.

    >>> id_repr(("window_aggregate_1", "A", 2, 0), "s"), id_repr(("window_aggregate_1", "A", 2, 0), None)
    ("('window_aggregate_1', 'A', '1970-01-01T00:00:02Z', 0)", "('window_aggregate_1', 'A', 2, 0)")
    """
    text = repr(id)
    if not is_calendar(unit) or not _OF_WINDOW.search(text):
        return text
    if type(id) is tuple and len(id) > 1:
        parts = [id_repr(each, unit) for each in id]
        if len(id) > 2 and type(id[0]) is str and _OF_WINDOW.fullmatch(id[0]) and type(id[-2]) is int:
            parts[-2] = time_repr(id[-2], unit)
        return f"({', '.join(parts)})"
    if is_dataclass(id):
        parts = [f"{each.name}={id_repr(getattr(id, each.name), unit)}" for each in fields(id)]
        return f"{type(id).__name__}({', '.join(parts)})"
    return text


def _show(name: str, value: Any, unit: Unit | None) -> str:
    if name == "id":
        return id_repr(value, unit)
    return time_repr(value, unit) if name in _TIMES and type(value) is int else repr(value)


_TIMES: Final = frozenset({"le", "re", "re_new", "time"})


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Insert(PhysicalEvent[T_co]):
    """A new event with lifetime `[le, re)`; times are int ticks, or dates that the source turns into ticks.

    >>> Insert("a", 1, 5, {"v": 2})
    Insert(id='a', le=1, re=5, payload={'v': 2})
    """

    id: Hashable
    le: int
    re: int
    payload: T_co

    def __init__(self, id: Hashable, le: TimeLike, re: TimeLike, payload: T_co) -> None:
        put_id, put_le, put_re, put_payload = _INSERT
        put_id(self, id)
        put_le(self, le)
        put_re(self, re)
        put_payload(self, payload)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Retract(PhysicalEvent[Never]):
    """A correction of an earlier event's end: its RE becomes `re_new`; `re_new == le` deletes it (a full retraction).

    >>> Retract("a", 1, 5, 3)
    Retract(id='a', le=1, re=5, re_new=3, payload=...)
    """

    id: Hashable
    le: int
    re: int
    re_new: int
    payload: Any

    def __init__(self, id: Hashable, le: TimeLike, re: TimeLike, re_new: TimeLike, payload: Any = MISSING) -> None:
        put_id, put_le, put_re, put_re_new, put_payload = _RETRACT
        put_id(self, id)
        put_le(self, le)
        put_re(self, re)
        put_re_new(self, re_new)
        put_payload(self, payload)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Cti(PhysicalEvent[Never]):
    """A promise: no later event of the stream has a sync time before `time`.

    >>> Cti(10)
    Cti(time=10)
    """

    time: int

    def __init__(self, time: TimeLike) -> None:
        (put_time,) = _CTI
        put_time(self, time)


Event: TypeAlias = Insert[T] | Retract | Cti


def _setters(cls: type) -> tuple[Callable[[object, object], None], ...]:
    """Return the setters of the slots of a frozen class, for its constructor."""
    return tuple(cls.__dict__[field.name].__set__ for field in fields(cls))


_UNIT: Final[Callable[[object, object], None]] = PhysicalEvent.__dict__["_unit"].__set__
_INSERT: Final = _setters(Insert)
_RETRACT: Final = _setters(Retract)
_CTI: Final = _setters(Cti)


def dated(events: list[E], unit: Unit | None) -> list[E]:
    """Return the same events, which print their times as dates if that is what the unit makes of them.

    >>> dated([Insert("a", 0, INFINITY, "x")], "s")
    [Insert(id='a', le='1970-01-01T00:00:00Z', re=INFINITY, payload='x')]
    """
    if unit is not None and unit != "tick":
        for event in events:
            _UNIT(event, unit)
    return events


def inserts(ids: Sequence[Hashable], le: Sequence[int], re: Sequence[int], payloads: Sequence[T]) -> list[Insert[T]]:
    """Return a list of insertions from columns, at less than half the cost of calling the class per row.

    >>> inserts(["a"], [1], [5], ["x"])
    [Insert(id='a', le=1, re=5, payload='x')]
    """
    return _made(Insert, _INSERT, (ids, le, re, payloads))


def retracts(
    ids: Sequence[Hashable], le: Sequence[int], re: Sequence[int], re_new: Sequence[int], payloads: Sequence[Any]
) -> list[Retract]:
    """Return a list of retractions from columns, as `inserts` does.

    >>> retracts(["a"], [1], [5], [3], ["x"])
    [Retract(id='a', le=1, re=5, re_new=3, payload='x')]
    """
    return _made(Retract, _RETRACT, (ids, le, re, re_new, payloads))


def _made(cls: type[E], setters: Sequence[Callable[[object, object], None]], columns: Sequence[Sequence[Any]]) -> list[E]:
    found: list[E] = list(map(object.__new__, repeat(cls, len(columns[0]))))
    for put, values in zip(setters, columns, strict=True):
        deque(map(put, found, values), maxlen=0)
    return found


def sync_time(event: Insert[Any] | Retract | Cti) -> int:
    """Return the earliest time that an event changes: LE of an insertion, `min(RE, RE_new)` of a retraction.

    >>> sync_time(Retract("E0", 1, 10, 5))
    5
    """
    if isinstance(event, Insert):
        return event.le
    if isinstance(event, Retract):
        return min(event.re, event.re_new)
    if not isinstance(event, Cti):
        raise EventError(event, "it is no event, and has no sync time", hint="sd.Insert, sd.Retract, or sd.Cti")
    return event.time


def interval(id: Hashable, le: TimeLike, re: TimeLike, payload: T) -> Insert[T]:
    """Return the insertion of an interval event with lifetime `[le, re)`.

    >>> interval("a", 1, 4, "x").re
    4
    """
    return Insert(id, le, re, payload)


def point(id: Hashable, t: TimeLike, payload: T) -> Insert[T]:
    """Return the insertion of a point event with lifetime `[t, t + 1)`, in ticks of its source.

    >>> point("a", 3, "x").re
    4
    """
    return Insert(id, t, add_time(int(t), CHRONON) if is_integer(t) else cast(Any, NextTick(t)), payload)


@dataclass(frozen=True, slots=True)
class NextTick:
    """The tick after a date, as RE of a point event; only a source, which has a unit, can compute it."""

    time: Any


def edge_start(id: Hashable, t: TimeLike, payload: T) -> Insert[T]:
    """Return the start of an edge event: lifetime `[t, INFINITY)` until its end is known.

    >>> edge_start("a", 3, "x").re == INFINITY
    True
    """
    return Insert(id, t, INFINITY, payload)


def edge_end(id: Hashable, t_start: TimeLike, t_end: TimeLike, payload: Any = MISSING) -> Retract:
    """Return the end of an edge event: the retraction of its RE from INFINITY to `t_end`.

    >>> edge_end("a", 3, 8).re_new
    8
    """
    return Retract(id, t_start, INFINITY, t_end, payload)


def correct(event: Insert[T], payload: T, new_id: Hashable) -> tuple[Retract, Insert[T]]:
    """Return the full retraction and the insertion that together replace an event's payload.

    >>> old, new = correct(point("a", 3, "x"), "y", "a2")
    >>> old.re_new, new.payload
    (3, 'y')
    """
    if not isinstance(event, Insert):
        raise EventError(event, "an insertion is corrected, nothing else", hint="correct(event, payload, new_id)")
    return Retract(event.id, event.le, event.re, event.le, event.payload), Insert(new_id, event.le, event.re, payload)
