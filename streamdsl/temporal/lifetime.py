"""Lifetimes `[LE, RE)`: half-open intervals of ticks (paper 001, II.A)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from streamdsl.temporal.time import format_time


class Lifetime(NamedTuple):
    """A period `[le, re)` in ticks; empty when `le >= re`.

    >>> Lifetime(1, 5).overlaps(Lifetime(4, 9)), Lifetime(1, 5).overlaps(Lifetime(5, 9))
    (True, False)
    """

    le: int
    re: int

    @property
    def is_empty(self) -> bool:
        """Whether the lifetime contains no instant."""
        return self.le >= self.re

    def overlaps(self, other: Lifetime) -> bool:
        """Say whether both lifetimes contain a common instant."""
        return max(self.le, other.le) < min(self.re, other.re)

    def intersect(self, other: Lifetime) -> Lifetime:
        """Return the intersection, which may be empty."""
        return Lifetime(max(self.le, other.le), min(self.re, other.re))

    def __str__(self) -> str:
        return f"[{format_time(self.le)}, {format_time(self.re)})"


def merge(lifetimes: Iterable[Lifetime]) -> list[Lifetime]:
    """Return the union of lifetimes as disjoint maximal pieces, in order. O(n log n).

    >>> merge([Lifetime(4, 6), Lifetime(1, 4), Lifetime(8, 9)])
    [Lifetime(le=1, re=6), Lifetime(le=8, re=9)]
    """
    merged: list[Lifetime] = []
    for life in sorted(life for life in lifetimes if not life.is_empty):
        if merged and life.le <= merged[-1].re:
            merged[-1] = Lifetime(merged[-1].le, max(merged[-1].re, life.re))
        else:
            merged.append(life)
    return merged


def subtract(life: Lifetime, removed: Iterable[Lifetime]) -> list[Lifetime]:
    """Return `life` without the lifetimes `removed`, as disjoint maximal pieces, in order. O(n log n).

    >>> subtract(Lifetime(0, 10), [Lifetime(2, 4), Lifetime(3, 5)])
    [Lifetime(le=0, re=2), Lifetime(le=5, re=10)]
    """
    pieces, start = [], life.le
    for hole in merge(removed):
        pieces.append(Lifetime(start, min(hole.le, life.re)))
        start = max(start, hole.re)
    pieces.append(Lifetime(start, life.re))
    return [piece for piece in pieces if not piece.is_empty]
