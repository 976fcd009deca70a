"""What a query has seen of a stream by some moment: times and positions of tuples (paper 003, definition 7)."""

from __future__ import annotations

from abc import ABC, abstractmethod

from streamdsl.errors import PositionError
from streamdsl.windows.sequences.numbers import BEFORE, At, Batch, Number

__all__ = ["Seen"]


class Seen(ABC):
    """The tuples that a query started at `t0` sees by some moment; functions of window sequences are given it as `v`."""

    t0: Number

    @property
    @abstractmethod
    def last(self) -> int:
        """The highest position seen, -1 if there is none."""

    @abstractmethod
    def batch_at(self, position: int) -> Batch:
        """Return the batch of the tuple at a position that has been seen."""

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
        """Return the lowest position that a tuple with this time or a later one has, or would have."""
        return self.tau_inv((time, BEFORE)) + 1
