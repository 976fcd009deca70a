"""Application time: 64-bit counts of ticks, and their conversion from and to dates and durations (paper 001, II.A)."""

from __future__ import annotations

import re as _regex
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal, SupportsInt, TypeAlias, TypeGuard, get_args

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

PER_SECOND: Final[dict[str, int]] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""The ticks per second of each calendar unit."""
_SECONDS: Final[dict[str, Fraction]] = {
    **{unit: Fraction(1, count) for unit, count in PER_SECOND.items()},
    "m": Fraction(60),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
    "w": Fraction(604800),
}
_NUMPY_SECONDS: Final[dict[str, Fraction]] = {
    **{unit: _SECONDS[unit.lower()] for unit in ("W", "D", "h", "m", "s", "ms", "us", "ns")},
    **{unit: Fraction(1, 10**digits) for unit, digits in (("ps", 12), ("fs", 15), ("as", 18))},
}
"""The seconds per numpy unit; without years and months, whose lengths vary."""
_DURATION = _regex.compile(r"\s*([+-]?)((?:\s*[0-9]+(?:\.[0-9]+)?\s*(?:ns|us|ms|min|s|m|h|d|w))+)\s*")
_PART = _regex.compile(r"([0-9.]+)\s*([a-z]+)")
_FRACTION = _regex.compile(r"(.{7,10}.[0-9]{2}(:?)[0-9]{2}\2[0-9]{2})[.,]([0-9]+)(.*)")
_TIME: Final = "give an int in ticks, a datetime, a numpy or pandas time, or ISO text"
_LENGTH: Final = 'give an int in ticks, a timedelta, or text such as "10s" or "1h30m"'
_RANGE: Final = "a coarser unit reaches further; what has no end ends at sd.INFINITY"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def check_unit(unit: str | None) -> Unit | None:
    """Return `unit` if it is valid, else raise `UnitError`.

    >>> check_unit("ms")
    'ms'
    """
    if unit is None:
        return None
    for known in get_args(Unit):
        if unit == known:
            return known  # type: ignore[no-any-return]
    raise UnitError(f"there is no time unit {unit!r}; the units are: {', '.join(get_args(Unit))}", hint='for example unit="us"')


def is_calendar(unit: Unit | None) -> bool:
    """Say whether times of this unit are dates."""
    return unit is not None and unit != "tick"


def common_unit(*units: Unit | None) -> Unit | None:
    """Return the common unit of several streams (None: not known yet), or raise `UnitError`.

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
    """Return a time in ticks since the epoch; an `int` is already in ticks, a naive date is in UTC.

    Raises `UnitError` for a value that is no time, or no whole number of units, and `TimeOverflow` for one beyond int64.

    >>> to_ticks("1970-01-01T00:00:02", "ms")
    2000
    """
    if type(value) is int:
        return _checked(value)
    if _is_no_end(value):
        raise UnitError(f"{value!r} is not a time", hint="the end of an event that goes on is sd.INFINITY; in a frame, a null")
    return _in_unit(value, unit, _since_epoch, "time", _TIME)


def _in_unit(value: object, unit: Unit | None, seconds: Callable[[object], Fraction], what: str, hint: str) -> int:
    """Return a time, or a duration, in ticks: an integer as it is, any other value by its exact `seconds`."""
    if isinstance(value, (bool, np.bool_, float, np.floating)):
        raise UnitError(f"{value!r} is not a {what}", hint=hint)
    if is_integer(value):
        return _checked(int(value))
    if unit == "tick":
        raise UnitError(
            f"the stream counts plain ticks, so {value!r} is not a {what} of it",
            hint='give the source a calendar unit, for example unit="us"',
        )
    return _whole(seconds(value), value, unit)


def _is_no_end(value: object) -> bool:
    """Say whether a value denotes an unknown end elsewhere: None, NaT, NaN or an infinite float."""
    if isinstance(value, (float, np.floating)):
        return not np.isfinite(value)
    return value is None or (isinstance(value, (datetime, np.datetime64)) and value != value)


def _since_epoch(value: object) -> Fraction:
    """Return the exact seconds since the epoch; a naive time is in UTC."""
    if isinstance(value, datetime) and hasattr(value, "to_datetime64"):
        value = value.to_datetime64()  # a pandas time may lie beyond Python's years
    if isinstance(value, np.datetime64):
        return _since_epoch_of_numpy(value)
    if isinstance(value, str):
        return _since_epoch_of_text(value)
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return _length(moment - _EPOCH)
    if isinstance(value, date):
        return Fraction((value - _EPOCH.date()).days * 86400)
    raise UnitError(f"{value!r} is not a time", hint=_TIME)


def _since_epoch_of_numpy(value: np.datetime64) -> Fraction:
    unit, count = np.datetime_data(value.dtype)
    if unit in _NUMPY_SECONDS:
        return int(value.astype(np.int64)) * count * _NUMPY_SECONDS[unit]
    days = value.astype("datetime64[D]")  # of years or months
    if days.astype(value.dtype) != value:
        raise TimeOverflow(f"{value!r} is outside the range of times, int64 ticks", hint=_RANGE)
    return _since_epoch_of_numpy(days)


def _since_epoch_of_text(text: str) -> Fraction:
    # fromisoformat cuts fractions after six digits, and takes a fraction of minutes for one of seconds.
    found = _FRACTION.fullmatch(text)
    try:
        if found is None and ("." in text or "," in text):
            raise ValueError(text)
        moment = datetime.fromisoformat(found[1] + found[4] if found else text)
    except ValueError:
        raise UnitError(f"{text!r} is not a date", hint='write it like "2013-02-08" or "2013-02-08T17:30:00Z"') from None
    return _since_epoch(moment) + (Fraction(int(found[3]), 10 ** len(found[3])) if found else 0)


def to_duration(value: object, unit: Unit | None = None) -> int:
    """Return a duration in ticks; an `int` is already in ticks, text is like `"10s"` or `"1h30m"`.

    Raises `UnitError` for a value that is no duration, or no whole number of units, and `TimeOverflow` for one beyond int64.

    >>> to_duration("1h30m", "s")
    5400
    """
    if type(value) is int:
        return _checked(value)
    return _in_unit(value, unit, _seconds, "duration", _LENGTH)


def _seconds(value: object) -> Fraction:
    if isinstance(value, timedelta) and hasattr(value, "to_timedelta64"):
        value = value.to_timedelta64()
    if isinstance(value, np.timedelta64):
        return _seconds_of_numpy(value)
    if isinstance(value, timedelta):
        return _length(value)
    if isinstance(value, str):
        return _seconds_of_text(value)
    raise UnitError(f"{value!r} is not a duration", hint=_LENGTH)


def _length(delta: timedelta) -> Fraction:
    return delta.days * 86400 + delta.seconds + Fraction(delta.microseconds, 10**6)


def _seconds_of_numpy(value: np.timedelta64) -> Fraction:
    unit, count = np.datetime_data(value.dtype)
    if np.isnat(value):
        raise UnitError("NaT is not a duration", hint=_LENGTH)
    if unit not in _NUMPY_SECONDS:
        raise UnitError(f"{value!r} has no fixed length", hint="give it in weeks or smaller units")
    return int(value.astype(np.int64)) * count * _NUMPY_SECONDS[unit]


def _seconds_of_text(text: str) -> Fraction:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise UnitError(f"{text!r} is not a duration", hint='write it like "10s", "5m", "1h30m", "250ms", "2d"')
    total = sum((Fraction(number) * _SECONDS[unit] for number, unit in _PART.findall(found[2])), Fraction(0))
    return -total if found[1] == "-" else total


def is_integer(value: object) -> TypeGuard[SupportsInt]:
    """Say whether a value is an integer of Python or numpy, which counts ticks."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64)


def _whole(seconds: Fraction, value: object, unit: Unit | None) -> int:
    ticks = seconds * PER_SECOND[unit or "us"]
    if ticks.denominator != 1:
        raise UnitError(f"{value!r} is not a whole number of {unit or 'us'}", hint="give the source a finer unit")
    return _checked(ticks.numerator)


def _checked(ticks: int) -> int:
    if not MIN_TIME <= ticks <= INFINITY:
        raise TimeOverflow(f"{ticks} is outside the range of times, int64 ticks", hint=_RANGE)
    return ticks


def add_time(time: int, duration: int) -> int:
    """Return `time + duration`; INFINITY is absorbing, any other overflow raises `TimeOverflow`.

    >>> add_time(INFINITY, -5) == INFINITY
    True
    """
    if time == INFINITY or duration == INFINITY:
        return INFINITY
    total = time + duration
    if not MIN_TIME <= total < INFINITY:
        raise TimeOverflow(f"{time} + {duration} leaves the range of times, int64 ticks", hint=_RANGE)
    return total


def reach(time: int, duration: int) -> int:
    """Return `time + duration`, saturated at INFINITY and MIN_TIME.

    >>> reach(3, 4), reach(INFINITY - 1, 4) == INFINITY
    (7, True)
    """
    return max(MIN_TIME, min(time + duration, INFINITY))


def reaches(times: Ticks, durations: Ticks) -> Ticks:
    """Return `reach` of each pair, vectorised."""
    with np.errstate(over="ignore"):
        total = times + durations
    return np.where((durations > 0) & (total < times), INFINITY, np.where((durations < 0) & (total > times), MIN_TIME, total))


def add_times(times: Ticks, durations: Ticks | int) -> Ticks:
    """Return `add_time` of each pair, vectorised.

    >>> add_times(np.array([1, INFINITY]), 4).tolist() == [5, INFINITY]
    True
    """
    other = np.asarray(durations, dtype=np.int64)
    if _stay_within(times, other):
        return times + other
    other = np.broadcast_to(other, times.shape)
    absorbed = (times == INFINITY) | (other == INFINITY)
    with np.errstate(over="ignore"):
        total = times + other
    wrapped = ((times ^ total) & (other ^ total)) < 0
    bad = (wrapped | (total == INFINITY)) & ~absorbed
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise TimeOverflow(f"{int(times[row])} + {int(other[row])} leaves the range of times, int64 ticks")
    return np.where(absorbed, INFINITY, total)


def floor_time(time: int, period: int, phase: int) -> int:
    """Return the largest time `phase + k * period` that is <= `time`; INFINITY stays. Raises `TimeOverflow`.

    >>> floor_time(7, 5, 0), floor_time(-7, 5, 1)
    (5, -9)
    """
    return add_time(time, -((time - phase) % period))


def ceil_time(time: int, period: int, phase: int) -> int:
    """Return the smallest time `phase + k * period` that is >= `time`; INFINITY stays. Raises `TimeOverflow`.

    >>> ceil_time(7, 5, 0), ceil_time(-7, 5, 1)
    (10, -4)
    """
    return add_time(time, (phase - time) % period)


def floor_times(times: Ticks, period: int, phase: int) -> Ticks:
    """Return `floor_time` of each, vectorised.

    >>> floor_times(np.array([7, -7]), 5, 0).tolist()
    [5, -10]
    """
    return add_times(times, -((times % period - phase) % period))  # reducing `times` first keeps each step within int64


def ceil_times(times: Ticks, period: int, phase: int) -> Ticks:
    """Return `ceil_time` of each, vectorised.

    >>> ceil_times(np.array([7, -7]), 5, 0).tolist()
    [10, -5]
    """
    return add_times(times, (phase - times % period) % period)


def _stay_within(times: Ticks, durations: Ticks) -> bool:
    """Say whether all values are finite, and every sum is certainly finite too."""
    if not times.size:
        return True
    latest, longest = int(times.max()), int(durations.max())
    least = int(times.min()) + int(durations.min())
    return max(latest, longest, latest + longest) < INFINITY and least >= MIN_TIME


def format_duration(duration: int, unit: Unit | None = None) -> str:
    """Return a duration as text for people, which a query reads again: ticks, or parts such as `1h30m` of a calendar unit.

    >>> format_duration(90), format_duration(5_400, "s"), format_duration(1_500, "ms"), format_duration(INFINITY, "s")
    ('90', '1h30m', '1s500ms', 'inf')
    """
    if duration == INFINITY or not is_calendar(unit) or duration <= 0:
        return format_time(duration)
    left, parts = duration, []
    for name, length in _LENGTHS[unit]:
        count, left = divmod(left, length)
        parts += [f"{count}{name}"] if count else []
    return "".join(parts)


_FINE: Final[Sequence[Unit]] = ("s", "ms", "us", "ns")
_LENGTHS: Final[Mapping[Unit | None, Sequence[tuple[str, int]]]] = {
    unit: [
        *((name, seconds * 1000**place) for name, seconds in (("d", 86_400), ("h", 3_600), ("m", 60))),
        *((name, 1000 ** (place - finer)) for finer, name in enumerate(_FINE[: place + 1])),
    ]
    for place, unit in enumerate(_FINE)
}
"""The lengths of parts of a duration in ticks of a unit, the longest first."""


def time_repr(time: int, unit: Unit | None = None) -> str:
    """Return a time as Python text that a source reads again: ticks, a date in UTC in quotes, or INFINITY.

    >>> time_repr(3), time_repr(2, "s"), time_repr(INFINITY)
    ('3', "'1970-01-01T00:00:02Z'", 'INFINITY')
    """
    if time == INFINITY:
        return "INFINITY"
    return repr(format_time(time, unit)) if is_calendar(unit) and time != MIN_TIME else str(time)


def format_time(time: int, unit: Unit | None = None) -> str:
    """Return a time as text for people: ticks, or an ISO date in UTC, with the thousandths of a second that there are.

    >>> format_time(3), format_time(INFINITY), format_time(2, "s")
    ('3', 'inf', '1970-01-01T00:00:02Z')
    >>> format_time(2_000_000, "us"), format_time(2_500_000, "us"), format_time(1, "us")
    ('1970-01-01T00:00:02Z', '1970-01-01T00:00:02.500Z', '1970-01-01T00:00:00.000001Z')
    """
    if time == INFINITY:
        return "inf"
    if not is_calendar(unit):
        return str(time)
    if time == MIN_TIME:
        return "MIN_TIME"
    clock, _, digits = str(np.array(time).astype(f"datetime64[{unit}]")).partition(".")
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{clock}.{digits}Z" if digits else f"{clock}Z"


def life_text(le: int, re: int, unit: Unit | None) -> str:
    """Return a lifetime as people read it; the day is said once where both ends are of one.

    >>> life_text(0, 10, None), life_text(60, 120, "s"), life_text(60, 86_400, "s")
    ('[0, 10)', '[1970-01-01T00:01:00Z, 00:02:00Z)', '[1970-01-01T00:01:00Z, 1970-01-02T00:00:00Z)')
    """
    start, end = format_time(le, unit), format_time(re, unit)
    day, _, clock = end.partition("T")
    return f"[{start}, {clock if clock and start.startswith(f'{day}T') else end})"
