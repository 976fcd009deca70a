"""Nearness in columns:

the distance of starts, where to search for nearer ones, and which matches are final (`streamdsl.plan.asof`).
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.sorted import Probe
from streamdsl.expr.table import Column
from streamdsl.plan.asof import Nearness
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks

NOTHING: Final = INFINITY
"""Stands for the LE of the matches of a row that has none; no row has this LE."""

Durations: TypeAlias = NDArray[np.uint64]
"""Times may be farther apart than the largest time."""


class Reach:
    """Where the matches of left rows may start. The nearest is the last start before, or the first start after.

    `strictly`: a row that starts with a left one does not match it; this is for forward search only.
    """

    def __init__(self, near: Nearness, strictly: bool = False) -> None:
        self._strictly = strictly
        self.looks_back = near.direction != "forward"
        self.looks_forward = near.direction != "back"
        self._tolerance = near.tolerance
        self._is_unlimited = near.tolerance >= INFINITY - MIN_TIME

    def first(self, time: int) -> int:
        """Return where a row may start that is before what starts at a time."""
        return max(time - self._tolerance, MIN_TIME)

    def around(self, time: int, back: bool, forward: bool) -> tuple[int, int]:
        """Return the period in which what is not too far may start, before a time, after it, or both, and with it."""
        return self.first(time) if back else time, min(time + self._tolerance, INFINITY - 1) + 1 if forward else time + 1

    def before(self, numbers: Column, le: Ticks) -> Probe:
        """Return the period in which a row may start that is not after these."""
        return Probe(numbers, self._since(le), le + 1)

    def after(self, numbers: Column, le: Ticks, best: Ticks) -> Probe:
        """Return the period in which a row may start after these, or with these if that is not before, given the best before."""
        until = self._until(le)
        if not self.looks_back:
            return Probe(numbers, le + self._strictly, until)
        nearer = np.where(best == NOTHING, INFINITY, later(le, apart(best, le)))
        return Probe(numbers, le + 1, np.minimum(until, nearer))

    def touched_before(self, numbers: Column, right: Ticks, previous: Ticks) -> Probe:
        """Return the period, after the previous changed right row, of the left rows before a right one that may be its."""
        if self._strictly:  # a row that starts with the previous one does not match it
            return Probe(numbers, np.maximum(self._since(right), np.maximum(previous, MIN_TIME + 1) - 1), right)
        return Probe(numbers, np.maximum(self._since(right), previous), right + (not self.looks_back))

    def touched_after(self, numbers: Column, right: Ticks, following: Ticks) -> Probe:
        """Return the period, up to the next changed right row, of the left rows not before a right one that may be its."""
        return Probe(numbers, right, np.minimum(self._until(right), following))

    def _since(self, le: Ticks) -> Ticks:
        """Return the first time that is not too far before these, at least MIN_TIME."""
        if self._is_unlimited:
            return np.full(len(le), MIN_TIME)
        return np.where(le < MIN_TIME + self._tolerance, MIN_TIME, le - self._tolerance)

    def _until(self, le: Ticks) -> Ticks:
        """Return the first time that is too far after these, at most INFINITY."""
        return np.full(len(le), INFINITY) if self._is_unlimited else later(le, self._tolerance + 1)

    def is_as_near(self, le: Ticks, right: Ticks, best: Ticks) -> NDArray[np.bool_]:
        """Say of left rows whether what starts at `right` is as near as the best that they have."""
        as_near: NDArray[np.bool_]
        if self.looks_back and self.looks_forward:
            distance, least = apart(le, right), apart(le, best)
            as_near = (distance < least) | ((distance == least) & ((right <= le) | (best > le)))
        else:
            as_near = right >= best if self.looks_back else right <= best
        as_near |= best == NOTHING
        return as_near

    def may_improve(self, le: Ticks, best: Ticks, cti: int) -> NDArray[np.bool_]:
        """Say of left rows whether a right row that is as near as the best may still arrive."""
        if cti == INFINITY:
            return np.zeros(len(le), dtype=np.bool_)
        is_open: NDArray[np.bool_] = le >= cti
        if self.looks_forward:
            wait = apart(le, best) + (best > le)
            wait[best == NOTHING] = self._tolerance + 1
            is_open |= wait > apart(le, np.int64(cti))
        return is_open


def apart(times: Ticks, others: Ticks | np.int64) -> Durations:
    """Return how far times are from others.

    >>> apart(np.array([3, MIN_TIME]), np.array([5, INFINITY])).tolist() == [2, 2**64 - 1]
    True
    """
    found: Durations = np.maximum(times, others).view(np.uint64) - np.minimum(times, others).view(np.uint64)
    return found


def later(times: Ticks, by: Durations | int) -> Ticks:
    """Return times that are so much later, at most INFINITY."""
    by = np.asarray(by, dtype=np.uint64)
    return np.where(by > apart(times, np.int64(INFINITY)), INFINITY, (times.view(np.uint64) + by).view(np.int64))
