"""Periods of many rows at once: what they cover together, and what they leave uncovered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamdsl.engine.sorting import order_by
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.temporal.time import Ticks


class Patches(NamedTuple):
    """Stretches of the lifetimes of rows in some slots."""

    slots: Rows
    lo: Ticks
    hi: Ticks

    def take(self, rows: Rows) -> Patches:
        """Return these stretches."""
        return Patches(self.slots[rows], self.lo[rows], self.hi[rows])

    def and_also(self, others: Patches) -> Patches:
        """Return both."""
        return Patches(*map(np.concatenate, zip(self, others, strict=True)))

    def by_slot(self) -> Patches:
        """Return one stretch for each slot, that holds all of the slot's.

        >>> Patches(np.array([7, 3, 7]), np.array([2, 0, 8]), np.array([4, 1, 9])).by_slot()
        Patches(slots=array([3, 7]), lo=array([0, 2]), hi=array([1, 9]))
        """
        order = order_by([self.slots])
        if order is None:
            return self
        slots, lo, hi = self.take(order)
        first = flatnonzero(np.concatenate([[True], slots[1:] != slots[:-1]]))
        return Patches(slots[first], np.minimum.reduceat(lo, first), np.maximum.reduceat(hi, first))


class Periods(NamedTuple):
    """Periods inside stretches: the number of the stretch, LE and RE."""

    at: Rows
    le: Ticks
    re: Ticks

    def merged(self) -> Periods:
        """Return the maximal periods that they cover together, in order.

        >>> Periods(np.array([1, 0, 0, 0]), np.array([5, 4, 1, 9]), np.array([6, 7, 4, 10])).merged()
        Periods(at=array([0, 0, 1]), le=array([1, 9, 5]), re=array([ 7, 10,  6]))
        """
        order = order_by([self.at, self.le])
        at, le, re = self if order is None else (self.at[order], self.le[order], self.re[order])
        if not len(at):
            return self
        latest = _latest(at, re)
        first = flatnonzero(np.concatenate([[True], (at[1:] != at[:-1]) | (le[1:] > latest[:-1])]))
        last = np.append(first[1:], len(at)) - 1
        return Periods(at[first], le[first], latest[last])

    def gaps(self, stretches: Patches) -> Periods:
        """Return what of the stretches these periods, which are merged, leave uncovered, in order.

        >>> stretches = Patches(np.array([70, 30]), np.array([0, 5]), np.array([9, 8]))
        >>> Periods(np.array([0, 0]), np.array([0, 4]), np.array([2, 5])).gaps(stretches)
        Periods(at=array([0, 0, 1]), le=array([2, 5, 5]), re=array([4, 9, 8]))
        """
        every = np.arange(len(stretches.slots))
        begins = np.argsort(np.concatenate([every, self.at]), kind="stable")
        ends = np.argsort(np.concatenate([self.at, every]), kind="stable")
        le = np.concatenate([stretches.lo, self.re])[begins]
        re = np.concatenate([self.le, stretches.hi])[ends]
        kept = flatnonzero(le < re)
        return Periods(np.concatenate([every, self.at])[begins][kept], le[kept], re[kept])


def _latest(at: Rows, re: Ticks) -> Ticks:
    """Return the latest RE so far of each stretch: of ranks, as only these can be put below the number of the stretch."""
    order = order_by([re])
    if order is None:
        return re
    ranks = np.empty(len(re), dtype=np.int64)
    ranks[order] = np.arange(len(re))
    so_far = np.maximum.accumulate(at * len(re) + ranks) - at * len(re)
    latest: Ticks = re[order][so_far]
    return latest
