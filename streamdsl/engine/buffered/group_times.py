"""Groups and times packed into one integer, so that a pair is found by one search."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.pairs import distinct_values
from streamdsl.expr.table import Rows
from streamdsl.temporal.time import Ticks

ROOM: Final = 2**62
"""Packed integers are smaller than this."""


class GroupTimes:
    """A group and a time as one integer, in the same order. Times that no row has can be packed too, for searches.

    >>> times = GroupTimes(np.array([4, 8]), np.array([5, 9]))
    >>> times.pack(np.array([4, 4, 8]), np.array([5, 9, 5])).tolist()
    [64, 68, 128]
    """

    __slots__ = ("_bits", "_groups", "_low", "_times")

    def __init__(self, groups: Ticks, times: Ticks) -> None:
        self._times: Ticks | None = None
        self._low = int(times.min())
        self._bits = (int(times.max()) - self._low + 1).bit_length() + 1
        self._groups: Ticks | None = None
        """The groups, whose ranks are packed; None: they are small, and packed themselves."""
        if int(groups.min()) >= 0 and (int(groups.max()) + 1) << self._bits <= ROOM:
            return
        self._groups = distinct_values(groups)
        if len(self._groups) << self._bits > ROOM:
            self._times = distinct_values(times)
            self._low, self._bits = 0, (len(self._times) + 1).bit_length()

    def fits(self, groups: Ticks, times: Ticks) -> bool:
        """Say whether other rows can be packed with these."""
        if self._times is not None or not self._knows(self._ranks(groups), groups).all():
            return False
        return self._low <= int(times.min()) and int(times.max()) - self._low + 1 < 1 << self._bits

    def pack(self, groups: Ticks, times: Ticks) -> Ticks:
        """Return the packed values of rows that fit."""
        return self._pack(self._ranks(groups), times)

    def ranges(self, keys: Ticks, groups: Ticks, lo: Ticks, hi: Ticks) -> tuple[Rows, Rows]:
        """Return the range of packed values of each group with times in `[lo, hi)`."""
        ranks = self._ranks(groups)
        first, last = np.searchsorted(keys, self._pack(ranks, lo)), np.searchsorted(keys, self._pack(ranks, hi))
        return first, np.where(self._knows(ranks, groups), last, first)

    def _ranks(self, groups: Ticks) -> Rows:
        if self._groups is None:
            return np.clip(groups, -1, ROOM >> self._bits)
        ranks: Rows = (groups > self._groups[0]).astype(np.intp) if len(self._groups) == 1 else self._groups.searchsorted(groups)
        return ranks

    def _knows(self, ranks: Rows, groups: Ticks) -> NDArray[np.bool_]:
        if self._groups is None:
            return (ranks >= 0) & (ranks < ROOM >> self._bits)
        known: NDArray[np.bool_] = self._groups[np.minimum(ranks, len(self._groups) - 1)] == groups
        return known

    def _pack(self, ranks: Rows, times: Ticks) -> Ticks:
        if self._times is not None:
            times = np.searchsorted(self._times, times)
        return (ranks << self._bits) + (np.clip(times, self._low, self._low + (1 << self._bits) - 1) - self._low)
