"""Hopping windows, and tumbling windows, which are hopping windows with hop = size (paper 001, III.B.1-2)."""

from __future__ import annotations

from dataclasses import dataclass

from streamdsl.errors import QueryError
from streamdsl.temporal.time import Ticks, Unit, format_duration
from streamdsl.windows.grid import Grid


@dataclass(frozen=True, slots=True)
class Hopping(Grid):
    """The windows `[offset + k * hop, offset + k * hop + size)` for all integers k; the offset is reduced to `[0, hop)`.

        time        0    5    10   15   20
        size 10     [---------)
        hop 5            [---------)
                              [---------)

    >>> from streamdsl.temporal.lifetime import Lifetime
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
    def longest(self) -> int:
        return self.size

    @property
    def least_hop(self) -> int:
        return self.hop

    @property
    def per_point(self) -> int | None:
        return None if self.size % self.hop else self.size // self.hop

    def fewest(self) -> Hopping:
        return Hopping(self.hop, self.hop)

    def start(self, k: int) -> int:
        """Return the LE of window number `k`, which may lie outside of the range of times.

        >>> Hopping(10, 5).start(-1)
        -5
        """
        return self.offset + k * self.hop

    def end(self, k: int) -> int:
        return k * self.hop + self.offset + self.size

    def first_ending_after(self, time: int) -> int:
        """Return the number of the earliest window with RE > `time`.

        >>> Hopping(10, 5).first_ending_after(10)
        1
        """
        return (time - self.size - self.offset) // self.hop + 1

    def last_starting_by(self, time: int) -> int:
        return (time - self.offset) // self.hop

    def starts_of(self, numbers: Ticks) -> Ticks:
        return self.offset + numbers * self.hop

    def ends_of(self, numbers: Ticks) -> Ticks:
        return (self.offset + self.size) + numbers * self.hop

    def firsts_ending_after(self, times: Ticks) -> Ticks:
        beyond = self.size + self.offset - self.hop
        return (times - beyond) // self.hop if beyond >= 0 else (times - (self.size + self.offset)) // self.hop + 1

    def lasts_starting_before(self, times: Ticks) -> Ticks:
        return (times - (1 + self.offset)) // self.hop

    def changed_numbers(self, le: int, re_old: int, re_new: int) -> range:
        hop, offset = self.hop, self.offset
        first = (le - self.size - offset) // hop + 1
        new = (re_new - 1 - offset) // hop + 1 if re_new > le else first
        old = (re_old - 1 - offset) // hop + 1 if re_old > le else first
        if old < first:
            old = first
        if new < first:
            new = first
        return range(old, new) if old <= new else range(new, old)

    def describe(self, unit: Unit | None = None) -> str:
        """Return `tumbling(size)` or `hopping(size, hop)`, with the offset if there is one.

        >>> Hopping(3600, 60).describe("s")
        'hopping(1h, 1m)'
        """
        size, hop, offset = (format_duration(each, unit) for each in (self.size, self.hop, self.offset))
        offset = f", offset={offset}" if self.offset else ""
        return f"tumbling({size}{offset})" if self.hop == self.size else f"hopping({size}, {hop}{offset})"
