"""Which right row an as-of join prefers for a left row: a distance in time, in one direction or in both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from streamdsl.errors import QueryError
from streamdsl.temporal import INFINITY

Direction: TypeAlias = Literal["back", "forward", "nearest"]
Distance: TypeAlias = tuple[int, bool]
"""How far a right LE is from a left one, and whether it is later."""


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near a right LE is to a left LE: the smaller the better; of two as near `nearest` prefers the earlier.

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
        """Return the nearness, None if the right row is on the wrong side or too far."""
        is_later = right > left
        if (is_later and self.direction == "back") or (right < left and self.direction == "forward"):
            return None
        distance = abs(right - left)
        return (distance, is_later) if distance <= self.tolerance else None

    def is_settled(self, left: int, best: Distance | None, cti: int) -> bool:
        """Say whether no right row that starts at `cti` or later can be as near to a left row as its best so far."""
        coming = self.of(left, max(cti, left))
        return coming is None or (best is not None and best < coming)
