"""A table of totals by window number and group. Slots are made when first needed, and used again once dropped."""

from __future__ import annotations

import heapq
from typing import Final

import numpy as np

from streamdsl.engine.columnar.accumulator_columns import AccumulatorColumns
from streamdsl.engine.index.pair_index import PairIndex, Places
from streamdsl.engine.pairs import run_starts
from streamdsl.engine.sorting import order_by, stable_order
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.temporal.time import Ticks

_NONE: Final[Rows] = np.empty(0, dtype=np.intp)


class SlotTable(PairIndex):
    """A slot with totals for each pair of a window number and a group in use. Slots are indexed by window number too.

    >>> table = SlotTable()
    >>> slots = table.find(np.array([7, 7, 8]), np.array([30, 20, 30]))
    >>> table.drop(slots[:2])
    >>> table.first(), len(table)
    (8, 1)
    """

    def __init__(self) -> None:
        self.totals = AccumulatorColumns(0)
        self._made: dict[int, list[Places]] = {}
        self._counts: dict[int, int] = {}
        self._order: list[int] = []
        super().__init__()

    def grow(self, size: int) -> None:
        super().grow(size)
        self.totals.grow(size)

    def made(self, slots: Rows) -> None:
        for number, start, stop, order in _runs(self.number[slots]):
            self._note(number, slots[order[start:stop]])

    def made_one(self, slot: int, number: int, group: int) -> None:
        self._note(number, np.array([slot]))

    def release(self, slots: Rows) -> None:
        super().release(slots)
        if len(slots):
            self.totals.clear(slots)

    def _note(self, number: int, slots: Rows) -> None:
        """Index slots by a window number."""
        if number not in self._counts:
            heapq.heappush(self._order, number)
            self._counts[number] = 0
            self._made[number] = []
        self._counts[number] += len(slots)
        made = self._made[number]
        made.append(slots.astype(np.int32))
        while len(made) > 1 and 2 * len(made[-1]) > len(made[-2]):
            made.append(np.concatenate([made.pop(), made.pop()]))

    def drop(self, slots: Rows) -> None:
        """Drop slots; they are used again."""
        if not len(slots):
            return
        for number, start, stop, _ in _runs(self.number[slots]):
            self._counts[number] -= stop - start
        self.release(slots)

    def first(self) -> int | None:
        """Return the smallest window number in use, None if there is none. O(1) amortised."""
        while self._order and not self._counts[self._order[0]]:
            number = heapq.heappop(self._order)
            del self._counts[number], self._made[number]
        return self._order[0] if self._order else None

    def last(self) -> int | None:
        """Return the largest window number that is, or has been, in use, None if there is none."""
        return max(self._counts, default=None)

    def until(self, last: int) -> Rows:
        """Return the slots with window numbers up to `last`, by window number and group. O(slots) if there is such a number."""
        if not self._order or self._order[0] > last:
            return _NONE
        slots = self.slots()
        slots = slots[flatnonzero(self.number[slots] <= last)]
        order = order_by([self.number[slots], self.group[slots]])
        return slots if order is None else slots[order]

    def between(self, first: int, last: int) -> Rows:
        """Return the slots with window numbers from `first` to `last`."""
        found = [self._alive(self._made[number], number) for number in self._made if first <= number <= last]
        return np.concatenate(found) if found else _NONE

    def pop_until(self, last: int) -> Rows:
        """Remove the window numbers up to `last` from the index, and return their slots, which the caller must release."""
        found = [_NONE]
        while self._order and self._order[0] <= last:
            number = heapq.heappop(self._order)
            del self._counts[number]
            found.append(self._alive(self._made.pop(number), number))
        return np.concatenate(found) if len(found) > 1 else _NONE

    def _alive(self, made: list[Places], number: int) -> Rows:
        """Return the slots that were made for a window number and still belong to it, each once."""
        slots = np.concatenate(made).astype(np.intp)
        mine = slots[flatnonzero((self.number[slots] == number) & (self._places[slots] >= 0))]
        return self.each_once([mine])


def _runs(numbers: Ticks) -> list[tuple[int, int, int, Rows]]:
    """Return each number with where it begins and ends in an order in which equal ones stand together, and the order."""
    order = np.arange(len(numbers)) if (numbers[1:] >= numbers[:-1]).all() else stable_order(numbers)
    ordered = numbers[order]
    starts = run_starts(ordered).tolist()
    return [(int(ordered[a]), a, b, order) for a, b in zip(starts, [*starts[1:], len(ordered)], strict=False)]
