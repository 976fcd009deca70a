"""Hopping windows, and tumbling windows, which are hopping windows with hop = size (paper 001, III.B.1-2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from streamdsl.errors import QueryError, TimeOverflow, UnboundedOutputError
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.payload import plain
from streamdsl.temporal.time import INFINITY, MIN_TIME, format_time
from streamdsl.windows.spec import Ends, Windows, open_starts


@dataclass(frozen=True, slots=True)
class Hopping(Windows):
    """The windows `[offset + k * hop, + size)` for every integer k, negative too; the offset is kept as one in `[0, hop)`.

        time        0    5    10   15   20
        size 10     [---------)
        hop 5            [---------)
                              [---------)

    >>> Hopping(10, 5).over([Lifetime(6, 7)])
    [Lifetime(le=0, re=10), Lifetime(le=5, re=15)]
    """

    size: int
    hop: int
    offset: int = 0

    def __post_init__(self) -> None:
        if self.size <= 0 or self.hop <= 0:
            raise QueryError(
                f"a window's size and hop are positive durations, not {self.size} and {self.hop}", hint="hopping_window(10, 5)"
            )
        object.__setattr__(self, "offset", self.offset % self.hop)

    @property
    def fixed_size(self) -> int | None:
        return self.size

    @property
    def are_apart(self) -> bool:
        return self.size <= self.hop

    @property
    def ends(self) -> Ends:
        return Ends.ALWAYS

    @property
    def ends_count(self) -> bool:
        return True

    @property
    def completed_by_rows(self) -> bool:
        return False

    @property
    def follows_ctis(self) -> bool:
        return True

    @property
    def horizon(self) -> int:
        return self.size + self.hop

    def settled(self, lives: Sequence[Lifetime], c: int, time_sensitive: bool, reads_re: bool) -> int:
        """The smallest W.LE over all windows of the grid, empty ones too, that are not closed; at most c."""
        ending_later = self.start(self.first_ending_after(c))
        return min(c, ending_later, *open_starts(self, lives, reads_re, c))

    def fewest(self) -> Hopping:
        return Hopping(self.hop, self.hop)

    @property
    def by_clock(self) -> bool:
        return True

    def window(self, k: int) -> Lifetime:
        """Return window number `k`; `TimeOverflow` if it leaves the range of times.

        >>> Hopping(10, 5).window(-1)
        Lifetime(le=-5, re=5)
        """
        le = self.start(k)
        re = le + self.size
        if le < MIN_TIME or re > INFINITY:
            raise TimeOverflow(f"the window [{le}, {re}) of {self.describe()} leaves the range of times, int64 ticks")
        return Lifetime(le, re)

    def start(self, k: int) -> int:
        """Return the LE of window number `k`, which may lie outside of the range of times.

        >>> Hopping(10, 5).start(-1)
        -5
        """
        return self.offset + k * self.hop

    def first_ending_after(self, time: int) -> int:
        """Return the number of the earliest window with RE > `time`.

        >>> Hopping(10, 5).first_ending_after(10)
        1
        """
        return (time - self.size - self.offset) // self.hop + 1

    def last_starting_before(self, time: int) -> int:
        """Return the number of the latest window with LE < `time`.

        >>> Hopping(10, 5).last_starting_before(10)
        1
        """
        return (time - 1 - self.offset) // self.hop

    def numbers(self, life: Lifetime) -> range:
        """Return the numbers of the windows that a lifetime overlaps.

        >>> list(Hopping(10, 5).numbers(Lifetime(6, 7)))
        [0, 1]
        """
        if life.is_empty:
            return range(0)
        return range(self.first_ending_after(life.le), self.last_starting_before(life.re) + 1)

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

    def describe(self) -> str:
        """Return `tumbling(size)` or `hopping(size, hop)`, with the offset if there is one."""
        offset = f", offset={self.offset}" if self.offset else ""
        if self.hop == self.size:
            return f"tumbling({self.size}{offset})"
        return f"hopping({self.size}, {self.hop}{offset})"


def unending(windows: Windows, event: object) -> UnboundedOutputError:
    """Return the error for an event that would fill windows for ever."""
    shown = f"[{format_time(event.le)}, inf)" if isinstance(event, Lifetime) else repr(plain(event))
    return UnboundedOutputError(
        f"the event {shown} never ends, so it would fill {windows.describe()} windows for ever",
        hint="bound the run with run(until=t), end the event with a retraction, or cut it with clip_interval or to_points",
    )
