"""Where the first window starts: the rules for t0 that engines have (paper 000, table 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class FromFirst:
    """t0 is counted from the first tuple: less the size if `whole`, so that the window has just closed when it comes.

    >>> FromFirst()(30, 5, 1), FromFirst(-1, whole=False)(30, 5, 1)
    (25, 29)
    """

    shift: int = 0
    whole: bool = True

    def __call__(self, first: int, size: int, slide: int) -> int:
        return first - (size if self.whole else 0) + self.shift

    @property
    def formula(self) -> str:
        """The rule in words."""
        return ("first - size" if self.whole else "first") + _shown(self.shift)


@dataclass(frozen=True, slots=True)
class Grid:
    """t0 is on a grid of absolute time, `shift` off the multiples of the slide, before any window that the first tuple may be in.

    With `whole=False` the first window is the last that the grid starts by the first tuple's time: no earlier one is made.

    >>> Grid(-1)(30, 5, 1), Grid(-1)(12, 3, 3), Grid(-1, whole=False)(31, 5, 2)
    (24, 8, 29)
    """

    shift: int = -1
    whole: bool = True

    def __call__(self, first: int, size: int, slide: int) -> int:
        number = -((size - first) // slide) if self.whole else first // slide
        return number * slide + self.shift

    @property
    def formula(self) -> str:
        """The rule in words."""
        number = "ceil((first - size) / slide)" if self.whole else "floor(first / slide)"
        return f"{number} * slide" + _shown(self.shift)


@dataclass(frozen=True, slots=True)
class Since:
    """t0 is on the grid, before the first window that is not over by a time: where an engine's time begins, whatever comes.

    >>> Since(0)(700, 4, 2), Since(0)(-7, 3, 3)
    (-3, -1)
    """

    time: int = 0
    grid: Grid = Grid()

    def __call__(self, first: int, size: int, slide: int) -> int:
        return self.grid(self.time + 1, size, slide)

    @property
    def formula(self) -> str:
        """The rule in words."""
        return self.grid.formula.replace("first", str(self.time + 1))


@dataclass(frozen=True, slots=True)
class At:
    """t0 is one time, whatever comes.

    >>> At(7)(30, 5, 1)
    7
    """

    time: int = 0

    def __call__(self, first: int, size: int, slide: int) -> int:
        return self.time

    @property
    def formula(self) -> str:
        """The rule in words."""
        return str(self.time)


BEFORE_FIRST: Final = FromFirst()


def _shown(shift: int) -> str:
    return "" if not shift else f" {'+' if shift > 0 else '-'} {abs(shift)}"
