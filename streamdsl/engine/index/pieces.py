"""The pieces of time in which a row is out: disjoint and maximal, changed where something in them changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise, starmap
from typing import Any, TypeAlias

from sortedcontainers import SortedDict

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

    __slots__ = ("_ends",)

    def __init__(self) -> None:
        self._ends: Any = SortedDict()

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[Lifetime]:
        """Yield the pieces, in order.

        >>> pieces = Pieces()
        >>> _ = pieces.redo(0, 9, [Lifetime(4, 6)])
        >>> list(pieces)
        [Lifetime(le=4, re=6)]
        """
        return starmap(Lifetime, self._ends.items())

    def redo(self, lo: int, hi: int, now: Iterable[Lifetime]) -> list[PieceChange]:
        """Put periods inside `[lo, hi)` into the place of what was there, and return what changes. O(k log n) for k pieces.

        >>> pieces = Pieces()
        >>> pieces.redo(0, 9, [Lifetime(0, 9)]), pieces.redo(3, 5, [])
        ([(0, 0, 9)], [(0, 9, 3), (5, 5, 9)])
        """
        old = self._touching(lo, hi)
        beside = [part for le, re in old.items() for part in (Lifetime(le, min(re, lo)), Lifetime(max(le, hi), re))]
        new = {piece.le: piece.re for piece in merge([*beside, *now])}
        for le in old:
            del self._ends[le]
        self._ends.update(new)
        return [(le, old.get(le, le), new.get(le, le)) for le in {**old, **new} if old.get(le, le) != new.get(le, le)]

    def _touching(self, lo: int, hi: int) -> dict[int, int]:
        """Return the pieces that overlap `[lo, hi]` or touch it."""
        position = self._ends.bisect_left(lo)
        first = position - 1 if position and self._ends.peekitem(position - 1)[1] >= lo else position
        return dict(self._ends.items()[first : self._ends.bisect_right(hi)])

    def forget(self, cti: int) -> None:
        """Drop the pieces with RE < `cti`, which nothing can touch any more. O(those dropped * log n).

        >>> pieces = Pieces()
        >>> _ = pieces.redo(0, 9, [Lifetime(0, 2), Lifetime(4, 6)])
        >>> pieces.forget(3); len(pieces)
        1
        """
        while self._ends and self._ends.peekitem(0)[1] < cti:
            self._ends.popitem(0)

    def _check(self) -> None:
        """Assert every invariant of the representation."""
        assert all(le < re for le, re in self._ends.items()), "no piece is empty"
        assert all(a.re < b.le for a, b in pairwise(self)), "no piece touches the next"
