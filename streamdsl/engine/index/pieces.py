"""The pieces of time in which a row is out: disjoint and maximal, changed where something in them changes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TypeAlias

from streamdsl.temporal.lifetime import Lifetime, merge

PieceChange: TypeAlias = tuple[int, int, int]
"""The LE of a piece, its RE before and its RE now; an RE equal to LE means that it is not there."""


class Pieces:
    """Disjoint periods of time, none of which touches another.

    >>> pieces = Pieces()
    >>> pieces.redo(0, 20, [Lifetime(2, 5), Lifetime(9, 12)])
    [(2, 2, 5), (9, 9, 12)]
    >>> pieces.redo(5, 9, [Lifetime(5, 9)])
    [(2, 5, 12), (9, 12, 9)]
    """

    __slots__ = ("_les", "_res")

    def __init__(self, les: list[int] | None = None, res: list[int] | None = None) -> None:
        self._les = les or []
        self._res = res or []

    def __len__(self) -> int:
        return len(self._les)

    def __iter__(self) -> Iterator[Lifetime]:
        """Yield the pieces, in order.

        >>> list(Pieces([4], [6]))
        [Lifetime(le=4, re=6)]
        """
        return map(Lifetime, self._les, self._res)

    def redo(self, lo: int, hi: int, now: Iterable[Lifetime]) -> list[PieceChange]:
        """Put periods inside `[lo, hi)` into the place of what was there, and return what changes. O(k + log n) for k pieces.

        >>> pieces = Pieces()
        >>> pieces.redo(0, 9, [Lifetime(0, 9)]), pieces.redo(3, 5, [])
        ([(0, 0, 9)], [(0, 9, 3), (5, 5, 9)])
        """
        touching = self._touching(lo, hi)
        old = dict(zip(self._les[touching], self._res[touching], strict=True))
        beside = [part for le, re in old.items() for part in (Lifetime(le, min(re, lo)), Lifetime(max(le, hi), re))]
        new = {piece.le: piece.re for piece in merge([*beside, *now])}
        self._les[touching], self._res[touching] = new.keys(), new.values()
        return [(le, old.get(le, le), new.get(le, le)) for le in {**old, **new} if old.get(le, le) != new.get(le, le)]

    def _touching(self, lo: int, hi: int) -> slice:
        """Return which pieces overlap `[lo, hi]` or touch it."""
        return slice(bisect_left(self._res, lo), bisect_right(self._les, hi))

    def forget(self, cti: int) -> None:
        """Drop the pieces with RE < `cti`, which nothing can touch any more. O(n), but as fast as memory moves.

        >>> pieces = Pieces()
        >>> _ = pieces.redo(0, 9, [Lifetime(0, 2), Lifetime(4, 6)])
        >>> pieces.forget(3); len(pieces)
        1
        """
        passed = bisect_left(self._res, cti)
        del self._les[:passed], self._res[:passed]

    def _check(self) -> None:
        """Assert every invariant of the representation."""
        assert all(le < re for le, re in self), "no piece is empty"
        assert all(a.re < b.le for a, b in pairwise(self)), "no piece touches the next"
