"""Stretches: periods of time, each in a partition, in which windows may have changed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.sorting import sorted_integers
from streamdsl.expr.table import Column, Rows, flatnonzero
from streamdsl.temporal.time import Ticks


class Stretches(NamedTuple):
    """Periods `[lo, hi)` of partitions, given by their codes.

    `low` and `high` are the numbers of (code, lo) and (code, hi) in one order.
    """

    codes: Rows
    lo: Ticks
    hi: Ticks
    low: Column
    high: Column

    def __len__(self) -> int:
        return len(self.codes)

    def merged(self) -> Stretches:
        """Return them in order, with those that overlap or touch merged."""
        if len(self) == 1:
            return self
        is_in_order = bool((self.low[1:] >= self.low[:-1]).all())
        order, low = (np.arange(len(self)), self.low) if is_in_order else sorted_integers(self.low)
        high = self.high[order]
        furthest = np.maximum.accumulate(high)
        begins = np.concatenate([[True], low[1:] > furthest[:-1]]).astype(np.bool_)
        heads = flatnonzero(begins)
        if len(heads) == len(low):
            return Stretches(self.codes[order], self.lo[order], self.hi[order], low, high)
        tops = np.maximum.reduceat(self.hi[order], heads)
        return Stretches(self.codes[order[heads]], self.lo[order[heads]], tops, low[heads], np.maximum.reduceat(high, heads))

    def holds(self, places: Column) -> NDArray[np.bool_]:
        """Say which places are in one of them; they are merged."""
        at = np.searchsorted(self.low, places, side="right") - 1
        inside: NDArray[np.bool_] = (at >= 0) & (places < self.high.take(at, mode="clip"))
        return inside
