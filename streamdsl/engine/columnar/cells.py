"""Cells: the open windows of every group that have rows, with their totals and emitted results."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from streamdsl.engine.columnar.slots import SlotTable
from streamdsl.engine.columnar.versioned import VersionedResults
from streamdsl.expr.table import Rows


class Cells(SlotTable):
    """Slots of open windows, with the result that has been emitted for each.

    Versions of windows that have lost all rows are kept until the window closes.


    >>> import numpy as np
    >>> cells = Cells()
    >>> slot = cells.find(np.array([7]), np.array([20]))
    >>> cells.results.retracted(slot).tolist(), cells.results.versions(slot).tolist()
    ([0], [1])
    >>> cells.empty(slot)
    >>> cells.results.versions(cells.find(np.array([7]), np.array([20]))).tolist()
    [1]
    """

    def __init__(self) -> None:
        self.results = VersionedResults()
        super().__init__()

    def grow(self, size: int) -> None:
        self.results.grow(size)
        super().grow(size)

    def made(self, slots: Rows) -> None:
        super().made(slots)
        self.results.enter(slots, self.number[slots], self.group[slots])

    def made_one(self, slot: int, number: int, group: int) -> None:
        super().made_one(slot, number, group)
        self.results.enter_one(slot, number, group)

    def release(self, slots: Rows) -> None:
        super().release(slots)
        self.results.clear(slots)

    def empty(self, slots: Rows) -> None:
        """Drop windows that have no rows left, but keep their versions."""
        self.results.leave(slots, self.number[slots], self.group[slots])
        self.drop(slots)

    def held_groups(self) -> Iterator[int]:
        """Return the groups of open windows, also of those that have lost all rows: they may come back."""
        return chain(self.group[self.slots()].tolist(), self.results.groups_of_gone.tolist())

    def last(self) -> int | None:
        last, gone = super().last(), self.results.last_gone
        return gone if last is None else last if gone is None else max(last, gone)

    def pop_until(self, last: int) -> Rows:
        self.results.forget(last + 1)
        return super().pop_until(last)
