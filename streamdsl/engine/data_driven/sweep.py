"""A sweep: a portion of the boundaries, changed by the endpoints of a batch and by the high water."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.data_driven.boundaries import Boundaries
from streamdsl.engine.data_driven.endpoints import Deltas
from streamdsl.engine.data_driven.sorted_index import Portion
from streamdsl.engine.pairs import spread
from streamdsl.expr.table import Column, Rows, flatnonzero
from streamdsl.temporal.time import INFINITY, Ticks


class SweptWindows(NamedTuple):
    """The windows of a portion, and which of them have another end than before."""

    le: Ticks
    re: Ticks
    moved: NDArray[np.bool_]


class Sweep:
    """The steps of a change. Windows that start by `before` have totals, and those that start by `high_water` get them.

    `summed` says which windows of the portion have other totals than before; it is valid from `add_late` on.
    """

    def __init__(self, boundaries: Boundaries, portion: Portion, before: int, high_water: int, alone: bool) -> None:
        self.boundaries = boundaries
        self.portion = portion
        self.before = before
        self.high_water = high_water
        self.alone = alone
        self.summed = np.zeros(0, dtype=np.bool_)

    def place(self, deltas: Deltas) -> tuple[Rows, Rows]:
        """Create the missing boundaries; return the indices of deltas that have one, and their slots."""
        at, slots = self._look_up(deltas.numbers)
        fresh = flatnonzero((slots < 0) & (deltas.endpoints > 0) & (deltas.times != INFINITY))
        slots[fresh] = made = self.boundaries.make(deltas.codes[fresh], deltas.times[fresh])
        self.portion = self.portion.insert(at[fresh], deltas.numbers[fresh], made)
        if len(fresh) and int(deltas.times[fresh].min()) <= self.before:
            self._inherit(fresh[deltas.times[fresh] <= self.before], deltas, slots)
        placed = fresh if len(fresh) == len(slots) else flatnonzero(slots >= 0)
        return placed, slots[placed]

    def _look_up(self, numbers: Column) -> tuple[Rows, Rows]:
        """Return the position of each number in the portion, and its slot, -1 where there is none."""
        slots = np.full(len(numbers), -1, dtype=np.intp)
        if not len(self.portion.slots):
            return np.zeros(len(numbers), dtype=np.intp), slots
        at = np.searchsorted(self.portion.numbers, numbers)
        known = flatnonzero(self.portion.numbers.take(at, mode="clip") == numbers)
        slots[known] = self.portion.slots[at[known]]
        return at, slots

    def _inherit(self, fresh: Rows, deltas: Deltas, slots: Rows) -> None:
        """Copy the totals of open windows to new boundaries inside of them."""
        is_old = np.ones(len(self.portion.slots), dtype=np.bool_)
        at = np.searchsorted(self.portion.numbers, deltas.numbers[fresh])
        all_fresh = np.searchsorted(self.portion.numbers, deltas.numbers[slots >= 0])
        is_old[all_fresh[self.boundaries.endpoints[slots[slots >= 0]] == 0]] = False
        latest = np.maximum.accumulate(np.where(is_old, np.arange(len(is_old)), -1))[at]
        has = flatnonzero(latest >= 0)
        has = has[self._are_together(latest[has], at[has])]
        self.boundaries.totals.copy(self.portion.slots[at[has]], self.portion.slots[latest[has]])

    def _are_together(self, left: Rows, right: Rows) -> NDArray[np.bool_]:
        """Say which positions are in one run, and of one group."""
        code, slots, run = self.boundaries.code, self.portion.slots, self.portion.run
        together: NDArray[np.bool_] = (run[left] == run[right]) & (code[slots[left]] == code[slots[right]])
        return together

    def count(self, slots: Rows, endpoints: Ticks, numbers: Column) -> Rows:
        """Update the numbers of endpoints; remove boundaries that have none left from the portion, and return them."""
        self.boundaries.endpoints[slots] += endpoints
        bare = flatnonzero(self.boundaries.endpoints[slots] == 0)
        self.portion = self.portion.without(np.searchsorted(self.portion.numbers, numbers[bare]))
        return slots[bare]

    def add_late(self, deltas: Deltas, late: Rows, limits: Column) -> None:
        """Add what late rows add to the windows that are open; `late` are the stretches that have such rows."""
        self.summed = np.zeros(len(self.portion.slots), dtype=np.bool_)
        if not len(late):
            return
        deltas.totals.cumulate()
        starts = np.searchsorted(self.portion.numbers, deltas.numbers[late])
        stops = np.searchsorted(self.portion.numbers, deltas.numbers[late + 1])
        stops = np.minimum(stops, np.searchsorted(self.portion.numbers, limits, side="right"))
        rows, at = spread(starts, stops)
        self.boundaries.totals.merge(self.portion.slots[at], deltas.totals.take(late[rows]))
        self.summed[at] = True

    def finish(self, is_last: bool) -> SweptWindows:
        """Open windows, and set the end of each to the start of the next. `is_last`: nothing is after the portion."""
        slots = self.portion.slots
        if not len(self.summed):
            self.summed = np.zeros(len(slots), dtype=np.bool_)
        le, before = self.boundaries.le[slots], self.boundaries.re[slots]
        follows = self._follow(slots)
        if self.before < self.high_water:
            self._open(le, follows)
        re = np.full(len(slots), INFINITY, dtype=np.int64)
        np.copyto(re[:-1], le[1:], where=follows[1:])
        runs = self.portion.run
        if len(self.portion.pieces) > 1:
            cuts = flatnonzero(runs[1:] != runs[:-1])
            re[cuts] = before[cuts]
        if len(slots) and not is_last:
            re[-1] = before[-1]
        self.boundaries.re[slots] = re
        return SweptWindows(le, re, re != before)

    def _follow(self, slots: Rows) -> NDArray[np.bool_]:
        """Say which boundaries are right after the one before them, in one group."""
        follows = np.ones(len(slots), dtype=np.bool_)
        follows[:1] = False
        if len(self.portion.pieces) > 1:
            follows[1:] &= self.portion.run[1:] == self.portion.run[:-1]
        if not self.alone:
            code = self.boundaries.code[slots]
            follows[1:] &= code[1:] == code[:-1]
        return follows

    def _open(self, le: Ticks, follows: NDArray[np.bool_]) -> None:
        """Give totals to the windows that the high water reaches."""
        is_opened = (le > self.before) & (le <= self.high_water)
        at = flatnonzero(is_opened)
        if not len(at):
            return
        is_start = ~follows
        is_start[1:] |= ~is_opened[:-1]
        starts = flatnonzero(is_start[at])
        slots, first = self.portion.slots, at[starts]
        based = first[follows[first]]
        self.boundaries.totals.add_from(slots[based], slots[based - 1])
        self.boundaries.totals.run_up(slots[at], starts)
        self.summed |= is_opened
