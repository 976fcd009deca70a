"""Which right row an as-of join prefers for a left row: a distance in time, in one direction or in both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from streamdsl.errors import QueryError
from streamdsl.temporal import INFINITY

Direction: TypeAlias = Literal["back", "forward", "nearest"]
Ties: TypeAlias = Literal["all", "last"]
"""Which of the nearest right rows, as they start together, a left row gets: all, or the last one by payload."""
Distance: TypeAlias = tuple[int, bool]
"""The ticks between a left and a right LE, and whether the right one is later: smaller is nearer, and ties go to the earlier."""


def check_ties(ties: str) -> None:
    """Raise `QueryError` for what says nothing of ties."""
    if ties not in ("all", "last"):
        raise QueryError(f'ties is "all" or "last", not {ties!r}', hint='ties="last" gives each left row one right row at most')


@dataclass(frozen=True, slots=True)
class Nearness:
    """The directions and the tolerance of an as-of join. Of two right rows at the same distance `nearest` takes the earlier.

    >>> back, nearest = Nearness("back", 5), Nearness("nearest")
    >>> back.of(10, 7), back.of(10, 4), back.of(10, 11), nearest.of(10, 11) > nearest.of(10, 9)
    ((3, False), None, None, True)
    """

    direction: Direction = "back"
    tolerance: int = INFINITY

    def __post_init__(self) -> None:
        if self.direction not in ("back", "forward", "nearest"):
            raise QueryError(f'direction is "back", "forward" or "nearest", not {self.direction!r}')
        if self.tolerance < 0:
            raise QueryError(f"a tolerance is a duration >= 0, not {self.tolerance}")

    def of(self, left: int, right: int) -> Distance | None:
        """Return the distance of a right LE from a left one, None if it is in the wrong direction or beyond the tolerance."""
        is_later = right > left
        if (is_later and self.direction == "back") or (right < left and self.direction == "forward"):
            return None
        distance = abs(right - left)
        return (distance, is_later) if distance <= self.tolerance else None
