"""Grids: windows that are numbered along time and do not depend on rows; rows only enter and leave them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from streamdsl.errors import TimeOverflow, UnboundedOutputError
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.payload import plain
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks, Unit, format_time
from streamdsl.windows.spec import Ends, Windows, open_starts


@dataclass(frozen=True, slots=True)
class Grid(Windows):
    """The base of kinds whose windows do not depend on rows: window k starts and ends later than window k - 1.

    Methods for a single window may return times outside of int64; methods for arrays are called for times >= `lowest` only.
    """

    kind = "grid"
    by_clock = True
    ends = Ends.ALWAYS
    ends_count = True
    completed_by_rows = False
    follows_ctis = True

    @abstractmethod
    def start(self, k: int) -> int:
        """Return the LE of window number `k`, which may lie outside of the range of times."""

    @abstractmethod
    def end(self, k: int) -> int:
        """Return the RE of window number `k`, which may lie outside of the range of times."""

    @abstractmethod
    def first_ending_after(self, time: int) -> int:
        """Return the number of the earliest window with RE > `time`."""

    @abstractmethod
    def last_starting_by(self, time: int) -> int:
        """Return the number of the latest window with LE <= `time`."""

    @abstractmethod
    def starts_of(self, numbers: Ticks) -> Ticks:
        """Return the LE of each of these windows."""

    @abstractmethod
    def ends_of(self, numbers: Ticks) -> Ticks:
        """Return the RE of each of these windows."""

    @abstractmethod
    def firsts_ending_after(self, times: Ticks) -> Ticks:
        """Return `first_ending_after` of each time."""

    @abstractmethod
    def lasts_starting_before(self, times: Ticks) -> Ticks:
        """Return `last_starting_before` of each time."""

    @property
    @abstractmethod
    def longest(self) -> int:
        """An upper bound of the duration of a window."""

    @property
    @abstractmethod
    def least_hop(self) -> int:
        """A lower bound of the average duration from one window's start to the next one's."""

    @property
    @abstractmethod
    def per_point(self) -> int | None:
        """The number of windows that contain a point, None if it differs between points."""

    @property
    def has_gaps(self) -> bool:
        """Whether some times are in no window.

        >>> from streamdsl.windows.hopping import Hopping
        >>> Hopping(5, 10).has_gaps, Hopping(10, 10).has_gaps
        (True, False)
        """
        return self.longest < self.least_hop

    @property
    def most_per_point(self) -> int:
        """An upper bound of the number of windows that contain a point."""
        return -(-self.longest // self.least_hop) if self.per_point is None else self.per_point

    @property
    def lowest(self) -> int:
        """A time from which on all windows, and the intermediate values of their computation, fit into int64."""
        return MIN_TIME + self.longest + self.least_hop

    @property
    def horizon(self) -> int:
        return self.longest + self.least_hop

    def settled(self, lives: Sequence[Lifetime], c: int, time_sensitive: bool, reads_re: bool) -> int:
        """The smallest W.LE of the windows that are not closed, empty ones included; at most c."""
        ending_later = self.start(self.first_ending_after(c))
        return min(c, ending_later, *open_starts(self, lives, reads_re, c))

    def window(self, k: int) -> Lifetime:
        """Return window number `k`; raises `TimeOverflow` if it leaves the range of times.

        >>> from streamdsl.windows import Hopping
        >>> Hopping(10, 5).window(-1)
        Lifetime(le=-5, re=5)
        """
        le, re = self.start(k), self.end(k)
        if le < MIN_TIME or re > INFINITY:
            raise TimeOverflow(f"the window [{le}, {re}) of {self.describe()} leaves the range of times, int64 ticks")
        return Lifetime(le, re)

    def last_starting_before(self, time: int) -> int:
        """Return the number of the latest window with LE < `time`.

        >>> from streamdsl.windows import Hopping
        >>> Hopping(10, 5).last_starting_before(10)
        1
        """
        return self.last_starting_by(time - 1)

    def numbers(self, life: Lifetime) -> range:
        """Return the numbers of the windows that a lifetime overlaps.

        >>> from streamdsl.windows import Hopping
        >>> list(Hopping(10, 5).numbers(Lifetime(6, 7)))
        [0, 1]
        """
        if life.is_empty:
            return range(0)
        return range(self.first_ending_after(life.le), self.last_starting_before(life.re) + 1)

    def changed_numbers(self, le: int, re_old: int, re_new: int) -> range:
        """Return the numbers of the windows that a row enters or leaves as its finite end moves; an end equal to LE is no row.

        >>> from streamdsl.windows import Hopping
        >>> Hopping(10, 5).changed_numbers(6, 6, 12), Hopping(10, 5).changed_numbers(6, 12, 8)
        (range(0, 3), range(2, 3))
        """
        first = self.first_ending_after(le)
        new = max(first, self.last_starting_before(re_new) + 1) if re_new > le else first
        old = max(first, self.last_starting_before(re_old) + 1) if re_old > le else first
        return range(old, new) if old <= new else range(new, old)

    def over(self, lifetimes: Iterable[Lifetime], until: int = INFINITY) -> list[Lifetime]:
        """Return the non-empty windows; an event without end needs a finite `until`."""
        found: set[int] = set()
        for life in lifetimes:
            numbers = self.numbers(life)
            if until != INFINITY:
                numbers = range(numbers.start, min(numbers.stop, self.first_ending_after(until)))
            elif life.re == INFINITY:
                raise unending(self, life)
            found.update(numbers)
        return [self.window(k) for k in sorted(found)]


def unending(windows: Windows, event: object, unit: Unit | None = None) -> UnboundedOutputError:
    """Return the error for an event that would fill windows for ever."""
    told = partial(_unending_text, windows, event)
    return UnboundedOutputError(
        told(unit),
        hint="bound the run with run(until=t), end the event with a retraction, or cut it with clip_interval or to_points",
        told=told,
    )


def _unending_text(windows: Windows, event: object, unit: Unit | None) -> str:
    shown = f"[{format_time(event.le, unit)}, inf)" if isinstance(event, Lifetime) else repr(plain(event))
    return f"the event {shown} never ends, so it would fill {windows.describe(unit)} windows for ever"
