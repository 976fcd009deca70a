"""The progress of a source with partitions: a CTI for each, of which the least is the source's."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from streamdsl.errors import QueryError
from streamdsl.temporal import INFINITY, to_duration

_ENDLESS: Final = (1, 0)


class PartitionMarks:
    """How far each partition is: its largest LE minus `slack`, or the CTIs that it holds itself.

    The least of them is the CTI of the source, so that no row of a slow partition is late for a fast one's. A partition without
    a mark holds all back. One that has been silent for `idle` seconds holds nothing back; when all are, the furthest counts.
    """

    def __init__(
        self,
        partitions: Iterable[str],
        slack: Any = None,
        idle: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.marks: dict[str, Any] = dict.fromkeys(partitions)
        self._slack, self._idle, self._clock = slack, idle, clock
        self._heard = dict.fromkeys(self.marks, clock())
        self._sent: Any = None

    def row(self, partition: str, le: Any) -> None:
        """Take the LE of a partition's row."""
        self._heard[partition] = self._clock()
        if self._slack is not None:
            self._raise(partition, less(instant(le), self._slack))

    def cti(self, partition: str, at: Any) -> None:
        """Take a CTI that a partition holds."""
        self._heard[partition] = self._clock()
        self._raise(partition, instant(at))

    def risen(self, busy: Collection[str] = ()) -> Any:
        """Return the CTI of the source if it has risen since the last call, else None; those that are `busy` are not silent."""
        self._heard.update(dict.fromkeys(busy, self._clock()))
        least = self._least()
        if least is None or (self._sent is not None and _key(least) <= _key(self._sent)):
            return None
        self._sent = least
        return least

    def _raise(self, partition: str, at: Any) -> None:
        before = self.marks[partition]
        self.marks[partition] = at if before is None else max(before, at, key=_key)

    def _least(self) -> Any:
        since = float("-inf") if self._idle is None else self._clock() - self._idle
        awake = [mark for partition, mark in self.marks.items() if self._heard[partition] >= since]
        if None in awake:
            return None
        known = [mark for mark in self.marks.values() if mark is not None]
        return min(awake, key=_key) if awake else max(known, key=_key, default=None)


def instant(time: Any) -> Any:
    """Return a time as a date in UTC, or as the number that it is.

    >>> instant("2026-01-01T01:00+01:00"), instant(7)
    (datetime.datetime(2026, 1, 1, 0, 0, tzinfo=datetime.timezone.utc), 7)
    """
    found = datetime.fromisoformat(time) if isinstance(time, str) else time
    if isinstance(found, date) and not isinstance(found, datetime):
        found = datetime(found.year, found.month, found.day)
    if not isinstance(found, datetime):
        return found
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def less(le: Any, slack: Any) -> Any:
    """Return a time that is a duration before another one: dates take any duration, whole numbers a number of ticks.

    >>> from datetime import datetime
    >>> less(datetime(2026, 1, 1, 0, 0, 5), "5s"), less(9, 2)
    (datetime.datetime(2026, 1, 1, 0, 0), 7)
    """
    if isinstance(le, datetime):
        return le - (slack if isinstance(slack, timedelta) else timedelta(microseconds=to_duration(slack, "us")))
    if not isinstance(slack, int):
        raise QueryError(f"times that are whole numbers have a slack in ticks, not {slack!r}", hint="slack=5")
    return le - slack


def mark_to_json(mark: Any) -> Any:
    """Return a mark as plain data.

    >>> mark_to_json(instant("2026-01-01")), mark_to_json(7)
    ('2026-01-01T00:00:00+00:00', 7)
    """
    return mark.isoformat() if isinstance(mark, datetime) else mark


def _key(mark: Any) -> Any:
    return _ENDLESS if mark == INFINITY else (0, mark)
