"""Window numbers of a grid, vectorised: the windows that changed rows enter and leave."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.operator import EmitPolicy
from streamdsl.expr.table import least
from streamdsl.temporal.time import CHRONON, INFINITY, MIN_TIME, Ticks
from streamdsl.windows import Hopping


class Ranges(NamedTuple):
    """For each row the windows `[lo, hi)` that it enters (`signs` is 1) or leaves (-1); `hi` ENDLESS: all from `lo` on."""

    lo: Ticks
    hi: Ticks
    signs: Ticks | None
    """None: each row enters."""


class PointRanges(NamedTuple):
    """For each inserted row the first of the windows that it is in."""

    lo: Ticks
    each: int
    """The number of windows that each row is in."""
    first: int
    """The least window number."""
    stop: int
    """The number after the last window."""


ENDLESS = INFINITY


class GridNumbers:
    """The numbers of a grid's windows, of which window 0 starts in `[0, hop)`, and which of them the emit policy lets show.


    >>> grid = GridNumbers(Hopping(10, 5), EmitPolicy())
    >>> grid.first_ending_after(np.array([6])).tolist(), grid.last_open(12)
    ([0], 2)
    """

    def __init__(self, windows: Hopping, emit_policy: EmitPolicy) -> None:
        self.grid = windows
        self.emit_policy = emit_policy
        self.stop = ENDLESS if emit_policy.until == INFINITY else self.grid.first_ending_after(emit_policy.until)
        self._lowest = MIN_TIME + windows.size + windows.hop

    def last_open(self, high_water: int) -> int:
        """Return the number of the last window that may show its result."""
        return self.last_begun(high_water - self.grid.size if self.emit_policy.by_end else high_water)

    def last_begun(self, high_water: int) -> int:
        """Return the number of the last window that has begun, and can ever show its result."""
        number = (high_water - self.grid.offset) // self.grid.hop
        if number >= self.stop:
            number = self.stop - 1
        return number if number > MIN_TIME else MIN_TIME

    def starts(self, numbers: Ticks) -> Ticks:
        """Return the LE of windows."""
        return self.grid.offset + numbers * self.grid.hop

    def ranges(self, batch: Batch) -> Ranges:
        """Return the windows that each changed row enters or leaves, without those that can never show."""
        if len(batch) == 1 and self.stop == ENDLESS and batch.le[0] >= self._lowest:
            return self._range(int(batch.le[0]), int(batch.re_old[0]), int(batch.re_new[0]))
        first = self._shown(self.first_ending_after(batch.le))
        are_insertions = batch.re_old is batch.le or bool((batch.re_old == batch.le).all())
        new = self._ends(first, batch.le, batch.re_new)
        if are_insertions:
            return Ranges(first, new, None)
        old = self._ends(first, batch.le, batch.re_old)
        return Ranges(np.minimum(old, new), np.maximum(old, new), np.where(new < old, -1, 1))

    def of_points(self, batch: Batch) -> PointRanges | None:
        """Return the windows of inserted points, if each is in the same number of them, and all can show; else None."""
        grid = self.grid
        if self.stop != ENDLESS or grid.size % grid.hop or not _are_points(batch) or (low := least(batch.le)) < self._lowest:
            return None
        each = grid.size // grid.hop
        lo = (batch.le - (grid.size + grid.offset - grid.hop)) // grid.hop
        return PointRanges(lo, each, grid.first_ending_after(low), grid.first_ending_after(batch.high_water) + each)

    def entered(self, le: int, re_old: int, re_new: int) -> range | None:
        """Return the windows that a single row enters (or leaves, if it ends earlier now); None if more is to be checked.

        >>> GridNumbers(Hopping(10, 5), EmitPolicy()).entered(6, 6, 12)
        range(0, 3)
        """
        if le < self._lowest or re_old == INFINITY or re_new == INFINITY:
            return None
        grid = self.grid
        hop, offset = grid.hop, grid.offset
        first = (le - grid.size - offset) // hop + 1
        new = (re_new - 1 - offset) // hop + 1 if re_new > le else first
        old = (re_old - 1 - offset) // hop + 1 if re_old > le else first
        if old < first:
            old = first
        if new < first:
            new = first
        return range(old, new) if old <= new else range(new, old)

    def _range(self, le: int, re_old: int, re_new: int) -> Ranges:
        """Return the windows of a single row, without columns."""
        first = self.grid.first_ending_after(le)
        new, old = self._end(first, le, re_new), self._end(first, le, re_old)
        signs = None if re_old == le else np.array([-1 if new < old else 1])
        return Ranges(np.array([min(old, new)]), np.array([max(old, new)]), signs)

    def _end(self, first: int, le: int, re: int) -> int:
        if re == INFINITY:
            return ENDLESS
        return max(self.grid.last_starting_before(re) + 1, first) if re > le else first

    def first_ending_after(self, times: Ticks) -> Ticks:
        """Return the number of the earliest window with RE > time, for each; `TimeOverflow` if it leaves time."""
        grid = self.grid
        if self._is_safe(times):
            return (times - (grid.size + grid.offset)) // grid.hop + 1
        numbers = list(map(grid.first_ending_after, times.tolist()))
        for number in numbers:
            if number < self.stop:
                grid.window(number)
        return np.array(numbers, dtype=np.int64)

    def _ends(self, first: Ticks, le: Ticks, re: Ticks) -> Ticks:
        """Return the number after the last window that a row with this RE belongs to."""
        present = re > le
        ends = np.maximum(self.after_last(le, re), first)
        if not present.all():
            ends = np.where(present, ends, first)
        unending = present & (re == INFINITY)
        if unending.any():
            ends[unending] = ENDLESS
        return self._shown(ends)

    def after_last(self, le: Ticks, re: Ticks) -> Ticks:
        """Return the number after the last window that starts before each RE, or if that is not after LE, before some time."""
        grid = self.grid
        if self._is_safe(le):
            return (re - (1 + grid.offset)) // grid.hop + 1
        return np.array([grid.last_starting_before(time) + 1 for time in np.maximum(re, le).tolist()], dtype=np.int64)

    def _shown(self, numbers: Ticks) -> Ticks:
        return numbers if self.stop == ENDLESS else np.where(numbers >= self.stop, ENDLESS, numbers)

    def _is_safe(self, le: Ticks) -> bool:
        return not len(le) or least(le) >= self._lowest


def _are_points(batch: Batch) -> bool:
    return batch.are_points or (batch.re_old is batch.le and bool((batch.re_new - batch.le == CHRONON).all()))
