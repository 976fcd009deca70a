"""The window table: the windows of all partitions, each in a slot, indexed by partition and start."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.columnar.accumulator_columns import AccumulatorColumns
from streamdsl.engine.columnar.versioned import VersionedResults
from streamdsl.engine.data_driven.group_codes import GroupCodes
from streamdsl.engine.data_driven.packing import Packing
from streamdsl.engine.data_driven.sorted_index import Portion, SortedIndex
from streamdsl.engine.frames.stretches import Stretches
from streamdsl.engine.index.pair_index import longer
from streamdsl.expr.table import Column, Rows, flatnonzero
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks

_LEAST: Final = 64


class WindowTable:
    """Windows `[le, re)` in slots: the code of the partition, the number of rows, and the emitted result."""

    def __init__(self) -> None:
        self.codes = GroupCodes()
        self.capacity = 0
        self.le: Ticks = np.empty(0, dtype=np.int64)
        self.re: Ticks = np.empty(0, dtype=np.int64)
        self.rows: Ticks = np.empty(0, dtype=np.int64)
        self.starting: Ticks = np.empty(0, dtype=np.int64)
        """The number of rows that start with the window, for frames that need it."""
        self.code: Rows = np.empty(0, dtype=np.intp)
        self.results = VersionedResults()
        self.states: list[Column] = []
        """The states of modules by window, a column for each; None if there is none."""
        self.totals = AccumulatorColumns(0)
        """The totals of the members of windows, where `has_totals` is set."""
        self.has_totals: NDArray[np.bool_] = np.empty(0, dtype=np.bool_)
        self._free: Rows = np.empty(0, dtype=np.intp)
        self._packing = Packing()
        self.index = SortedIndex()

    def __len__(self) -> int:
        return len(self.index)

    def make(self, codes: Rows, le: Ticks) -> Rows:
        """Return slots for new windows, without rows and without an end. They are not indexed yet."""
        if len(self._free) < len(le):
            self._grow(max(_LEAST, 2 * self.capacity, self.capacity + 2 * len(le)))
        slots, self._free = self._free[: len(le)], self._free[len(le) :]
        self.code[slots], self.le[slots], self.re[slots] = codes, le, MIN_TIME
        self.rows[slots] = self.starting[slots] = 0
        self.results.enter(slots, le, codes)
        return slots

    def make_one(self, code: int, le: int, re: int, number: int) -> int:
        """Return a slot for a single new window, which is indexed."""
        if not len(self._free):
            self._grow(max(_LEAST, 2 * self.capacity))
        slot = self._free.item(0)
        self._free = self._free[1:]
        self.code[slot], self.le[slot], self.re[slot] = code, le, re
        self.rows[slot] = self.starting[slot] = 0
        self.results.enter_one(slot, le, code)
        self.index.insert_one(number, slot)
        return slot

    def place(self, code: int, time: int) -> int:
        """Return the place of a single time that fits on the line of (code, time)."""
        return self._packing.number(code, time)

    def _grow(self, size: int) -> None:
        self._free = np.concatenate([self._free, np.arange(self.capacity, size)])
        columns = (self.le, self.re, self.rows, self.starting, self.code)
        self.le, self.re, self.rows, self.starting, self.code = (longer(column, size) for column in columns)
        self.results.grow(size)
        self.states = [np.concatenate([column, np.full(size - len(column), None)]) for column in self.states]
        self.totals.grow(size)
        self.has_totals = longer(self.has_totals, size)
        self.capacity = size

    def drop(self, slots: Rows) -> None:
        """Drop windows that are no longer indexed."""
        self.rows[slots] = 0
        self.results.clear(slots)
        self.results.leave(slots, self.le[slots], self.code[slots])
        self.forget_states(slots)
        self.release(slots)

    def release(self, slots: Rows) -> None:
        """Make slots available again."""
        self._free = np.concatenate([slots, self._free])

    def forget_states(self, slots: Rows) -> None:
        """Drop the states and totals of windows."""
        for column in self.states:
            column[slots] = None
        self.has_totals[slots] = False

    def stretches(self, codes: Rows, lo: Ticks, hi: Ticks) -> Stretches:
        """Return periods of partitions with their places."""
        ends = hi[hi != INFINITY]
        self.fit(int(lo.min()), max(int(lo.max()), int(ends.max(initial=MIN_TIME))))
        return Stretches(codes, lo, hi, self.places(codes, lo), self.places(codes, hi))

    def fit(self, low: int, high: int) -> bool:
        """Let all times between two have places, INFINITY has one always; say whether these are plain numbers."""
        high = low if high == INFINITY else high
        if not self._packing.fits(len(self.codes), low, high):
            self._repack(low, high)
        return not self._packing.is_wide

    def _repack(self, low: int, high: int) -> None:
        slots = self.index.all().slots
        if len(slots):
            ends = self.re[slots]
            low, high = (
                min(low, int(self.le[slots].min())),
                max(high, int(self.le[slots].max()), int(ends[ends != INFINITY].max(initial=high))),
            )
        self._packing.fit(len(self.codes), low, high)
        self.index.renumber(self.places(self.code[slots], self.le[slots]))

    def places(self, codes: Rows, times: Ticks) -> Column:
        """Return the places of times that lie in stretches, or in windows, on the line of (code, time)."""
        return self._packing.numbers(codes, times)

    def times(self, places: Column) -> Ticks:
        """Return the times of places that lie in stretches."""
        return self._packing.places(places)[1]

    def any_places(self, codes: Rows, times: Ticks) -> Column:
        """Return places of any times, which are right as far as stretches are compared with them."""
        return self._packing.clipped(codes, times)

    def portion(self, stretches: Stretches, margin: int = 0) -> Portion:
        """Return the entries of windows around stretches, with a margin of so many more."""
        return self.index.portion(stretches.low, stretches.high, margin)

    def put(self, portion: Portion, numbers: Column, slots: Rows) -> None:
        """Put windows, in order, in the place of a portion."""
        self.index.put(Portion(numbers, slots, _runs_of(portion, numbers), portion.pieces))

    def replace(self, portion: Portion, stretches: Stretches, low: Column, slots: Rows) -> None:
        """Put windows, in order, in the place of those that start in the stretches; all of these are in the portion."""
        stays = flatnonzero(~stretches.holds(portion.numbers))
        numbers = np.concatenate([portion.numbers[stays], low])
        order = np.argsort(numbers, kind="stable")
        self.put(portion, numbers[order], np.concatenate([portion.slots[stays], slots])[order])

    def all(self) -> Rows:
        """Return the slots of all windows, by partition and start."""
        return self.index.all().slots

    def keep(self, is_kept: Column) -> None:
        """Keep these windows of `all()`, and drop all others."""
        entries = self.index.all()
        gone = flatnonzero(~is_kept)
        self.index.put(entries.without(gone))
        self.drop(entries.slots[gone])


def _runs_of(portion: Portion, places: Column) -> Rows:
    """Return to which run of a portion each of some places belongs."""
    if len(portion.pieces) <= 1 or not len(portion.numbers):
        return np.zeros(len(places), dtype=np.intp)
    at = np.searchsorted(portion.numbers, places, side="right") - 1
    return portion.run[np.maximum(at, 0)]
