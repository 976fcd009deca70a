"""Time zones as pieces of constant offset from UTC, in whole seconds, for all int64 times, scalar and columnar.

Years outside the range of `datetime` follow the proleptic Gregorian calendar. Before the first change a zone has its initial
offset; after the last one the rule at the end of its file applies, if there is one.
"""

from __future__ import annotations

import calendar
import functools
import struct
from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.errors import QueryError, closest
from streamdsl.temporal.time import MIN_TIME

Seconds: TypeAlias = NDArray[np.int64]
Days: TypeAlias = NDArray[np.int64]
Change: TypeAlias = tuple[int, int]
"""A time at which the offset changes, in seconds since the epoch, and the new offset."""

DAY: Final = 86400
CYCLE_DAYS: Final = 146097
"""The days in 400 years, the period of the Gregorian calendar, including days of the week."""
_CYCLE: Final = CYCLE_DAYS * DAY
_NEVER: Final = -(10**30)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = int((datetime(1, 1, 3, tzinfo=UTC) - _EPOCH).total_seconds())
_STEP: Final = 14 * DAY
"""A period in which a rule changes the offset at most once."""
_QUARTER: Final = 900


@functools.cache
def zone_of(name: str) -> tzinfo:
    """Return a time zone by its name in the IANA database. Raises `QueryError` for an unknown name."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        close = closest(name, available_timezones())
        hint = f"did you mean {close!r}?" if close else 'zones are named as in the IANA database, for example "Europe/Vienna"'
        raise QueryError(f"there is no time zone {name!r}", hint=hint) from None


class LocalDates:
    """The local dates of a time zone, as days since 1970-01-01, each from the first instant at which its clocks show it.

    Dates never decrease: when clocks go back across midnight, the later date stays. O(log changes) per time or date.

    >>> berlin = local_dates("Europe/Berlin")
    >>> berlin.begins(20542) - berlin.begins(20541) == 23 * 3600  # 2026-03-29
    True
    """

    def __init__(self, name: str) -> None:
        zone = UTC if name == "UTC" else zone_of(name)
        changes, self._end = _changes(name, zone)
        first = _offset(zone, max(changes[0][0] - 1, _FIRST) if changes else 0)
        self._starts = [_NEVER, *(time for time, _ in changes)]
        self._offsets = [first, *(offset for _, offset in changes)]
        self._reached = [_NEVER]
        """The largest local time before each change, in seconds since 1970-01-01 local time."""
        for time, offset in zip(self._starts[1:], self._offsets, strict=False):
            self._reached.append(max(self._reached[-1], time + offset))
        self._columns = [np.array([MIN_TIME, *column[1:]]) for column in (self._starts, self._reached)]
        self._column = np.array(self._offsets, dtype=np.int64)

    def day(self, time: int) -> int:
        """Return the local date at a time in seconds since the epoch."""
        cycles = max(0, (time - self._end) // _CYCLE + 1)
        time -= cycles * _CYCLE
        piece = bisect_right(self._starts, time) - 1
        return max(time + self._offsets[piece], self._reached[piece]) // DAY + cycles * CYCLE_DAYS

    def begins(self, day: int) -> int:
        """Return the first second at which the local date is `day` or later."""
        cycles = max(0, (day * DAY - self._end) // _CYCLE + 1)
        shown = (day - cycles * CYCLE_DAYS) * DAY
        piece = bisect_right(self._reached, shown) - 1
        return max(self._starts[piece], shown - self._offsets[piece]) + cycles * _CYCLE

    def days(self, times: Seconds) -> Days:
        """Return `day` of each time."""
        cycles = np.maximum(0, (times - self._end) // _CYCLE + 1)
        times = times - cycles * _CYCLE
        starts, reached = self._columns
        pieces = np.searchsorted(starts, times, side="right") - 1
        days: Days = np.maximum(times + self._column[pieces], reached[pieces]) // DAY + cycles * CYCLE_DAYS
        return days

    def begin(self, days: Days) -> Seconds:
        """Return `begins` of each date."""
        cycles = np.maximum(0, (days * DAY - self._end) // _CYCLE + 1)
        shown = (days - cycles * CYCLE_DAYS) * DAY
        starts, reached = self._columns
        pieces = np.searchsorted(reached, shown, side="right") - 1
        begin: Seconds = np.maximum(starts[pieces], shown - self._column[pieces]) + cycles * _CYCLE
        return begin

    @functools.cached_property
    def skipped(self) -> list[int]:
        """The dates that clocks skip, in order."""
        ends = [start + offset for start, offset in zip(self._starts, self._offsets, strict=True)]
        leaps = list(zip(self._reached, ends, strict=True))[1:]
        return [day for reached, end in leaps for day in range(-(-reached // DAY), end // DAY)]


@functools.lru_cache(maxsize=64)
def local_dates(name: str) -> LocalDates:
    """Return the local dates of a time zone (cached). Raises `QueryError` for an unknown name."""
    return LocalDates(name)


def _changes(name: str, zone: tzinfo) -> tuple[list[Change], int]:
    """Return the changes of the offset up to an end time; from then on they repeat every 400 years."""
    if zone is UTC:
        return [], 0
    told = [time for time in _transitions(_file(name)) if time >= _FIRST]
    last = told[-1] if told else 0
    year = (_EPOCH + timedelta(seconds=last)).year + 1
    found = [time for time in told if _offset(zone, time) != _offset(zone, max(time - 1, _FIRST))]
    changes = [(time, _offset(zone, time)) for time in (*found, *_between(zone, last, _new_year(year)))]
    return changes + _ruled(zone, year), _new_year(year) + _CYCLE


def _ruled(zone: tzinfo, first: int) -> list[Change]:
    """Return the changes of 400 years by a zone's rule, computed once for each of the 14 kinds of years."""
    kinds: dict[tuple[bool, int], list[Change]] = {}
    found = []
    for year in range(first, first + 400):
        start = _new_year(year)
        kind = calendar.isleap(year), calendar.weekday(year, 1, 1)
        if kind not in kinds:
            kinds[kind] = [(time - start, _offset(zone, time)) for time in _between(zone, start, _new_year(year + 1))]
        found += [(start + time, offset) for time, offset in kinds[kind]]
    return found


def _new_year(year: int) -> int:
    return (date(year, 1, 1).toordinal() - _EPOCH.toordinal()) * DAY


def _between(zone: tzinfo, low: int, high: int) -> Iterator[int]:
    """Yield the times after `low` and up to `high` at which the offset changes."""
    probes = [*range(low, high, _STEP), high]
    offsets = [_offset(zone, time) for time in probes]
    for (before, after), (old, new) in zip(pairwise(probes), pairwise(offsets), strict=True):
        if old != new:
            yield _change(zone, before, after, old)


def _change(zone: tzinfo, low: int, high: int, old: int) -> int:
    """Return the time of the change between `low`, where the offset is `old`, and `high`, where it differs, by bisection."""
    for step in (_QUARTER, 1):  # nearly all changes are at a full quarter of an hour
        while high - low > step:
            middle = (low + high) // (2 * step) * step
            if not low < middle < high:
                break
            if _offset(zone, middle) == old:
                low = middle
            else:
                high = middle
        if _offset(zone, high - 1) == old:
            break
    return high


def _offset(zone: tzinfo, time: int) -> int:
    """Return the offset from UTC in seconds at a time."""
    offset = (_EPOCH + timedelta(seconds=time)).astimezone(zone).utcoffset()
    assert offset is not None
    return offset.days * DAY + offset.seconds


def _file(name: str) -> bytes:
    """Return the content of the file of an existing zone, from where `zoneinfo` finds it."""
    import importlib.resources
    import zoneinfo
    from pathlib import Path

    paths = (Path(folder, *name.split("/")) for folder in zoneinfo.TZPATH)
    found = next((path for path in paths if path.is_file()), None)
    return (
        found.read_bytes() if found else importlib.resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
    )


def _transitions(data: bytes) -> list[int]:
    """Return the transition times of a Time Zone Information Format file (RFC 8536), from its 64-bit block if it has one."""
    at, width = 0, 4
    if data[4:5] >= b"2":
        utc, standard, leaps, times, types, letters = struct.unpack_from(">6L", data, 20)
        at, width = 44 + times * 5 + types * 6 + letters + leaps * 8 + standard + utc, 8
    (count,) = struct.unpack_from(">L", data, at + 32)
    return list(struct.unpack_from(f">{count}{'q' if width == 8 else 'l'}", data, at + 44))
