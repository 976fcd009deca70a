"""Slots: lanes by window number and group, made when they are first written and used again once dropped."""

from __future__ import annotations

import heapq
from itertools import repeat
from typing import Any, Final

import numpy as np

from streamdsl.engine.columnar.lanes import Lanes
from streamdsl.expr.table import Column, Rows
from streamdsl.temporal.time import Ticks

_NONE: Final[dict[Any, int]] = {}


class SlotTable:
    """A slot for each window number and group that is in use; `number` and `group` say whose it is.

    >>> table = SlotTable()
    >>> groups = np.array(["a", "b", "a"], dtype=object)
    >>> slots = table.find(np.array([7, 7, 8]), groups)
    >>> len(table), table.find(np.array([7]), groups[1:2]).tolist() == [slots[1]]
    (3, True)
    >>> table.drop(slots[:2])
    >>> table.first(), len(table)
    (8, 1)
    """

    def __init__(self) -> None:
        self.lanes = Lanes(0)
        self.number: Ticks = np.empty(0, dtype=np.int64)
        self.group: Column = np.empty(0, dtype=object)
        self._index: dict[int, dict[Any, int]] = {}
        self._order: list[int] = []
        self._free: Rows = np.empty(0, dtype=np.intp)
        self._n_free = 0

    def __len__(self) -> int:
        return self.lanes.size - self._n_free

    def find(self, numbers: Ticks, groups: Column) -> Rows:
        """Return the slot of each window number and group, made if there is none; no two pairs may be equal. O(1) each."""
        slots = self._known(numbers, groups)
        missing = np.flatnonzero(slots < 0)
        if len(missing):
            slots[missing] = self.make(numbers[missing], groups[missing])
        return slots

    def _known(self, numbers: Ticks, groups: Column) -> Rows:
        """Return the slots, -1 where there is none."""
        order, runs = _runs(numbers)
        if 4 * len(runs) > len(numbers):
            index = self._index
            pairs = zip(numbers.tolist(), groups.tolist(), strict=True)
            return np.array([index[number].get(group, -1) if number in index else -1 for number, group in pairs], dtype=np.intp)
        slots = np.empty(len(numbers), dtype=np.intp)
        for number, start, stop in runs:
            at = order[start:stop]
            known = self._index.get(number, _NONE)
            slots[at] = np.fromiter(map(known.get, groups[at].tolist(), repeat(-1)), dtype=np.intp, count=stop - start)
        return slots

    def make(self, numbers: Ticks, groups: Column) -> Rows:
        """Return a slot for each window number and group, of which none may have one yet. O(1) each."""
        slots = self._take(len(numbers))
        self.number[slots] = numbers
        self.group[slots] = groups
        order, runs = _runs(numbers)
        for number, start, stop in runs:
            if number not in self._index:
                self._index[number] = {}
                heapq.heappush(self._order, number)
            at = order[start:stop]
            self._index[number].update(zip(groups[at].tolist(), slots[at].tolist(), strict=True))
        return slots

    def _take(self, n: int) -> Rows:
        while self._n_free < n:
            self.grow(max(64, 2 * self.lanes.size))
        self._n_free -= n
        return self._free[self._n_free : self._n_free + n].copy()

    def grow(self, size: int) -> None:
        """Make room for `size` slots."""
        added = np.arange(size - 1, self.lanes.size - 1, -1, dtype=np.intp)
        self._free = np.concatenate([self._free[: self._n_free], added, np.empty(self.lanes.size - self._n_free, dtype=np.intp)])
        self._n_free += len(added)
        self.number = np.concatenate([self.number, np.empty(len(added), dtype=np.int64)])
        self.group = np.concatenate([self.group, np.empty(len(added), dtype=object)])
        self.lanes.grow(size)

    def drop(self, slots: Rows) -> None:
        """Let slots go; they can then be used again."""
        for number, group in zip(self.number[slots].tolist(), self.group[slots].tolist(), strict=True):
            del self._index[number][group]
        self.release(slots)

    def release(self, slots: Rows) -> None:
        """Clear slots that are no longer in the index."""
        if len(slots):
            self.lanes.clear(slots)
            self.group[slots] = None
            self._free[self._n_free : self._n_free + len(slots)] = slots
            self._n_free += len(slots)

    def first(self) -> int | None:
        """Return the smallest window number in use, None if there is none. O(1) amortised."""
        while self._order and not self._index[self._order[0]]:
            del self._index[heapq.heappop(self._order)]
        return self._order[0] if self._order else None

    def pop_until(self, last: int) -> Rows:
        """Take the slots with window numbers up to `last` out of the index and return them, still filled."""
        found: list[int] = []
        while self._order and self._order[0] <= last:
            found += self._index.pop(heapq.heappop(self._order)).values()
        return np.array(found, dtype=np.intp)

    def slots(self) -> Rows:
        """Return all slots in use."""
        return np.array([slot for slots in self._index.values() for slot in slots.values()], dtype=np.intp)

    @property
    def nbytes(self) -> int:
        """The memory of the arrays."""
        return self.lanes.nbytes + self.number.nbytes + self.group.nbytes + self._free.nbytes


def _runs(numbers: Ticks) -> tuple[Rows, list[tuple[int, int, int]]]:
    """Return an order in which equal numbers stand together, and each number with where its run begins and ends."""
    order = np.arange(len(numbers)) if (numbers[1:] >= numbers[:-1]).all() else np.argsort(numbers)
    ordered = numbers[order]
    starts = np.flatnonzero(np.concatenate([np.ones(min(1, len(ordered)), dtype=np.bool_), ordered[1:] != ordered[:-1]]))
    return order, list(zip(ordered[starts].tolist(), starts.tolist(), [*starts[1:].tolist(), len(ordered)], strict=False))
