"""Changed rows with the ranges of windows that they enter or leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamdsl.engine.columnar.terms import Terms
from streamdsl.expr.table import Rows, every, flatnonzero, largest, least
from streamdsl.temporal.time import Ticks


@dataclass(slots=True, eq=False)
class Pending:
    """Changed rows: their groups, and their terms for the windows `[lo, hi)`, which are at least one."""

    groups: Ticks
    lo: Ticks
    _hi: Ticks | None
    terms: Terms
    signs: Ticks | None = None
    """-1 for rows that are retracted; None: none is."""
    each: int = 0
    """The number of windows that every row is in, if it is the same."""
    _first: int | None = None
    _stop: int | None = None

    @property
    def hi(self) -> Ticks:
        """The number after the last window of each row."""
        if self._hi is None:
            self._hi = self.lo + self.each
        return self._hi

    def __bool__(self) -> bool:
        return len(self.lo) > 0

    @property
    def first(self) -> int:
        """The least window number. There must be a row."""
        if self._first is None:
            self._first = least(self.lo)
        return self._first

    @property
    def stop(self) -> int:
        """The number after the last window. There must be a row."""
        if self._stop is None:
            self._stop = largest(self.hi)
        return self._stop

    @property
    def is_single(self) -> bool:
        """Whether each row is in one window."""
        if self.each:
            return self.each == 1
        return self.hi.item() - self.lo.item() == 1 if len(self.lo) == 1 else every(self.hi - self.lo == 1)

    def clipped(self, lo: Ticks | int, hi: Ticks | int) -> Pending:
        """Return the rows with their ranges clipped to `[lo, hi)`, without those that are outside."""
        if isinstance(lo, int) and isinstance(hi, int):
            if not self or self.stop <= lo or hi <= self.first:
                return NOTHING
            if lo <= self.first and self.stop <= hi:
                return self
        after, before = np.maximum(self.lo, lo), np.minimum(self.hi, hi)
        rows = flatnonzero(after < before)
        if len(rows) == len(after):
            return replace(self, lo=after, _hi=before, each=0, _first=None, _stop=None)
        return replace(self, lo=after, _hi=before, each=0).take(rows)

    def take(self, rows: Rows) -> Pending:
        """Return the rows at these indices, in this order."""
        signs = None if self.signs is None else self.signs[rows]
        hi = None if self.each else self.hi[rows]
        return Pending(self.groups[rows], self.lo[rows], hi, self.terms.take(rows), signs, self.each)

    @staticmethod
    def concat(parts: Sequence[Pending]) -> Pending:
        """Return rows one after the other."""
        if len(parts) == 1:
            return parts[0]
        groups, lo, hi = (np.concatenate([getattr(part, name) for part in parts]) for name in ("groups", "lo", "hi"))
        return Pending(groups, lo, hi, Terms.concat([part.terms for part in parts]))


_NONE: Ticks = np.empty(0, dtype=np.int64)
NOTHING = Pending(_NONE, _NONE, _NONE, Terms(0))
