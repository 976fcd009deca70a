"""The delta ring: windows that are not open yet, as what begins and what ends with each of them (sparse, by group)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from streamdsl.engine.columnar.combine import Combined
from streamdsl.engine.columnar.lanes import ROWS, Lanes
from streamdsl.engine.columnar.slots import SlotTable
from streamdsl.expr.table import Column, Rows
from streamdsl.temporal.time import MIN_TIME, Ticks


class Opened(NamedTuple):
    """Windows that open, with the groups that have rows in them; their sums are those at `positions` of `lanes`."""

    numbers: Ticks
    groups: Column
    lanes: Lanes
    positions: Rows


class DeltaRing:
    """What every window adds to, or takes out of, the one before it; `running` are the sums of the last that is open.

    A row costs two deltas however many windows it is in, and one without end costs one.
    """

    def __init__(self) -> None:
        self.deltas = SlotTable()
        self.running = SlotTable()
        self.next = MIN_TIME
        """The number of the first window that is not open yet."""

    def __len__(self) -> int:
        return len(self.deltas)

    @property
    def nbytes(self) -> int:
        """The memory of the arrays."""
        return self.deltas.nbytes + self.running.nbytes

    def add(self, combined: Combined, groups: Column) -> None:
        """Add deltas at windows that are not open yet; those that cancel are gone."""
        slots = self.deltas.find(combined.numbers, groups[combined.codes])
        self.deltas.lanes.merge(slots, combined.lanes, combined.positions)
        self.deltas.drop(slots[self.deltas.lanes.are_zero(slots)])

    def open(self, last: int) -> Iterator[Opened]:
        """Open the windows up to number `last`, and yield those that are not empty, stretch by stretch."""
        while True:
            first = self.deltas.first()
            stop = last + 1 if first is None else min(first, last + 1)
            if len(self.running) and self.next < stop:
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
        return Opened(np.repeat(numbers, len(slots)), self.running.group[positions], self.running.lanes, positions)

    def _turn(self, number: int) -> None:
        """Add the deltas of the next window to the running sums."""
        deltas = self.deltas.pop_until(number)
        running = self.running.find(np.zeros(len(deltas), dtype=np.int64), self.deltas.group[deltas])
        self.running.lanes.merge(running, self.deltas.lanes, deltas)
        self.deltas.release(deltas)
        self.running.drop(running[self.running.lanes.counts(ROWS)[running] == 0])
