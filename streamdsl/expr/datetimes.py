"""Local times of a time zone, and times rounded down to a grid."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, TypeAlias

from streamdsl.temporal.time import PER_SECOND
from streamdsl.temporal.zones import zone_of

CalendarUnit: TypeAlias = Literal["s", "ms", "us", "ns"]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_START: Final = datetime(1970, 1, 1)


def local_time(time: datetime | int, zone: str, unit: CalendarUnit | None = None) -> datetime:
    """Return what the clocks of a time zone show at a datetime (a naive one is UTC), or at a count of ticks of a unit.

    >>> local_time(datetime(2026, 3, 29, 1, 0), "Europe/Vienna").isoformat()
    '2026-03-29T03:00:00+02:00'
    """
    if isinstance(time, datetime):
        instant = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    elif type(time) is int and unit is not None:
        instant = _EPOCH + timedelta(microseconds=time * 10**6 // PER_SECOND[unit])
    else:
        raise TypeError(f"{time!r} is neither a datetime nor a count of ticks with its unit")
    return instant.astimezone(zone_of(zone))


def truncate(time: Any, period: Any, offset: Any = 0) -> Any:
    """Return a time rounded down to the grid offset + k * period: ticks, or what the clock of a datetime shows, from 1970 on.

    >>> truncate(-7, 5), truncate(datetime(2026, 3, 29, 14, 7), timedelta(hours=6), timedelta(hours=1)).isoformat()
    (-10, '2026-03-29T13:00:00')
    """
    if isinstance(time, datetime) != isinstance(period, timedelta):
        raise TypeError(
            f"{time!r} is not rounded down to {period!r}: a datetime is, to a duration such as '1h'; "
            "ticks are, to a number of ticks, or to a duration with their unit"
        )
    if not isinstance(time, datetime):
        return time - (time - offset) % period
    rest = (time.replace(tzinfo=None) - (_START + offset if offset else _START)) % period
    return (time - rest).replace(fold=time.fold)
