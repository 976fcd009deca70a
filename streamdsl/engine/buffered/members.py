"""The members of windows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from streamdsl.engine.pairs import spread
from streamdsl.engine.sorting import stable_order
from streamdsl.expr.table import Column, Rows, flatnonzero
from streamdsl.temporal.time import Ticks

NARROW: Final = 2**16
"""Up to this many windows have two-byte numbers, which are sorted in one pass."""


class MemberPairs(NamedTuple):
    """Pairs of a window, by number, and a member, by place or by number."""

    windows: Rows
    places: Rows


class MemberRanges(NamedTuple):
    """The members of windows, by their numbers: those of window i are `at[lo[i]:hi[i]]`; windows that overlap may share them."""

    at: Rows
    lo: Rows
    hi: Rows


@dataclass(frozen=True)
class Members:
    """Rows, each with the windows `[first, last)` that it is in: at least one of `n_windows`.

    Windows of a partition stand in order of their starts, and of their ends, so those that a row is in stand together. What
    that tells (a sum, an extremum) is found without a look at each pair of a window and a row.

    >>> members = Members(np.array([7, 4]), np.array([0, 1]), np.array([2, 3]), 3)
    >>> members.sizes.tolist(), [part.tolist() for part in members.ranges]
    ([1, 2, 1], [[0, 1], [0, 0, 1], [1, 2, 2]])
    """

    places: Rows
    first: Rows
    last: Rows
    n_windows: int
    are_single: bool = True
    """Whether each row appears once, with all its windows."""

    @classmethod
    def of_pairs(cls, pairs: MemberPairs, n_windows: int) -> Members:
        """Return members given as pairs, in any order."""
        return cls(pairs.places, pairs.windows, pairs.windows + 1, n_windows, are_single=False)

    def only(self, chosen: Rows) -> Members:
        """Return some of the rows."""
        return Members(self.places[chosen], self.first[chosen], self.last[chosen], self.n_windows, self.are_single)

    def at(self, windows: Rows) -> Members:
        """Return the members of some windows, which are in order."""
        if len(windows) == self.n_windows:
            return self
        before = np.zeros(self.n_windows + 1, dtype=np.intp)
        before[windows + 1] = 1
        before = np.cumsum(before)
        first, last = before[self.first], before[self.last]
        inside = flatnonzero(first < last)
        return Members(self.places[inside], first[inside], last[inside], len(windows), self.are_single)

    @cached_property
    def sizes(self) -> Rows:
        """The number of members of each window."""
        return counts_in(self.first, self.last, self.n_windows)

    @cached_property
    def n_pairs(self) -> int:
        """The number of members of all windows together."""
        return int(self.last.sum()) - int(self.first.sum())

    @property
    def are_shared(self) -> bool:
        """Whether the members of each window are a range of the rows, so that overlapping windows share them."""
        return bool((self.first[1:] >= self.first[:-1]).all() and (self.last[1:] >= self.last[:-1]).all())

    @cached_property
    def ranges(self) -> MemberRanges:
        """The members window by window, in the order of the rows."""
        if self.are_shared:
            windows = np.arange(self.n_windows)
            lo, hi = np.searchsorted(self.last, windows, side="right"), np.searchsorted(self.first, windows, side="right")
            return MemberRanges(np.arange(len(self.places)), lo, hi)
        order, lengths = self.by_window(), self.last - self.first
        stops = np.cumsum(self.sizes)
        return MemberRanges(np.repeat(np.arange(len(lengths)), lengths)[order], stops - self.sizes, stops)

    def by_window(self) -> Rows:
        """Return the order of all pairs by window, given that they are by row."""
        if self.n_windows <= NARROW:  # what is added to `starts` may wrap around, the sums are right
            lengths = self.last - self.first
            starts = self.first - (np.cumsum(lengths) - lengths)
            windows = np.repeat(starts.astype(np.uint16), lengths)
            windows += np.arange(len(windows), dtype=np.uint32).astype(np.uint16)
            return np.argsort(windows, kind="stable")
        return stable_order(spread(self.first, self.last)[1])

    def pairs(self) -> MemberPairs:
        """Return each pair of a window and a member, by row."""
        rows, windows = spread(self.first, self.last)
        return MemberPairs(windows, rows)


class Values(NamedTuple):
    """What a module reads of windows: a value for each member."""

    column: Column
    members: Members

    def only(self, chosen: Rows) -> Values:
        """Return the values of some rows."""
        return Values(self.column[chosen], self.members.only(chosen))

    def in_windows(self) -> tuple[Column, list[tuple[int, int]]]:
        """Return values window by window, and the range of each window."""
        at, lo, hi = self.members.ranges
        return self.column[at], list(zip(lo.tolist(), hi.tolist(), strict=True))


def counts_in(first: Rows, last: Rows, n_windows: int) -> Ticks:
    """Return how many of some spans each window is in."""
    steps = np.bincount(first, minlength=n_windows + 1) - np.bincount(last, minlength=n_windows + 1)
    return np.cumsum(steps[:-1])
