"""Which windows a sequence creates, and when, for the rows of many partitions at once (paper 003, definitions 8 to 10)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Hashable
from math import floor
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.frames.covered import covered
from streamdsl.engine.frames.instants import OrderedRows, created
from streamdsl.engine.frames.positions import Positions
from streamdsl.engine.pairs import distinct_pairs, spread
from streamdsl.engine.window_budget import WindowBudget
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.temporal.time import INFINITY, Ticks
from streamdsl.windows import Sequenced
from streamdsl.windows.sequence import endless
from streamdsl.windows.sequences.named import LastN, Linear, Sliding
from streamdsl.windows.sequences.numbers import LAST, Batch
from streamdsl.windows.sequences.seen import Seen

_FAR: Final = 1 << 58
"""Times and window numbers beyond this may overflow 64 bits in sums and products."""
_NEVER: Final = 1 << 60
"""The rate of a sequence of one window: a next one would be beyond all times."""


class CreatedWindows(NamedTuple):
    """Windows with rows, by partition and start, as columns: partition, period, position of the first row, number of rows."""

    of: Rows
    le: Ticks
    re: Ticks
    first: Ticks
    sizes: Ticks
    ends: Ticks
    """For each partition the end of the window that goes on. Then another one, which may be empty, is the last."""
    coming: Ticks
    """For each partition the start of the next window with rows, INFINITY if there is none until a row arrives."""


class WindowCreation(ABC):
    """How the windows of one sequence are computed."""

    def __init__(self, spec: Sequenced, budget: WindowBudget) -> None:
        self.spec = spec
        self.budget = budget

    @abstractmethod
    def windows_from(self, rows: Positions, since: Ticks, goes_on: NDArray[np.bool_], limit: int) -> CreatedWindows:
        """Return the windows that begin from an instant on, up to a limit. Raises `UnboundedOutputError`.

        `goes_on` says in which partitions there is a window just before.
        """

    @abstractmethod
    def first_needed(self, rows: Positions, time: int) -> Ticks:
        """Return for each partition a position such that no window created after `time` has a row before it.

        INFINITY says that no window is created any more.
        """

    def begins_with(self, time: int, position: int, origin: int) -> int | None:
        """Return the start of the first window with a row, which is the last one; INFINITY if no other is created by then.

        None says that one may be created with the row, or that this is not known.
        """
        return None


class ByInstant(WindowCreation):
    """Windows computed one after the other: at each instant, which window of the sequence is the last one."""

    def windows_from(self, rows: Positions, since: Ticks, goes_on: NDArray[np.bool_], limit: int) -> CreatedWindows:
        found: list[tuple[int, int, int, int, int]] = []
        ends, coming = (np.full(len(since), INFINITY) for _ in range(2))
        for of, (start, is_held) in enumerate(zip(since.tolist(), goes_on.tolist(), strict=True)):
            line = _PartitionRows(rows, of)
            if not line.times:  # those of a window that may end are kept
                continue
            begun, held = start, range(0)
            for time, positions in created(self.spec, line, start, is_held, limit):
                self.budget.take(1)
                ends[of] = min(int(ends[of]), time)
                if held:
                    found.append((of, begun, time, held.start, len(held)))
                begun, held = time, positions
                if time > limit:
                    coming[of], held = time, range(0)
                    break
            if held:
                found.append((of, begun, INFINITY, held.start, len(held)))
        columns = np.array(found, dtype=np.int64).reshape(-1, 5)
        return CreatedWindows(columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3], columns[:, 4], ends, coming)

    def _is_over(self, time: int, seen: Seen) -> bool:
        """Say whether no window will be created after an instant."""
        sequence = self.spec.sequence
        return isinstance(sequence, Linear) and sequence.rate is None and sequence.rank((time, LAST), seen) is not None

    def first_needed(self, rows: Positions, time: int) -> Ticks:
        needed = rows.dropped.copy()
        for of in range(len(needed)):
            line = _PartitionRows(rows, of)
            if line.times and line.t0 <= time:
                seen = line.by(time)
                first = self.spec.sequence.first_needed((time, LAST), seen)
                needed[of] = INFINITY if first > seen.last and self._is_over(time, seen) else min(first, seen.last + 1)
        return needed


class _PartitionRows(OrderedRows):
    def __init__(self, rows: Positions, of: int) -> None:
        self.times = rows.times_of(of)
        self.dropped = int(rows.dropped[of])
        self.t0 = int(rows.origin[of])
        self._last_id = rows.last_id(of) if self.times else None

    @property
    def last(self) -> int:
        return self.dropped + len(self.times) - 1

    @property
    def last_id(self) -> Hashable:
        return self._last_id

    def batch_at(self, position: int) -> Batch:
        return (self.times[position - self.dropped], 0)

    def position_from(self, time: int) -> int:
        return self.dropped + bisect_left(self.times, time)


class InColumns(WindowCreation):
    """Windows of all partitions at once, if numbers and their sums fit into 64 bits; else instant by instant."""

    def __init__(self, spec: Sequenced, budget: WindowBudget) -> None:
        super().__init__(spec, budget)
        self._instants = ByInstant(spec, budget)

    def windows_from(self, rows: Positions, since: Ticks, goes_on: NDArray[np.bool_], limit: int) -> CreatedWindows:
        is_last = limit == INFINITY - 1
        if not (is_last or limit < _FAR) or not self.is_near(rows):
            return self._instants.windows_from(rows, since, goes_on, limit)
        try:
            return self.windows_in_columns(rows, since, _NEVER if is_last else limit, is_last)
        except _EndlessError as error:
            raise endless(self.spec, rows.last_id(error.of)) from None

    def first_needed(self, rows: Positions, time: int) -> Ticks:
        if not self.is_near(rows):
            return self._instants.first_needed(rows, time)
        of = np.arange(len(rows.codes))
        needed, unseen = self.needed(rows, time), rows.first_from(of, np.full(len(of), time + 1))
        needed = np.where(needed == INFINITY, needed, np.minimum(needed, unseen))
        return np.where(rows.origin <= time, np.maximum(needed, rows.dropped), rows.dropped)

    def is_near(self, rows: Positions) -> bool:
        """Say whether the numbers are small enough."""
        return rows.reach < _FAR

    @abstractmethod
    def windows_in_columns(self, rows: Positions, since: Ticks, limit: int, is_last: bool) -> CreatedWindows:
        """Do what `windows_from` does. `is_last` says that all input has arrived, and windows may begin at any time."""

    @abstractmethod
    def needed(self, rows: Positions, time: int) -> Ticks:
        """Return a position such that no window created after `time` has a row before it, of those that have started by then."""


class _EndlessError(Exception):
    """Windows of a partition hold rows without end."""

    def __init__(self, of: int) -> None:
        self.of = of


def _refuse(of: Rows) -> None:
    """Raise if windows hold rows without end; `of` says in which partitions."""
    if len(of):
        raise _EndlessError(int(of[-1]))


class ByTime(InColumns):
    """Bounds that are times, linear in j: window j is there from `first + rate * j` on."""

    def __init__(self, spec: Sequenced, budget: WindowBudget, sequence: Linear) -> None:
        super().__init__(spec, budget)
        self._a, self._b, self._c, self._d = map(int, (*sequence.start, *sequence.end))
        self._rate = _NEVER if sequence.rate is None else int(sequence.rate)
        self._is_relative = sequence.relative
        self._slopes = [slope for slope in (self._a, self._c) if slope]

    def is_near(self, rows: Positions) -> bool:
        reach = rows.reach + abs(self._b) + abs(self._d)
        return super().is_near(rows) and all((reach // slope + 2) * self._rate < _NEVER for slope in self._slopes)

    def _shifts(self, rows: Positions) -> Ticks:
        """Return how much later the bounds of each partition are than the given ones."""
        return np.where(self._is_relative & (rows.origin < INFINITY), rows.origin, 0)

    def _begins(self, shifts: Ticks, j: Ticks) -> Ticks:
        """Return when windows are created."""
        if self._rate == _NEVER:
            return np.where(j > 0, INFINITY, self._d + shifts)
        return self._d + shifts + self._rate * j

    def windows_in_columns(self, rows: Positions, since: Ticks, limit: int, is_last: bool) -> CreatedWindows:
        shifts, origin = self._shifts(rows), rows.origin
        first = self._d + shifts
        at_start = since <= origin
        # At the start an earlier window may be the last one already.
        low = np.where(at_start, np.where(origin < INFINITY, origin, 0) - first, since - first + self._rate - 1) // self._rate
        low, high = np.maximum(low, 0), (limit - first) // self._rate
        of, times = rows.of, rows.le - shifts[rows.of]
        # The windows that each row is in.
        from_j = low[of] if not self._c else np.maximum(low[of], -((self._d - times) // self._c))
        to_j = np.full(len(times), _NEVER) if not self._a else (times - self._b) // self._a
        if not self._a:
            to_j[times < self._b] = -1
        if not self._c:
            to_j[times > self._d] = -1
        if self._rate == _NEVER:
            to_j = np.minimum(to_j, 0)
        elif is_last and not self._a:
            _refuse(of[from_j <= to_j])
        filled = covered(of, from_j, np.minimum(to_j, high[of]) + 1, np.ones_like(times))
        self.budget.take(int(filled.lengths.sum()))
        at, j = filled.spread()
        of, sizes = filled.codes[at], filled.more[at]
        le, re = self._begins(shifts[of], j), self._begins(shifts[of], j + 1)
        lower = rows.first_from(of, self._a * j + self._b + shifts[of])
        later = np.maximum(from_j, high[rows.of] + 1)
        waits = flatnonzero(later <= to_j)
        coming = np.full(len(since), INFINITY)
        np.minimum.at(coming, rows.of[waits], self._begins(shifts[rows.of[waits]], later[waits]))
        return CreatedWindows(of, np.maximum(le, origin[of]), re, lower, sizes, self._begins(shifts, low), coming)

    def begins_with(self, time: int, position: int, origin: int) -> int | None:
        time -= origin if self._is_relative else 0
        first = max(0, -((self._d - time) // self._c)) if self._c else 0
        last = 0 if self._rate == _NEVER else (time - self._b) // self._a if self._a else _NEVER
        if first > last or (not self._a and time < self._b) or (not self._c and time > self._d):
            return INFINITY
        return self._d + self._rate * first + (origin if self._is_relative else 0)

    def needed(self, rows: Positions, time: int) -> Ticks:
        of, shifts = np.arange(len(rows.codes)), self._shifts(rows)
        rank = (np.minimum(time, _FAR) - self._d - shifts) // self._rate
        if self._rate == _NEVER:
            return np.where(rank < 0, rows.first_from(of, self._b + shifts), INFINITY)
        rank = np.clip(rank, 0, _NEVER // max(self._a, 1))
        return rows.first_from(of, self._a * rank + self._b + shifts)


class LastRows(InColumns):
    """The last n rows, periodically from the start on."""

    def __init__(self, spec: Sequenced, budget: WindowBudget, sequence: LastN) -> None:
        super().__init__(spec, budget)
        self._n = sequence.n
        self._rate = int(sequence.rate)

    def windows_in_columns(self, rows: Positions, since: Ticks, limit: int, is_last: bool) -> CreatedWindows:
        of, origin = np.arange(len(since)), np.where(rows.origin < INFINITY, rows.origin, 0)
        first = np.where(rows.dropped > 0, origin, rows.first_times)
        has_rows = first < INFINITY
        if is_last:
            _refuse(flatnonzero(has_rows))
        low = np.maximum(-((origin - since) // self._rate), 0)
        from_j = np.maximum(low, -((origin - np.where(has_rows, first, origin)) // self._rate))
        high = (limit - origin) // self._rate
        lengths = np.where(has_rows, np.maximum(high + 1 - from_j, 0), 0)
        self.budget.take(int(lengths.sum()))
        at, j = spread(from_j, from_j + lengths)
        le = origin[at] + self._rate * j
        stop = rows.first_from(at, le + 1)
        lower = np.maximum(stop - self._n, 0)
        coming = np.where(has_rows, origin + self._rate * np.maximum(from_j, high + 1), INFINITY)
        return CreatedWindows(of[at], le, le + self._rate, lower, stop - lower, origin + self._rate * low, coming)

    def begins_with(self, time: int, position: int, origin: int) -> int | None:
        return origin - (origin - time) // self._rate * self._rate

    def needed(self, rows: Positions, time: int) -> Ticks:
        origin = np.minimum(rows.origin, _FAR)
        last = origin + self._rate * np.maximum((time - origin) // self._rate, 0)
        return rows.first_from(np.arange(len(origin)), last + 1) - self._n


class Trailing(InColumns):
    """The rows of the last x: there is another window when a row arrives, and when one is too old."""

    def __init__(self, spec: Sequenced, budget: WindowBudget, sequence: Sliding) -> None:
        super().__init__(spec, budget)
        self._size = floor(sequence.size)

    def windows_in_columns(self, rows: Positions, since: Ticks, limit: int, is_last: bool) -> CreatedWindows:
        instants = distinct_pairs(np.tile(rows.of, 2), np.concatenate([rows.le, rows.le + self._size + 1]))
        of, le = instants.first, instants.second
        again = flatnonzero(le >= since[of])
        of, le = of[again], le[again]
        re = np.where(np.append(of[1:] == of[:-1], False), np.append(le[1:], INFINITY), INFINITY) if len(of) else le
        lower, stop = rows.first_from(of, le - self._size), rows.first_from(of, le + 1)
        ends, coming = (np.full(len(since), INFINITY) for _ in range(2))
        np.minimum.at(ends, of, le)
        later = flatnonzero((le > limit) & (lower < stop))
        np.minimum.at(coming, of[later], le[later])
        now = flatnonzero((le <= limit) & (lower < stop))
        self.budget.take(len(now))
        return CreatedWindows(of[now], le[now], re[now], lower[now], (stop - lower)[now], ends, coming)

    def needed(self, rows: Positions, time: int) -> Ticks:
        return rows.first_from(np.arange(len(rows.codes)), np.full(len(rows.codes), time - self._size))


class ByCount(InColumns):
    """Bounds that are positions, linear in j: there is another window after every so many rows."""

    def __init__(self, spec: Sequenced, budget: WindowBudget, sequence: Linear) -> None:
        super().__init__(spec, budget)
        self._a, self._b, self._c, self._d = map(int, (*sequence.start, *sequence.end))
        self._rate = _NEVER if sequence.rate is None else int(sequence.rate)
        self._least = 0 if sequence.cut else -_FAR
        """Windows that are not cut may begin before the first row, and are as long as the others."""

    def _rank(self, last: Ticks) -> Ticks:
        """Return the number of the last window, -1 if there is none, once a position has been seen."""
        return np.where(last < self._d, -1, (last - self._d) // self._rate)

    def windows_in_columns(self, rows: Positions, since: Ticks, limit: int, is_last: bool) -> CreatedWindows:
        of, numbers = rows.of, rows.numbers
        # Rows that start together are seen at once.
        begins = flatnonzero(np.append(True, (of[1:] != of[:-1]) | (rows.le[1:] != rows.le[:-1]))) if len(of) else of
        of, le, firsts = of[begins], rows.le[begins], numbers[begins]
        lasts = firsts + np.diff(np.append(begins, len(numbers))) - 1
        j = self._rank(lasts)
        again = flatnonzero((j != self._rank(firsts - 1)) & (le >= since[of]))
        of, le, j, seen = of[again], le[again], j[again], lasts[again]
        re = np.where(np.append(of[1:] == of[:-1], False), np.append(le[1:], INFINITY), INFINITY) if len(of) else le
        ends = np.full(len(since), INFINITY)
        np.minimum.at(ends, of, le)
        low, high = np.maximum(self._a * j + self._b, self._least), self._c * j + self._d
        now = flatnonzero((le <= limit) & (low <= high) & (low <= seen))
        self.budget.take(len(now))
        of, le, re, low, high = (column[now] for column in (of, le, re, low, high))
        # All rows that start with the last one are seen with it: of as many those that come last are in the window.
        stop = rows.first_from(of, rows.le[rows.rows_at(of, high)] + 1)
        lower = np.maximum(stop - 1 - (high - low), 0)
        return CreatedWindows(of, le, re, lower, stop - lower, ends, np.full(len(since), INFINITY))

    def begins_with(self, time: int, position: int, origin: int) -> int | None:
        before, now = self._rank(np.array([position - 1, position])).tolist()
        return INFINITY if before == now else None

    def needed(self, rows: Positions, time: int) -> Ticks:
        seen = rows.first_from(np.arange(len(rows.codes)), np.full(len(rows.codes), time + 1))
        rank = self._rank(seen - 1)
        if self._rate == _NEVER:
            return np.where(rank < 0, max(self._b, 0), INFINITY)
        needed: Ticks = np.maximum(self._a * np.maximum(rank, 0) + self._b, 0)
        return needed


def creation_of(spec: Sequenced, budget: WindowBudget) -> WindowCreation:
    """Return how the windows of a sequence are computed: in columns if its bounds are integers that rise evenly."""
    sequence = spec.sequence
    if isinstance(sequence, Linear) and _are_near(*sequence.start, *sequence.end, sequence.rate):
        if sequence.domain == "time":
            return ByTime(spec, budget, sequence)
        if sequence.end[1] >= 0:
            return ByCount(spec, budget, sequence)
    if isinstance(sequence, LastN) and _are_near(sequence.rate):
        return LastRows(spec, budget, sequence)
    if isinstance(sequence, Sliding) and sequence.size < _FAR:
        return Trailing(spec, budget, sequence)
    return ByInstant(spec, budget)


def _are_near(*numbers: object) -> bool:
    return all(number is None or (type(number) is int and abs(number) < _FAR) for number in numbers)
