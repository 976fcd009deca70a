"""Application time: a 64-bit count of ticks, and the calendar forms that people write instead (paper 001, II.A)."""

from __future__ import annotations

import re as _regex
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from streamdsl.errors import TimeOverflow, UnitError

if TYPE_CHECKING:
    import pandas as pd

    TimeLike: TypeAlias = int | date | np.datetime64 | pd.Timestamp | str
    DurationLike: TypeAlias = int | timedelta | np.timedelta64 | pd.Timedelta | str
else:
    TimeLike = Any
    DurationLike = Any

Unit: TypeAlias = Literal["tick", "s", "ms", "us", "ns"]
Ticks: TypeAlias = NDArray[np.int64]

INFINITY: Final = 2**63 - 1
"""The largest time: the right endpoint of an event that has not ended, and the CTI that ends a stream."""
MIN_TIME: Final = -(2**63)
"""The smallest time, a legal left endpoint."""
CHRONON: Final = 1
"""The duration of a point event: one tick (`h` in paper 001)."""

_PER_SECOND: Final[dict[str, int]] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SECONDS: Final[dict[str, Fraction]] = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 10**3),
    "s": Fraction(1),
    "m": Fraction(60),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
    "w": Fraction(604800),
}
_PART = _regex.compile(r"\s*(\d+(?:\.\d+)?)\s*(ns|us|ms|min|s|m|h|d|w)\s*")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def check_unit(unit: str | None) -> Unit | None:
    """Return `unit` if it is one, else raise `UnitError`.

    >>> check_unit("ms")
    'ms'
    """
    if unit is None:
        return None
    for known in get_args(Unit):
        if unit == known:
            return known  # type: ignore[no-any-return]
    raise UnitError(f"there is no time unit {unit!r}; the units are: {', '.join(get_args(Unit))}")


def is_calendar(unit: Unit | None) -> bool:
    """Say whether times of this unit are dates."""
    return unit is not None and unit != "tick"


def common_unit(*units: Unit | None) -> Unit | None:
    """Return the one unit of several streams (None: not known yet), or raise `UnitError`.

    >>> common_unit(None, "s", "s")
    's'
    """
    known = sorted({u for u in units if u is not None})
    if len(known) > 1:
        raise UnitError(
            f"streams of different time units meet: {', '.join(known)}",
            hint="give the sources the same unit=",
        )
    return known[0] if known else None


def to_ticks(value: object, unit: Unit | None = None) -> int:
    """Return a point in time as ticks since the epoch; an `int` is ticks already, a naive date is UTC.

    >>> to_ticks("1970-01-01T00:00:02", "ms")
    2000
    """
    if type(value) is int:
        return _checked(value)
    if isinstance(value, (bool, np.bool_, float, np.floating)):
        raise UnitError(f"a time is an int in ticks or a date, not {value!r}")
    if isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64):
        return _checked(int(value))
    if unit == "tick":
        raise UnitError(
            f"the stream counts plain ticks, so {value!r} is not a time of it",
            hint='give the source a calendar unit, for example unit="us"',
        )
    per_second = _PER_SECOND[unit or "us"]
    if isinstance(value, np.datetime64):
        return _from_datetime64(value, unit or "us")
    if isinstance(value, str):
        value = _parse_date(value)
    if isinstance(value, datetime):
        return _whole(_since_epoch(value) * per_second, value, unit)
    if isinstance(value, date):
        return _whole(_since_epoch(datetime(value.year, value.month, value.day)) * per_second, value, unit)
    raise UnitError(f"{value!r} is not a time; give an int in ticks, a datetime, a numpy or pandas time, or ISO text")


def _since_epoch(value: datetime) -> Fraction:
    """Return the seconds since the epoch, exactly; a naive time is UTC."""
    if value != value:
        raise _no_time()
    nanoseconds = getattr(value, "nanosecond", 0)
    moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    delta = moment - _EPOCH
    seconds = Fraction(delta.days * 86400 + delta.seconds) + Fraction(delta.microseconds, 10**6)
    return seconds + Fraction(nanoseconds, 10**9)


def _no_time() -> UnitError:
    return UnitError("NaT is not a time; a null end means INFINITY in frames only")


def to_duration(value: object, unit: Unit | None = None) -> int:
    """Return a duration in ticks; an `int` is ticks already, text is like `"10s"` or `"1h30m"`.

    >>> to_duration("1h30m", "s")
    5400
    """
    if type(value) is int:
        return _checked(value)
    if isinstance(value, (bool, np.bool_, float, np.floating)):
        raise UnitError(f"a duration is an int in ticks or a timedelta, not {value!r}")
    if isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64):
        return _checked(int(value))
    if unit == "tick":
        raise UnitError(
            f"the stream counts plain ticks, so {value!r} is not a duration of it",
            hint='give the source a calendar unit, for example unit="us"',
        )
    per_second = _PER_SECOND[unit or "us"]
    return _whole(_seconds(value) * per_second, value, unit)


def _seconds(value: object) -> Fraction:
    if isinstance(value, np.timedelta64):
        if np.isnat(value):
            raise UnitError("NaT is not a duration")
        return Fraction(int(value.astype("timedelta64[ns]").astype(np.int64)), 10**9)
    if isinstance(value, timedelta):
        nanoseconds = getattr(value, "nanoseconds", 0)
        exact = Fraction(value.days * 86400 + value.seconds) + Fraction(value.microseconds, 10**6)
        return exact + Fraction(nanoseconds, 10**9)
    if isinstance(value, str):
        return _parse_duration(value)
    raise UnitError(f'{value!r} is not a duration; give an int in ticks, a timedelta, or text such as "10s" or "1h30m"')


def _parse_duration(text: str) -> Fraction:
    sign = -1 if text.strip().startswith("-") else 1
    rest = text.strip().lstrip("+-")
    total, position = Fraction(0), 0
    while position < len(rest):
        part = _PART.match(rest, position)
        if part is None:
            break
        total += Fraction(part.group(1)) * _SECONDS[part.group(2)]
        position = part.end()
    if not rest or position < len(rest):
        raise UnitError(f"{text!r} is not a duration", hint='write it like "10s", "5m", "1h30m", "250ms", "2d"')
    return sign * total


def _parse_date(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise UnitError(f"{text!r} is not a date", hint='write it like "2013-02-08" or "2013-02-08T17:30:00Z"') from None


def _from_datetime64(value: np.datetime64, unit: str) -> int:
    if np.isnat(value):
        raise _no_time()
    ticks = int(value.astype(f"datetime64[{unit}]").astype(np.int64))
    if np.array(ticks).astype(f"datetime64[{unit}]") != value:
        raise UnitError(f"{value!r} is not a whole number of {unit}", hint="give the source a finer unit")
    return _checked(ticks)


def _whole(ticks: Fraction, value: object, unit: Unit | None) -> int:
    if ticks.denominator != 1:
        raise UnitError(f"{value!r} is not a whole number of {unit or 'us'}", hint="give the source a finer unit")
    return _checked(ticks.numerator)


def _checked(ticks: int) -> int:
    if not MIN_TIME <= ticks <= INFINITY:
        raise TimeOverflow(f"{ticks} is outside the range of times, int64 ticks")
    return ticks


def add_time(time: int, duration: int) -> int:
    """Return `time + duration`; INFINITY absorbs, any other overflow raises `TimeOverflow`.

    >>> add_time(INFINITY, -5) == INFINITY
    True
    """
    if time == INFINITY or duration == INFINITY:
        return INFINITY
    total = time + duration
    if not MIN_TIME <= total < INFINITY:
        raise TimeOverflow(f"{time} + {duration} leaves the range of times, int64 ticks")
    return total


def add_times(times: Ticks, durations: Ticks | int) -> Ticks:
    """Return `add_time` of each pair, vectorised.

    >>> add_times(np.array([1, INFINITY]), 4).tolist() == [5, INFINITY]
    True
    """
    other = np.broadcast_to(np.asarray(durations, dtype=np.int64), times.shape)
    absorbed = (times == INFINITY) | (other == INFINITY)
    with np.errstate(over="ignore"):
        total = times + other
    wrapped = ((times ^ total) & (other ^ total)) < 0
    bad = (wrapped | (total == INFINITY)) & ~absorbed
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise TimeOverflow(f"{int(times[row])} + {int(other[row])} leaves the range of times, int64 ticks")
    return np.where(absorbed, INFINITY, total)


def format_time(time: int, unit: Unit | None = None) -> str:
    """Return a time as people read it: ticks, or an ISO date in UTC.

    >>> format_time(3), format_time(INFINITY), format_time(2, "s")
    ('3', 'inf', '1970-01-01T00:00:02Z')
    """
    if time == INFINITY:
        return "inf"
    if not is_calendar(unit):
        return str(time)
    return f"{np.array(time).astype(f'datetime64[{unit}]')}Z"
