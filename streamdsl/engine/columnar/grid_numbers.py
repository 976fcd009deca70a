"""Window numbers of a grid, vectorised: the windows that changed rows enter and leave."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.operator import EmitPolicy
from streamdsl.expr.table import least
from streamdsl.temporal.time import CHRONON, INFINITY, MIN_TIME, Ticks
from streamdsl.windows import Grid


class WindowRanges(NamedTuple):
    """For each row the windows `[lo, hi)` that it enters (`signs` is 1) or leaves (-1); `hi` ENDLESS: all from `lo` on."""

    lo: Ticks
    hi: Ticks | None
    """None: each row is in as many windows as `each` says."""
    signs: Ticks | None = None
    """None: each row enters."""
    each: int = 0
    first: int | None = None
    """The least window number, if it is known."""
    stop: int | None = None
    """The number after the last window, if it is known."""


ENDLESS = INFINITY


class GridNumbers:
    """The numbers of a grid's windows, and which of them the emit policy lets show.

    >>> from streamdsl.windows import Hopping
    >>> grid = GridNumbers(Hopping(10, 5), EmitPolicy())
    >>> grid.first_ending_after(np.array([6])).tolist(), grid.last_open(12)
    ([0], 2)
    """

    def __init__(self, windows: Grid, emit_policy: EmitPolicy) -> None:
        self.grid = windows
        self.emit_policy = emit_policy
        self.stop = ENDLESS if emit_policy.until == INFINITY else self.grid.first_ending_after(emit_policy.until)
        self._lowest = windows.lowest

    def last_open(self, high_water: int) -> int:
        """Return the number of the last window that may show its result."""
        return (
            self._showable(self.grid.first_ending_after(high_water) - 1)
            if self.emit_policy.by_end
            else self.last_begun(high_water)
        )

    def last_begun(self, high_water: int) -> int:
        """Return the number of the last window that has begun, and can ever show its result."""
        return self._showable(self.grid.last_starting_by(high_water))

    def _showable(self, number: int) -> int:
        if number >= self.stop:
            number = self.stop - 1
        return number if number > MIN_TIME else MIN_TIME

    def ranges(self, batch: Batch) -> WindowRanges:
        """Return the windows that each changed row enters or leaves, without those that can never show."""
        if (points := self._of_points(batch)) is not None:
            return points
        first = self._shown(self.first_ending_after(batch.le))
        are_insertions = batch.re_old is batch.le or bool((batch.re_old == batch.le).all())
        new = self._ends(first, batch.le, batch.re_new)
        if are_insertions:
            return WindowRanges(first, new)
        old = self._ends(first, batch.le, batch.re_old)
        return WindowRanges(np.minimum(old, new), np.maximum(old, new), np.where(new < old, -1, 1))

    def _of_points(self, batch: Batch) -> WindowRanges | None:
        """Return the windows of inserted points, if each is in the same number of them, and all can show; else None."""
        grid = self.grid
        each = grid.per_point
        if self.stop != ENDLESS or each is None or not _are_points(batch) or (low := least(batch.le)) < self._lowest:
            return None
        if (high := batch.high_water) + CHRONON == INFINITY:  # a row that starts in the last tick never ends
            return None
        first, stop = grid.first_ending_after(low), grid.first_ending_after(high) + each
        return WindowRanges(grid.firsts_ending_after(batch.le), None, None, each, first, stop)

    def entered(self, le: int, re_old: int, re_new: int) -> range | None:
        """Return the windows that a single row enters (or leaves, if it ends earlier now); None if more is to be checked.

        >>> from streamdsl.windows import Hopping
        >>> GridNumbers(Hopping(10, 5), EmitPolicy()).entered(6, 6, 12)
        range(0, 3)
        """
        if le < self._lowest or re_old == INFINITY or re_new == INFINITY:
            return None
        return self.grid.changed_numbers(le, re_old, re_new)

    def first_ending_after(self, times: Ticks) -> Ticks:
        """Return the number of the earliest window with RE > time, for each; `TimeOverflow` if it leaves time."""
        grid = self.grid
        if self._is_safe(times):
            return grid.firsts_ending_after(times)
        numbers = list(map(grid.first_ending_after, times.tolist()))
        for number in numbers:
            if number < self.stop:
                grid.window(number)
        return np.array(numbers, dtype=np.int64)

    def _ends(self, first: Ticks, le: Ticks, re: Ticks) -> Ticks:
        """Return the number after the last window that a row with this RE belongs to."""
        present, unending = re > le, re == INFINITY
        goes_on = bool(unending.any())
        ends = np.maximum(self.after_last(le, np.where(unending, le, re) if goes_on else re), first)
        if not present.all():
            ends = np.where(present, ends, first)
        if goes_on:
            ends[present & unending] = ENDLESS
        return self._shown(ends)

    def after_last(self, le: Ticks, re: Ticks) -> Ticks:
        """Return the number after the last window that starts before each RE, or if that is not after LE, before some time."""
        grid = self.grid
        if self._is_safe(le):
            return grid.lasts_starting_before(re) + 1
        return np.array([grid.last_starting_before(time) + 1 for time in np.maximum(re, le).tolist()], dtype=np.int64)

    def _shown(self, numbers: Ticks) -> Ticks:
        return numbers if self.stop == ENDLESS else np.where(numbers >= self.stop, ENDLESS, numbers)

    def _is_safe(self, le: Ticks) -> bool:
        return not len(le) or least(le) >= self._lowest


def _are_points(batch: Batch) -> bool:
    return batch.are_points or (batch.re_old is batch.le and bool((batch.re_new - batch.le == CHRONON).all()))
