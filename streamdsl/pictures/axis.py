"""The axis of time: which place shows which time, and the times that are written on it, as ticks or as dates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamdsl.temporal.time import INFINITY, MIN_TIME, PER_SECOND, Ticks, Unit, is_calendar

_SECONDS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
"""The steps of a clock."""
_DAY: Final = 86400
_DAYS: Final = (1, 2, 7, 14)
_MONTHS: Final = (1, 3, 6)
_YEAR_0: Final = 1970 * 12
"""The months from year 0, from which periods of years are counted."""
_MONDAY: Final = 4
"""1970-01-05 was the first Monday: weeks are counted from it."""


class Mark(NamedTuple):
    """A time that is written on the axis, and what stands below it: the date, where a new one begins."""

    time: int
    text: str
    date: str = ""


@dataclass(frozen=True)
class TimeAxis:
    """A line of time from `first` to `last`, drawn from `low` to `high`; what is earlier or later is at its ends.

    INFINITY is `beyond` further than `high`, so that what has no end reaches over the last time.

    >>> axis = TimeAxis(0, 10, None, 100.0, 200.0, 30.0)
    >>> axis.x(5), axis.x(INFINITY)
    (150.0, 230.0)
    >>> [mark.text for mark in axis.marks(6)]
    ['0', '2', '4', '6', '8', '10']
    """

    first: int
    last: int
    unit: Unit | None
    low: float
    high: float
    beyond: float = 0.0

    @classmethod
    def over(cls, times: Iterable[Ticks], unit: Unit | None, low: float, high: float, beyond: float) -> TimeAxis:
        """Return the axis of all finite times among these; there is room for INFINITY only where it is among them.

        >>> TimeAxis.over([np.array([3, INFINITY]), np.array([8])], None, 0, 100, 20)
        TimeAxis(first=3, last=8, unit=None, low=0, high=80, beyond=20)
        """
        found = [column for column in times if len(column)]
        ends = [(int(part.min()), int(part.max())) for column in found if len(part := _finite(column))]
        first, last = min((low for low, _ in ends), default=0), max((high for _, high in ends), default=0)
        room = beyond if any(int(column.max()) == INFINITY for column in found) else 0
        return cls(first, max(last, first + 1), unit, low, high - room, room)

    @property
    def span(self) -> int:
        """The number of ticks from the first time to the last."""
        return self.last - self.first

    def x(self, time: int) -> float:
        """Return the place of a time."""
        return float(self.xs(np.array([time], dtype=np.int64))[0])

    def xs(self, times: Ticks) -> NDArray[np.float64]:
        """Return the places of times. Differences are exact, even those that int64 has no room for."""
        inside = np.clip(times, self.first, self.last)
        ahead = inside.view(np.uint64) - np.array(self.first, dtype=np.int64).view(np.uint64)
        places = self.low + ahead / self.span * (self.high - self.low)
        return np.where(times == INFINITY, self.high + self.beyond, places)

    def edges(self, parts: int) -> list[int]:
        """Return the times at which equal parts of the axis begin, and the last one ends.

        >>> TimeAxis(0, 10, None, 0.0, 1.0).edges(5)
        [0, 2, 4, 6, 8, 10]
        """
        return [self.first + self.span * n // parts for n in range(parts + 1)]

    def marks(self, most: int) -> list[Mark]:
        """Return at most about `most` times to write on the axis: round numbers, or dates and hours."""
        if is_calendar(self.unit) and self.first > MIN_TIME:
            return _dates(self, max(most, 1))
        step = _nice(self.span / max(most, 1))
        return [Mark(time, str(time)) for time in range(-(-self.first // step) * step, self.last + 1, step)]


def _finite(times: Ticks) -> Ticks:
    finite: Ticks = times[(times != INFINITY) & (times != MIN_TIME)]
    return finite


def _nice(least: float) -> int:
    """Return the smallest of 1, 2, 5, 10, 20, 50, ... that is not less."""
    power = 1
    while 5 * power < least:
        power *= 10
    return next(step for step in (power, 2 * power, 5 * power) if step >= least)


def _dates(axis: TimeAxis, most: int) -> list[Mark]:
    """Return the marks of a calendar: of fractions of seconds, of a clock, of days, months or years."""
    per_second = PER_SECOND[axis.unit or "us"]
    least = axis.span / most
    steps = sorted({*(s * per_second for s in _SECONDS), *(s * _DAY * per_second for s in _DAYS)})
    if least <= per_second:
        step = min(_nice(least), per_second)
    else:
        step = next((step for step in steps if step >= least), 0)
    if not step:
        return list(_months(axis, least / (30.4 * _DAY * per_second)))
    phase = _MONDAY * _DAY * per_second if step % (7 * _DAY * per_second) == 0 else 0
    times = range(axis.first + (phase - axis.first) % step, axis.last + 1, step)
    return list(_clock(times, step, per_second, axis.unit or "us"))


def _clock(times: Iterable[int], step: int, per_second: int, unit: Unit) -> Iterator[Mark]:
    """Yield marks of times of a day, each with its date where that begins; of whole days, with the year."""
    shown = ""
    for time in times:
        day, _, clock = str(np.array(time).astype(f"datetime64[{unit}]")).partition("T")
        text, context = _clock_text(clock, step, per_second), day
        if step >= _DAY * per_second:
            context, _, text = day.partition("-") if not day.startswith("-") else ("", "", day)
        yield Mark(time, text, "" if context == shown else context)
        shown = context


def _clock_text(clock: str, step: int, per_second: int) -> str:
    if step >= 60 * per_second:
        return clock[:5]
    if step >= per_second:
        return clock[:8]
    digits = len(str(per_second)) - 1 - (len(str(step)) - len(str(step).rstrip("0")))
    return clock[: 9 + digits]


def _months(axis: TimeAxis, least: float) -> Iterator[Mark]:
    """Yield marks of months, or of years."""
    step = next((months for months in _MONTHS if months >= least), 0) or 12 * _nice(least / 12)
    ends = np.array([axis.first, axis.last]).astype(f"datetime64[{axis.unit}]").astype("datetime64[M]")
    first, last = ends.astype(np.int64).tolist()
    for month in range(first + -(first + _YEAR_0) % step, last + 1, step):
        date = np.array(month).astype("datetime64[M]")
        time = int(date.astype(f"datetime64[{axis.unit}]").astype(np.int64))
        if axis.first <= time <= axis.last:
            yield Mark(time, str(date)[:-3] if step % 12 == 0 else str(date))
