"""Pending window deltas: the windows that are not open yet, as differences from one to the next, by group."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import numpy as np

from streamdsl.engine.columnar.accumulator_columns import AccumulatorColumns, RowParts
from streamdsl.engine.columnar.grid_numbers import ENDLESS
from streamdsl.engine.columnar.pending import Pending
from streamdsl.engine.columnar.slots import SlotTable
from streamdsl.engine.columnar.terms import ROWS
from streamdsl.engine.window_budget import WindowBudget
from streamdsl.expr.table import flatnonzero
from streamdsl.temporal.time import MIN_TIME, Ticks


class Opened(NamedTuple):
    """Windows that have opened, with the groups that have rows in them, and their totals."""

    numbers: Ticks
    groups: Ticks
    totals: AccumulatorColumns


class PendingWindowDeltas:
    """For each window that is not open yet, what it adds to the totals of the one before.

    `running` are the totals of the last open one.

    A row has two deltas however many windows it is in, and a row without end has one. Windows without a delta take no space.
    """

    def __init__(self) -> None:
        self.deltas = SlotTable()
        self.running = SlotTable()
        self._used = False
        self.next = MIN_TIME
        """The number of the first window that is not open yet."""

    def __len__(self) -> int:
        return len(self.deltas)

    @property
    def is_empty(self) -> bool:
        """Whether there are no rows."""
        return not self._used or (self.deltas.is_empty and self.running.is_empty)

    def add(self, rows: Pending) -> None:
        """Add rows at their first window, and subtract them after their last. Deltas that become zero are dropped."""
        self._used = True
        groups, lo, hi, terms = rows.groups, rows.lo, rows.hi, rows.terms
        starting = self.deltas.find(lo, groups)
        self.deltas.totals.add(starting, terms)
        ends = flatnonzero(hi != ENDLESS)
        ending = self.deltas.find(hi[ends], groups[ends])
        self.deltas.totals.add(ending, -terms.take(ends))
        slots = self.deltas.each_once([starting, ending])
        self.deltas.drop(slots[self.deltas.totals.are_zero(slots)])

    def opens_nothing(self, last: int) -> bool:
        """Say whether opening the windows up to number `last` yields none with rows; if so, they are opened."""
        if last >= self.next:
            if not self.is_empty:
                return False
            self.next = last + 1
        return True

    def add_one(self, windows: range, group: int, parts: RowParts, sign: int, reals: AbstractSet[int]) -> None:
        """Do what `add` does, for a single row that enters (1) or leaves (-1) windows."""
        self._used = True
        totals = self.deltas.totals
        totals.count_reals(reals)
        for number, signed in ((windows.start, sign), (windows.stop, -sign)):
            slot = self.deltas.find_one(number, group)
            if not totals.add_row(parts, slot, signed):
                slots = np.array([slot])
                self.deltas.drop(slots[totals.are_zero(slots)])

    def open(self, last: int, budget: WindowBudget) -> Iterator[Opened]:
        """Open the windows up to number `last`, and yield those with rows, range by range, as far as the budget allows."""
        while True:
            first = self.deltas.first()
            stop = last + 1 if first is None else min(first, last + 1)
            if len(self.running) and self.next < stop:
                budget.take((stop - self.next) * len(self.running))
                yield self._stretch(stop)
            self.next = max(self.next, stop)
            if first is None or first > last:
                return
            self._turn(first)

    def _stretch(self, stop: int) -> Opened:
        """Return the windows before `stop`, up to which there is no delta: all have the running totals."""
        slots = self.running.slots()
        numbers = np.arange(self.next, stop)
        positions = np.tile(slots, len(numbers))
        return Opened(np.repeat(numbers, len(slots)), self.running.group[positions], self.running.totals.take(positions))

    def _turn(self, number: int) -> None:
        """Add the deltas of the next window to the running totals."""
        deltas = self.deltas.pop_until(number)
        running = self.running.find(np.zeros(len(deltas), dtype=np.int64), self.deltas.group[deltas])
        self.running.totals.merge(running, self.deltas.totals.take(deltas))
        self.deltas.release(deltas)
        self.running.drop(running[self.running.totals.counts(ROWS)[running] == 0])
