"""Portions of a grid of windows: the windows of a group that one Python worker computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from streamdsl.temporal.time import Ticks, Unit
from streamdsl.windows import Grid, Hopping

_WINDOWS: Final = 64


def portion_size(windows: Hopping) -> int:
    """Return the number of windows of a portion, which is large enough that few rows overlap two portions.

    Each portion of a partition is a run of the engine, which takes some milliseconds: more portions, and sparse rows cost more.
    Fewer, and the windows of one group are divided among fewer tasks.

    >>> portion_size(Hopping(10, 10)), portion_size(Hopping(100, 10))
    (64, 640)
    """
    return _WINDOWS * -(-windows.size // windows.hop)


@dataclass(frozen=True, slots=True)
class WindowPortion(Grid):
    """The `count` windows of a grid from number `first` on; before and after them there is none.

    >>> from streamdsl.temporal import Lifetime
    >>> WindowPortion(Hopping(10, 10), 1, 2).over([Lifetime(5, 95)])
    [Lifetime(le=10, re=20), Lifetime(le=20, re=30)]
    """

    per_point = None

    grid: Hopping
    first: int
    count: int

    @property
    def fixed_size(self) -> int | None:
        return self.grid.fixed_size

    @property
    def are_apart(self) -> bool:
        return self.grid.are_apart

    @property
    def longest(self) -> int:
        return self.grid.longest

    @property
    def least_hop(self) -> int:
        return self.grid.least_hop

    def fewest(self) -> Hopping:
        return self.grid.fewest()

    def start(self, k: int) -> int:
        return self.grid.start(k)

    def end(self, k: int) -> int:
        return self.grid.end(k)

    def first_ending_after(self, time: int) -> int:
        return min(max(self.grid.first_ending_after(time), self.first), self.first + self.count)

    def last_starting_by(self, time: int) -> int:
        return max(min(self.grid.last_starting_by(time), self.first + self.count - 1), self.first - 1)

    def starts_of(self, numbers: Ticks) -> Ticks:
        return self.grid.starts_of(numbers)

    def ends_of(self, numbers: Ticks) -> Ticks:
        return self.grid.ends_of(numbers)

    def firsts_ending_after(self, times: Ticks) -> Ticks:
        return np.clip(self.grid.firsts_ending_after(times), self.first, self.first + self.count)

    def lasts_starting_before(self, times: Ticks) -> Ticks:
        return np.clip(self.grid.lasts_starting_before(times), self.first - 1, self.first + self.count - 1)

    def describe(self, unit: Unit | None = None) -> str:
        return f"{self.grid.describe(unit)}, {self.count} from number {self.first}"
