"""Boundaries: the times at which lifetimes of a group start or end, each with the snapshot window that starts there."""

from __future__ import annotations

import numpy as np

from streamdsl.engine.columnar.accumulator_columns import AccumulatorColumns
from streamdsl.engine.columnar.terms import ROWS
from streamdsl.engine.columnar.versioned import VersionedResults
from streamdsl.engine.index.pair_index import longer
from streamdsl.expr.table import Rows
from streamdsl.temporal.time import MIN_TIME, Ticks


class Boundaries:
    """Boundaries by slot: the code of the group, the window that starts there, and the number of endpoints there.

    `totals` are the totals of a window if it starts by the high water; those of a later window are its difference from the one
    before.
    """

    def __init__(self) -> None:
        self.le: Ticks = np.empty(0, dtype=np.int64)
        self.re: Ticks = np.empty(0, dtype=np.int64)
        self.code: Rows = np.empty(0, dtype=np.intp)
        self.endpoints: Ticks = np.empty(0, dtype=np.int64)
        self.totals = AccumulatorColumns(0)
        self.results = VersionedResults()
        self._free: Rows = np.empty(0, dtype=np.intp)

    @property
    def capacity(self) -> int:
        """The number of slots."""
        return self.totals.size

    @property
    def rows(self) -> Ticks:
        """The number of rows in each window, or the difference from the one before."""
        return self.totals.counts(ROWS)

    def make(self, codes: Rows, le: Ticks) -> Rows:
        """Return slots for new boundaries, without endpoints; their windows have no end yet."""
        n = len(le)
        if len(self._free) < n:
            self._grow(max(64, 2 * self.totals.size, self.totals.size + 2 * n))
        slots, self._free = self._free[:n], self._free[n:]
        self.le[slots], self.code[slots], self.re[slots], self.endpoints[slots] = le, codes, MIN_TIME, 0
        self.results.enter(slots, le, codes)
        return slots

    def make_one(self, code: int, le: int, re: int) -> int:
        """Return a slot for a single new boundary with one endpoint, and a window that ends at `re`."""
        if not len(self._free):
            self._grow(max(64, 2 * self.totals.size))
        slot = self._free.item(0)
        self._free = self._free[1:]
        self.le[slot], self.code[slot], self.re[slot], self.endpoints[slot] = le, code, re, 1
        self.results.enter_one(slot, le, code)
        return slot

    def _grow(self, size: int) -> None:
        self._free = np.concatenate([self._free, np.arange(self.totals.size, size)])
        self.le, self.re, self.code, self.endpoints = (
            longer(array, size) for array in (self.le, self.re, self.code, self.endpoints)
        )
        self.totals.grow(size)
        self.results.grow(size)

    def drop(self, slots: Rows) -> None:
        """Drop boundaries; their slots are used again."""
        self.totals.clear(slots)
        self.results.clear(slots)
        self.results.leave(slots, self.le[slots], self.code[slots])
        self._free = np.concatenate([slots, self._free])
