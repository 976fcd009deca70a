"""Normalization of events that users write: dates become ticks, numpy and pandas scalars plain values (paper 001, II.A)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from streamdsl.errors import EventError, TimeOverflow, UnitError, shortened
from streamdsl.temporal.events import MISSING, Cti, Event, Insert, NextTick, Retract
from streamdsl.temporal.payload import is_null, plain
from streamdsl.temporal.time import CHRONON, INFINITY, MIN_TIME, Ticks, Unit, add_time, is_integer, to_ticks
from streamdsl.temporal.value_arrays import distinct, typed_array

_NO_START: Final = "every event has a start, ticks or a date"
_NO_END: Final = "the end of an event that goes on is sd.INFINITY; in a frame or a file, a null"
_TIMES: Final = {
    "le": ("LE", _NO_START),
    "re": ("RE", _NO_END),
    "re_new": ("RE_new", _NO_END),
    "time": ("time", "a CTI is a time in ticks or a date; that which ends a stream is sd.Cti(sd.INFINITY)"),
}
"""For each time of an event its name in messages, and the hint if it is null."""


@dataclass(slots=True)
class EventReader:
    """Converts events, times to int ticks, ids and payloads to plain values, and infers the unit if none is given.

    >>> reader = EventReader()
    >>> reader.tick("1970-01-01T00:00:01"), reader.tick(7), reader.found
    (1000000, 7, 'us')
    """

    unit: Unit | None = None
    _dates: bool = False
    _ints: bool = False

    @property
    def found(self) -> Unit | None:
        """The unit: the given one, else `"us"` once a date has been read, `"tick"` after integers only, else None."""
        return self.unit or ("us" if self._dates else "tick" if self._ints else None)

    @property
    def has_dates(self) -> bool:
        """Whether a date has been read."""
        return self._dates

    def tick(self, value: Any) -> int:
        """Return a time in ticks; `NextTick` becomes the tick after its date."""
        if type(value) is int:
            if value != INFINITY and value != MIN_TIME:
                self._ints = True
            return to_ticks(value)
        if isinstance(value, NextTick):
            return add_time(self.tick(value.time), CHRONON)
        if not is_integer(value):
            self._dates = True
        return to_ticks(value, self.unit)

    def ticks(self, times: Sequence[Any]) -> Ticks | None:
        """Return times as an array of ticks if all are integers in range; else None: `tick` must read them one by one.

        >>> EventReader().ticks([1, 2]).tolist(), EventReader().ticks([1, "1970-01-01"])
        ([1, 2], None)
        """
        ticks = typed_array(times, int) if distinct(map(type, times)) == {int} else None
        return None if ticks is None else self.integers(ticks)

    def integers(self, ticks: Ticks) -> Ticks:
        """Return integer times unchanged, after recording that integers have been read."""
        self._ints = self._ints or bool(((ticks != INFINITY) & (ticks != MIN_TIME)).any())
        return ticks

    def saw_integer(self) -> None:
        """Record that an integer other than MIN_TIME and INFINITY has been read."""
        self._ints = True

    def copy(self) -> EventReader:
        """Return an independent copy."""
        return EventReader(self.unit, self._dates, self._ints)

    def insert(self, event: Insert[Any]) -> Insert[Any]:
        """Return an insertion with ticks and plain values; errors name it."""
        id, payload = plain(event.id), plain(event.payload)
        try:
            le, re = self.tick(event.le), self.tick(event.re)
        except (UnitError, TimeOverflow) as error:
            raise _refused(error, event) from None
        same = le is event.le and re is event.re and id is event.id and payload is event.payload
        return event if same else Insert(id, le, re, payload)

    def lifetime(self, id: Hashable, le: Any, re: Any) -> tuple[int, int]:
        """Return LE and RE of an insertion in ticks; errors name its id."""
        try:
            return self.tick(le), self.tick(re)
        except (UnitError, TimeOverflow) as error:
            raise _refused(error, Insert(id, le, re, MISSING)) from None

    def event(self, event: Event[Any]) -> Event[Any]:
        """Return an event with ticks and plain values; errors name it."""
        if isinstance(event, Insert):
            return self.insert(event)
        try:
            if isinstance(event, Retract):
                le, re, re_new = map(self.tick, (event.le, event.re, event.re_new))
                return Retract(plain(event.id), le, re, re_new, plain(event.payload))
            if isinstance(event, Cti):
                return Cti(self.tick(event.time))
        except (UnitError, TimeOverflow) as error:
            raise _refused(error, event) from None
        raise EventError(
            event, "it is neither an Insert, a Retract nor a Cti", hint="a payload at time 3 is the event point(id, 3, payload)"
        )


def _refused(error: UnitError | TimeOverflow, event: Event[Any]) -> EventError | UnitError | TimeOverflow:
    """Return the error for an event with an invalid time: an `EventError` if it is null, else one of the type of `error`."""
    for name, (called, hint) in _TIMES.items():
        value = getattr(event, name, MISSING)
        value = value.time if isinstance(value, NextTick) else value
        if is_null(value):
            return EventError(event, f"its {called} is null ({shortened(value)})", hint=hint)
    return type(error)(f"event {getattr(event, 'id', event)!r}: {error}")
