"""Periods of many rows at once: what they cover together, and what they leave uncovered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamdsl.engine.pairs import run_starts
from streamdsl.engine.sorted.overlap import Probe
from streamdsl.engine.sorting import order_by
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks


class Patches(NamedTuple):
    """Stretches of time, each of an owner: the slot of a row whose lifetime it is of, or the number of a key."""

    owners: Rows
    lo: Ticks
    hi: Ticks

    def take(self, rows: Rows) -> Patches:
        """Return these stretches."""
        return Patches(self.owners[rows], self.lo[rows], self.hi[rows])

    def and_also(self, others: Patches) -> Patches:
        """Return both."""
        return Patches(*map(np.concatenate, zip(self, others, strict=True)))

    def by_owner(self) -> Patches:
        """Return one stretch for each owner, that holds all of the owner's.

        >>> Patches(np.array([7, 3, 7]), np.array([2, 0, 8]), np.array([4, 1, 9])).by_owner()
        Patches(owners=array([3, 7]), lo=array([0, 2]), hi=array([1, 9]))
        """
        order = order_by([self.owners])
        if order is None:
            return self
        owners, lo, hi = self.take(order)
        first = run_starts(owners)
        return Patches(owners[first], np.minimum.reduceat(lo, first), np.maximum.reduceat(hi, first))


class Periods(NamedTuple):
    """Periods inside stretches: the number of the stretch, LE and RE."""

    at: Rows
    le: Ticks
    re: Ticks

    def take(self, rows: Rows) -> Periods:
        """Return these periods."""
        return Periods(self.at[rows], self.le[rows], self.re[rows])

    def and_also(self, others: Periods) -> Periods:
        """Return both."""
        return Periods(*map(np.concatenate, zip(self, others, strict=True)))

    def inside(self, stretches: Patches) -> Periods:
        """Return what of these periods, all of which overlap their stretches, is inside of these."""
        return Periods(self.at, np.maximum(self.le, stretches.lo[self.at]), np.minimum(self.re, stretches.hi[self.at]))

    def outside(self, stretches: Patches) -> Periods:
        """Return what of these periods is outside of their stretches.

        >>> Periods(np.array([0]), np.array([1]), np.array([9])).outside(Patches(np.array([70]), np.array([4]), np.array([6])))
        Periods(at=array([0, 0]), le=array([1, 6]), re=array([4, 9]))
        """
        before = self._replace(re=np.minimum(self.re, stretches.lo[self.at]))
        after = self._replace(le=np.maximum(self.le, stretches.hi[self.at]))
        beside = before.and_also(after)
        return beside.take(flatnonzero(beside.le < beside.re))

    def in_both(self, others: Periods) -> tuple[Rows, Rows]:
        """Return which of these begin as one of the others of their stretch does, and which of those do; none begin alike.

        >>> two, one = Patches(np.array([0, 1]), np.array([1, 1]), np.array([2, 2])), Patches(*np.array([[1], [1], [7]]))
        >>> Periods(*two).in_both(Periods(*one))
        (array([1]), array([0]))
        """
        both = self.and_also(others)
        order = order_by([both.at, both.le])
        if order is None:
            order = np.arange(len(both.at))
        at, le = both.at[order], both.le[order]
        same = flatnonzero((at[1:] == at[:-1]) & (le[1:] == le[:-1]))
        return order[same], order[same + 1] - len(self.at)

    def merged(self) -> Periods:
        """Return the maximal periods that they cover together, in order.

        >>> Periods(np.array([1, 0, 0, 0]), np.array([5, 4, 1, 9]), np.array([6, 7, 4, 10])).merged()
        Periods(at=array([0, 0, 1]), le=array([1, 9, 5]), re=array([ 7, 10,  6]))
        """
        order = order_by([self.at, self.le])
        at, le, re = self if order is None else (self.at[order], self.le[order], self.re[order])
        if not len(at):
            return self
        latest = re if len(at) == 1 else _latest(at, re)
        first = flatnonzero(np.concatenate([[True], (at[1:] != at[:-1]) | (le[1:] > latest[:-1])]))
        last = np.append(first[1:], len(at)) - 1
        return Periods(at[first], le[first], latest[last])

    def gaps(self, stretches: Patches) -> Periods:
        """Return what of the stretches these periods, which are merged, leave uncovered, in order.

        >>> stretches = Patches(np.array([70, 30]), np.array([0, 5]), np.array([9, 8]))
        >>> Periods(np.array([0, 0]), np.array([0, 4]), np.array([2, 5])).gaps(stretches)
        Periods(at=array([0, 0, 1]), le=array([2, 5, 5]), re=array([4, 9, 8]))
        """
        every = np.arange(len(stretches.owners))
        begins = np.argsort(np.concatenate([every, self.at]), kind="stable")
        ends = np.argsort(np.concatenate([self.at, every]), kind="stable")
        le = np.concatenate([stretches.lo, self.re])[begins]
        re = np.concatenate([self.le, stretches.hi])[ends]
        kept = flatnonzero(le < re)
        return Periods(np.concatenate([every, self.at])[begins][kept], le[kept], re[kept])


def touching(probe: Probe) -> Probe:
    """Return the probes widened by a chronon on each side, so that they also find what touches them."""
    return Probe(probe.numbers, np.maximum(probe.lo, MIN_TIME + 1) - 1, np.minimum(probe.hi, INFINITY - 1) + 1)


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
