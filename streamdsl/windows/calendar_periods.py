"""Calendar windows: days, weeks, months, quarters or years of a time zone."""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from streamdsl.errors import QueryError, UnitError
from streamdsl.temporal.time import INFINITY, MIN_TIME, PER_SECOND, Ticks, Unit, is_calendar
from streamdsl.temporal.zones import CYCLE_DAYS, DAY, local_dates, zone_of
from streamdsl.windows.grid import Grid

Period: TypeAlias = Literal["day", "week", "month", "quarter", "year"]

_DAYS: Final = {"day": 1, "week": 7}
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
_MONDAY: Final = -3
"""The Monday of the week of 1970-01-01, as days since then."""
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_CYCLE_MONTHS: Final = 4800
_MOST: Final = 2**13
"""The most window starts that are cached."""
_MARGIN: Final = 2**40
"""Seconds, more than any intermediate value may differ from the time that it is computed from."""
_BEFORE: Final = 16
_OFTEN: Final = 16
"""Every so many cache misses of single times, the cache is extended to the missed time."""
_AFTER: Final = 256
"""Windows that are cached beyond those needed, as later rows will need them; `_BEFORE` is the same for earlier ones."""


@dataclass(frozen=True, slots=True)
class CalendarPeriods(Grid):
    """The windows `[start of a period, start of the next)` in a time zone, of `every` periods each, counted from 1970 on.

    A period starts at the first instant at which local clocks show one of its dates, or a later date. So windows partition time
    even where clocks are put back, or skip a date. `unit` is the unit of the stream.

        Europe/Berlin   March 28    29         30
        day                 [--24h---)[--23h--)[--24h---)

    >>> march = CalendarPeriods("month", tz="Europe/Berlin", unit="s").window(12 * 56 + 2)
    >>> (march.re - march.le) / 3600 == 31 * 24 - 1
    True
    """

    period: Period
    every: int = 1
    tz: str = "UTC"
    unit: Unit = "us"

    def __post_init__(self) -> None:
        if self.period not in get_args(Period):
            raise QueryError(
                f"there is no period {self.period!r} of the calendar; there are: {', '.join(get_args(Period))}",
                hint="other lengths are those of tumbling_window, which knows no time zone",
            )
        if type(self.every) is not int or not 0 < self.every <= 10**6:
            raise QueryError(f"every={self.every!r} is not a number of periods, from 1 to a million", hint='"month", every=2')
        if not is_calendar(self.unit):
            raise UnitError(
                f"the stream counts plain ticks, which have no {self.period}s",
                hint='give the source a calendar unit, for example unit="us"; windows of n ticks are tumbling_window(n)',
            )
        if not isinstance(self.tz, str):
            raise QueryError(f"tz={self.tz!r} is not the name of a time zone", hint='for example tz="Europe/Berlin"')
        if self.tz != "UTC":
            zone_of(self.tz)

    @property
    def time_unit(self) -> Unit | None:
        return self.unit

    are_apart = True

    @property
    def longest(self) -> int:
        return (self._days + 1 if self._in_days else 31 * self._months + 1) * self._per_day

    @property
    def least_hop(self) -> int:
        return (self._days * self._per_day) // 2 if self._in_days else 27 * self._months * self._per_day

    per_point = 1

    def fewest(self) -> CalendarPeriods:
        return self

    @property
    def _in_days(self) -> bool:
        return self.period in _DAYS

    @property
    def _days(self) -> int:
        return self.every * _DAYS[self.period]

    @property
    def _months(self) -> int:
        return self.every * _MONTHS[self.period]

    @property
    def _per_day(self) -> int:
        return DAY * PER_SECOND[self.unit]

    def start(self, k: int) -> int:
        return _starts_of(self).start(k)

    def end(self, k: int) -> int:
        return _starts_of(self).start(k + 1)

    def first_ending_after(self, time: int) -> int:
        return _starts_of(self).number(time)

    def last_starting_by(self, time: int) -> int:
        return _starts_of(self).number(time)

    def starts_of(self, numbers: Ticks) -> Ticks:
        return _starts_of(self).starts(numbers)

    def ends_of(self, numbers: Ticks) -> Ticks:
        return _starts_of(self).starts(numbers + 1)

    def firsts_ending_after(self, times: Ticks) -> Ticks:
        return _starts_of(self).numbers(times)

    def lasts_starting_before(self, times: Ticks) -> Ticks:
        return _starts_of(self).numbers(times - 1)

    def describe(self, unit: Unit | None = None) -> str:
        """Return `calendar(period, zone)`, with the number of periods per window if it is more than one."""
        every = "" if self.every == 1 else f", every={self.every}"
        return f"calendar({self.period}{every}, {self.tz})"


class _KnownStarts(NamedTuple):
    """The starts of consecutive windows: the number of the first, and all times as an array and as a list.

    With `begun` a time is found in O(1), without it by bisection in O(log n).
    """

    first: int
    times: Ticks
    listed: Sequence[int]
    width: int = 1
    """The width of the buckets of `begun`: at most one window starts in each."""
    begun: Ticks | None = None
    """For each bucket the number of windows after the first that start by its beginning; None if buckets would be too many."""

    @classmethod
    def of(cls, first: int, times: Ticks) -> _KnownStarts:
        """Return the starts `times` of the windows from number `first` on, with buckets if these are not too many."""
        width, span = int(np.diff(times).min(initial=INFINITY)), int(times[-1]) - int(times[0])
        if not 0 < span // width < 4 * len(times):
            return cls(first, times, times.tolist())
        begun = np.searchsorted(times, times[0] + np.arange(span // width + 1) * width, side="right") - 1
        return cls(first, times, times.tolist(), width, begun)

    def numbers(self, inside: Ticks) -> Ticks:
        """Return the number of the window that contains each time; all times must be between the first and the last start."""
        if self.begun is None:
            return np.searchsorted(self.times, inside, side="right") + (self.first - 1)
        found = self.begun[(inside - self.times[0]) // self.width]
        numbers: Ticks = found + (inside >= self.times[found + 1]) + self.first
        return numbers


class _Starts:
    """The starts of calendar windows, with a cache of consecutive starts around the times that are in use.

    The cache holds at most `_MOST` starts. Times outside of it are converted through local dates, which costs far more.
    """

    def __init__(self, windows: CalendarPeriods) -> None:
        self._in_days, self._first_day = windows.period in _DAYS, 0 if windows.period == "day" else _MONDAY
        self._step = windows.every * (_DAYS | _MONTHS)[windows.period]
        self._second = PER_SECOND[windows.unit]
        self._dates = local_dates(windows.tz)
        skipped = np.array(self._dates.skipped if self._in_days and self._step == 1 else [], dtype=np.int64)
        self._skipped, self._without = skipped, skipped - np.arange(len(skipped))
        """Dates that the zone skips, which are windows of no length and get no number; and the numbers that follow each gap."""
        self._lowest, self._highest = self._computed_number(MIN_TIME) + 1, self._computed_number(INFINITY)
        self._known = _KnownStarts(0, np.empty(0, dtype=np.int64), [])
        self._missed = 0

    # Single values, exact for any integer.

    def start(self, k: int) -> int:
        """Return the start of window number `k`."""
        known = self._known
        place = k - known.first
        return known.listed[place] if 0 <= place < len(known.listed) else self._computed_start(k)

    def number(self, time: int) -> int:
        """Return the number of the window that contains a time."""
        known = self._known
        listed = known.listed
        if listed and listed[0] <= time < listed[-1]:
            return known.first + bisect_right(listed, time) - 1
        number = self._computed_number(time)
        self._missed += 1
        if self._missed % _OFTEN == 1 and not self._is_near_an_end(time, time):
            self._extend(number, number)
        return number

    def _computed_start(self, k: int) -> int:
        place = k + int(np.searchsorted(self._without, k, side="right")) if len(self._without) else k
        day = self._first_day + place * self._step if self._in_days else _first_of_month(place * self._step)
        return self._dates.begins(day) * self._second

    def _computed_number(self, time: int) -> int:
        day = self._dates.day(time // self._second)
        place = (day - self._first_day if self._in_days else _month_of(day)) // self._step
        return place - int(np.searchsorted(self._skipped, place))

    # Arrays.

    def starts(self, numbers: Ticks) -> Ticks:
        """Return the start of each window; all must be inside of the range of times."""
        if not len(numbers):
            return numbers
        known = self._reaching(int(numbers.min()), int(numbers.max()))
        if known is not None:
            return known.times[numbers - known.first]
        return self._computed_starts(numbers)

    def numbers(self, times: Ticks) -> Ticks:
        """Return the number of the window that contains each time."""
        if not len(times):
            return times
        least, most = int(times.min()), int(times.max())
        known = self._known
        if not known.listed or not known.listed[0] <= least <= most < known.listed[-1]:
            reaching = self._reaching(self._computed_number(least), self._computed_number(most))
            if reaching is None:
                return self._computed_numbers(times)
            known = reaching
        return known.numbers(times)

    def _reaching(self, low: int, high: int) -> _KnownStarts | None:
        """Return cached starts that cover windows `low` to `high` and the next one; None if these are too many to cache."""
        known = self._known
        if not (len(known.listed) and known.first <= low and high + 1 < known.first + len(known.listed)):
            self._extend(low, high)
            known = self._known
        is_there = known.first <= low and high + 1 < known.first + len(known.listed)
        return known if is_there else None

    def _extend(self, low: int, high: int) -> None:
        """Cache the starts of windows `low` to `high` and of some around them, unless these are too many."""
        first, last = max(self._lowest, low - _BEFORE), min(self._highest, high + _AFTER)
        known = self._known
        if len(known.listed):
            joined = min(first, known.first), max(last, known.first + len(known.listed) - 1)
            first, last = joined if joined[1] - joined[0] < _MOST else (first, last)
        if first <= low and high < last and last - first < _MOST:
            times = self._computed_starts(np.arange(first, last + 1))
            self._known = _KnownStarts.of(first, times)

    def _computed_starts(self, numbers: Ticks) -> Ticks:
        if self._is_near_an_end(*map(self._computed_start, (int(numbers.min()), int(numbers.max())))):
            return np.array([self._computed_start(k) for k in numbers.tolist()], dtype=np.int64)
        places = numbers + np.searchsorted(self._without, numbers, side="right") if len(self._without) else numbers
        days = self._first_day + places * self._step if self._in_days else _first_of_months(places * self._step)
        return self._dates.begin(days) * self._second

    def _computed_numbers(self, times: Ticks) -> Ticks:
        if self._is_near_an_end(int(times.min()), int(times.max())):
            return np.array([self._computed_number(time) for time in times.tolist()], dtype=np.int64)
        seconds = times // self._second
        days = self._dates.days(seconds)
        places = (days - self._first_day if self._in_days else _months_of(days)) // self._step
        return places - np.searchsorted(self._skipped, places) if len(self._skipped) else places

    def _is_near_an_end(self, least: int, most: int) -> bool:
        """Say whether intermediate values may overflow int64, so that only Python integers are exact."""
        return least // self._second < MIN_TIME + _MARGIN or most // self._second > INFINITY - _MARGIN


@functools.lru_cache(maxsize=256)
def _starts_of(windows: CalendarPeriods) -> _Starts:
    return _Starts(windows)


def _first_of_month(month: int) -> int:
    """Return the first day of a month, both counted from January 1970 on.

    >>> _first_of_month(1), _first_of_month(-4800)
    (31, -146097)
    """
    cycles, rest = divmod(month, _CYCLE_MONTHS)
    return date(1970 + rest // 12, rest % 12 + 1, 1).toordinal() - _EPOCH_DAY + cycles * CYCLE_DAYS


def _month_of(day: int) -> int:
    """Return the month of a day.

    >>> _month_of(31), _month_of(-1)
    (1, -1)
    """
    cycles, rest = divmod(day, CYCLE_DAYS)
    shown = date.fromordinal(_EPOCH_DAY + rest)
    return (shown.year - 1970) * 12 + shown.month - 1 + cycles * _CYCLE_MONTHS


def _first_of_months(months: Ticks) -> Ticks:
    """Return `_first_of_month` of each month."""
    days: Ticks = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return days


def _months_of(days: Ticks) -> Ticks:
    """Return `_month_of` of each day."""
    months: Ticks = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return months
