"""A clock that stands still until a test moves it."""

from __future__ import annotations

from streamdsl.errors import QueryError
from streamdsl.temporal import DurationLike, TimeLike, format_time, to_duration, to_ticks


class VirtualClock:
    """A wall clock under a test's control: called like `time.time_ns`, it returns nanoseconds since 1970 (UTC).

    It goes wherever a clock is a parameter, so that what depends on the wall clock is the same in every run. It never goes back.

    >>> clock = VirtualClock("2013-01-01T00:00:00Z")
    >>> clock.advance("1m30s")
    >>> clock
    <VirtualClock 2013-01-01T00:01:30Z>
    >>> clock() == clock() == 1_356_998_490 * 10**9
    True
    """

    def __init__(self, start: TimeLike = 0) -> None:
        self._now = to_ticks(start, "ns")

    def __call__(self) -> int:
        return self._now

    def advance(self, duration: DurationLike) -> None:
        """Let time pass: an `int` is in nanoseconds. Raises `QueryError` for a negative duration."""
        passed = to_duration(duration, "ns")
        if passed < 0:
            raise QueryError(f"a clock does not go back, so it cannot advance by {duration!r}")
        self._now += passed

    def advance_to(self, time: TimeLike) -> None:
        """Let time pass until a time. Raises `QueryError` for one that is past.

        >>> clock = VirtualClock()
        >>> clock.advance_to("1970-01-01T00:00:01Z")
        >>> clock()
        1000000000
        """
        self.advance(to_ticks(time, "ns") - self._now)

    def __repr__(self) -> str:
        return f"<VirtualClock {format_time(self._now, 'ns')}>"
