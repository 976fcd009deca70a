"""Cells: the open windows of every group that have rows, with their sums and with the results that are out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.columnar.results import Results
from streamdsl.engine.columnar.slots import SlotTable
from streamdsl.engine.index.pair_index import longer
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.temporal.time import Ticks


class Cells(SlotTable):
    """Slots of open windows, and their results.

    The version of a result says how often it has come back after a retraction. Those of windows that have lost all rows are kept
    until the window closes, so that no version comes twice.

    >>> cells = Cells()
    >>> slot = cells.find(np.array([7]), np.array([20]))
    >>> cells.retracted(slot).tolist(), cells.versions(slot).tolist()
    ([0], [1])
    >>> cells.empty(slot)
    >>> cells.versions(cells.find(np.array([7]), np.array([20]))).tolist()
    [1]
    """

    def __init__(self) -> None:
        self.results = Results()
        self._versions: NDArray[np.int32] | None = None
        self._emptied: dict[int, dict[int, int]] = {}
        super().__init__()

    def grow(self, size: int) -> None:
        self.results.grow(size)
        if self._versions is not None:
            self._versions = longer(self._versions, size)
        super().grow(size)

    def made(self, slots: Rows) -> None:
        super().made(slots)
        if self._versions is None or not self._emptied:
            return
        for slot, number, group in zip(slots.tolist(), self.number[slots].tolist(), self.group[slots].tolist(), strict=True):
            self._versions[slot] = self._emptied.get(number, {}).pop(group, 0)

    def made_one(self, slot: int, number: int, group: int) -> None:
        super().made_one(slot, number, group)
        if self._versions is not None and self._emptied:
            self._versions[slot] = self._emptied.get(number, {}).pop(group, 0)

    def release(self, slots: Rows) -> None:
        super().release(slots)
        self.results.clear(slots)
        if self._versions is not None:
            self._versions[slots] = 0

    def versions(self, slots: Rows) -> Ticks:
        """Return the versions of results that are out, or are to go out."""
        return np.zeros(len(slots), dtype=np.int64) if self._versions is None else self._versions[slots].astype(np.int64)

    def retracted(self, slots: Rows) -> Ticks:
        """Return the versions of results that go; the next ones will follow them."""
        if self._versions is None:
            self._versions = np.zeros(self.size, dtype=np.int32)
        versions = self.versions(slots)
        self._versions[slots] += 1
        return versions

    def version(self, slot: int) -> int:
        """Return what `versions` does, for a single slot."""
        return 0 if self._versions is None else self._versions.item(slot)

    def retract(self, slot: int) -> int:
        """Return what `retracted` does, for a single slot."""
        if self._versions is None:
            self._versions = np.zeros(self.size, dtype=np.int32)
        version = self._versions.item(slot)
        self._versions[slot] = version + 1
        return version

    def empty(self, slots: Rows) -> None:
        """Let go windows that have no rows left."""
        if self._versions is not None:
            for slot in slots[flatnonzero(self._versions[slots])].tolist():
                emptied = self._emptied.setdefault(self.number.item(slot), {})
                emptied[self.group.item(slot)] = self._versions.item(slot)
        self.drop(slots)

    def held_groups(self) -> Iterator[int]:
        """Return the groups of open windows, also of those that have lost all rows: they may come back."""
        return chain(self.group[self.slots()].tolist(), *self._emptied.values())

    def last(self) -> int | None:
        last = super().last()
        return max([*self._emptied, *([] if last is None else [last])], default=None)

    def pop_until(self, last: int) -> Rows:
        for number in [number for number in self._emptied if number <= last]:
            del self._emptied[number]
        return super().pop_until(last)
