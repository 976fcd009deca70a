"""The tuples that a query has seen by some moment: their times and positions (paper 003, definition 7)."""

from __future__ import annotations

from abc import ABC, abstractmethod

from streamdsl.errors import PositionError
from streamdsl.windows.sequences.numbers import BEFORE, At, Batch, Number

__all__ = ["Prefix", "Seen"]


class Seen(ABC):
    """The tuples that a query started at `t0` has seen by some moment; the `v` in functions of window sequences."""

    t0: Number

    @property
    @abstractmethod
    def last(self) -> int:
        """The highest position seen, -1 if there is none."""

    @abstractmethod
    def batch_at(self, position: int) -> Batch:
        """Return the batch of the tuple at a seen position."""

    @abstractmethod
    def tau_inv(self, at: At) -> int:
        """Return the highest position with batch <= `at`, or -1."""

    def tau(self, n: int) -> Batch:
        """Return the batch of the tuple at position `n`, and `(t0, 0)` for -1; raises `PositionError` if it has not come yet."""
        if n == -1:
            return (self.t0, 0)
        if not 0 <= n <= self.last:
            seen = f"the positions so far are 0 to {self.last}" if self.last >= 0 else "no tuple has been seen yet"
            raise PositionError(f"there is no tuple at position {n}; {seen}")
        return self.batch_at(n)

    def first_from(self, time: Number) -> int:
        """Return the lowest position with this time or a later one: `last + 1` if no such tuple has been seen."""
        return self.tau_inv((time, BEFORE)) + 1


class Prefix(Seen):
    """What another has seen by an earlier moment: its tuples up to position `last`."""

    def __init__(self, whole: Seen, last: int) -> None:
        self.t0 = whole.t0
        self._whole = whole
        self._last = last

    @property
    def last(self) -> int:
        return self._last

    def batch_at(self, position: int) -> Batch:
        return self._whole.batch_at(position)

    def tau_inv(self, at: At) -> int:
        return min(self._whole.tau_inv(at), self._last)
