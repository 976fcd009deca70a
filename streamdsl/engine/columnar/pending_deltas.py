"""The delta ring: windows that are not open yet, as what begins and what ends with each of them (sparse, by group)."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import numpy as np

from streamdsl.engine.columnar.accumulator_columns import AccumulatorColumns, RowParts
from streamdsl.engine.columnar.numbers import ENDLESS
from streamdsl.engine.columnar.pending import Pending
from streamdsl.engine.columnar.slots import SlotTable
from streamdsl.engine.columnar.terms import ROWS
from streamdsl.engine.window_budget import WindowBudget
from streamdsl.expr.table import flatnonzero
from streamdsl.temporal.time import MIN_TIME, Ticks


class Opened(NamedTuple):
    """Windows that open, with the groups that have rows in them, and their sums."""

    numbers: Ticks
    groups: Ticks
    totals: AccumulatorColumns


class PendingWindowDeltas:
    """What every window adds to, or takes out of, the one before it; `running` are the sums of the last that is open.

    A row costs two deltas however many windows it is in, and one without end costs one.
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
        """Whether it holds no row."""
        return not self._used or (self.deltas.is_empty and self.running.is_empty)

    def add(self, rows: Pending) -> None:
        """Add rows where their windows begin, and take them out where these end (if they do): deltas that cancel are gone."""
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
        """Say whether windows up to number `last` open without a row that is here; if so, they are open."""
        if last >= self.next:
            if not self.is_empty:
                return False
            self.next = last + 1
        return True

    def add_one(self, windows: range, group: int, parts: RowParts, sign: int, reals: AbstractSet[int]) -> None:
        """Do as `add`, for a single row that enters windows (`sign` is 1) or leaves them (-1)."""
        self._used = True
        totals = self.deltas.totals
        totals.count_reals(reals)
        for number, signed in ((windows.start, sign), (windows.stop, -sign)):
            slot = self.deltas.find_one(number, group)
            if not totals.add_row(parts, slot, signed):
                slots = np.array([slot])
                self.deltas.drop(slots[totals.are_zero(slots)])

    def open(self, last: int, budget: WindowBudget) -> Iterator[Opened]:
        """Open the windows up to number `last`, and yield those that are not empty, stretch by stretch, while there is room."""
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
        """Return the windows up to `stop`, between deltas: all have the running sums."""
        slots = self.running.slots()
        numbers = np.arange(self.next, stop)
        positions = np.tile(slots, len(numbers))
        return Opened(np.repeat(numbers, len(slots)), self.running.group[positions], self.running.totals.take(positions))

    def _turn(self, number: int) -> None:
        """Add the deltas of the next window to the running sums."""
        deltas = self.deltas.pop_until(number)
        running = self.running.find(np.zeros(len(deltas), dtype=np.int64), self.deltas.group[deltas])
        self.running.totals.merge(running, self.deltas.totals.take(deltas))
        self.deltas.release(deltas)
        self.running.drop(running[self.running.totals.counts(ROWS)[running] == 0])
