"""Portions of a grid of windows: the windows that one Python call computes where no key partitions the rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from streamdsl.temporal import INFINITY, Lifetime
from streamdsl.windows import Hopping, PartOf, Windows

_WINDOWS: Final = 16


def portion_size(windows: Hopping) -> int:
    """Return the number of windows of a portion, which is large enough that few rows overlap two portions.

    >>> portion_size(Hopping(10, 10)), portion_size(Hopping(100, 10))
    (16, 160)
    """
    return _WINDOWS * -(-windows.size // windows.hop)


@dataclass(frozen=True, slots=True)
class WindowPortion(PartOf):
    """The `count` windows of a grid from number `first` on.

    >>> WindowPortion(Hopping(10, 10), 1, 2).over([Lifetime(5, INFINITY)])
    [Lifetime(le=10, re=20), Lifetime(le=20, re=30)]
    """

    grid: Hopping
    first: int
    count: int

    @property
    def all_windows(self) -> Windows:
        return self.grid

    def over(self, lifetimes: Iterable[Lifetime], until: int = INFINITY) -> list[Lifetime]:
        """Return the windows of the portion that are not empty."""
        mine = range(self.first, self.first + self.count)
        found: set[int] = set()
        for life in lifetimes:
            numbers = self.grid.numbers(life)
            found.update(range(max(mine.start, numbers.start), min(mine.stop, numbers.stop)))
        return [window for k in sorted(found) if (window := self.grid.window(k)).re <= until]
