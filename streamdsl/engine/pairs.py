"""Integers in columns: distinct ones, distinct pairs, ranges, and which are among others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.sorting import ascending, stable_order
from streamdsl.expr.deferred import dense_codes
from streamdsl.expr.table import Column, Rows, flatnonzero
from streamdsl.temporal.time import Ticks

_FEW_PLACES: Final = 32
"""So many places for each number are looked through sooner than numbers are sorted."""


@dataclass(frozen=True, slots=True)
class DistinctPairs:
    """The distinct pairs of two columns, in order of the first, then of the second, and which of them each row has."""

    index: Rows
    first: Ticks
    second: Ticks

    def __len__(self) -> int:
        return len(self.first)


def distinct_pairs(first: Ticks, second: Ticks) -> DistinctPairs:
    """Return the distinct pairs of rows. If few are possible they are marked in an array, else sorted.

    >>> pairs = distinct_pairs(np.array([1, 0, 1]), np.array([5, 5, 5]))
    >>> pairs.index.tolist(), pairs.first.tolist(), pairs.second.tolist()
    ([1, 0, 1], [0, 1], [5, 5])
    """
    found = few_pairs(first, second)
    if found is not None or not len(first):
        return found or DistinctPairs(first, first, second)
    packed = _packed(first, second)
    if packed is None:
        return _ranked_pairs(first, second)
    index, flat = _sorted(packed.flat)
    return DistinctPairs(index, *packed.parts(flat))


def distinct(numbers: Rows, size: int) -> Rows:
    """Return the different ones of some numbers in `[0, size)`, in order: marked if not many more are possible, else sorted.

    >>> distinct(np.array([3, 1, 3]), 4).tolist(), distinct(np.array([3, 1, 3]), 1000).tolist()
    ([1, 3], [1, 3])
    """
    if size > _FEW_PLACES * len(numbers):
        return distinct_values(numbers)
    marks = np.zeros(size, dtype=np.bool_)
    marks[numbers] = True
    return flatnonzero(marks)


def distinct_values(numbers: Ticks) -> Ticks:
    """Return the different ones of some integers, in order.

    >>> distinct_values(np.array([3, -1, 3])).tolist()
    [-1, 3]
    """
    ordered = ascending(numbers)
    return ordered[run_starts(ordered)]


def run_starts(ordered: Column) -> Rows:
    """Return where in a column values begin that differ from the one before.

    >>> run_starts(np.array([5, 7, 7])).tolist()
    [0, 1]
    """
    return flatnonzero(_is_first(ordered))


def all_but(rows: Rows, size: int) -> Rows:
    """Return the numbers below `size`, in order, without some of them.

    >>> all_but(np.array([3, 0]), 4).tolist()
    [1, 2]
    """
    is_left = np.ones(size, dtype=np.bool_)
    is_left[rows] = False
    return flatnonzero(is_left)


def spread(start: Rows, stop: Rows) -> tuple[Rows, Rows]:
    """Return all places of some ranges, each after the number of its range.

    >>> [part.tolist() for part in spread(np.array([4, 7]), np.array([6, 8]))]
    [[0, 0, 1], [4, 5, 7]]
    """
    sizes = stop - start
    at = np.repeat(np.arange(len(start)), sizes)
    return at, np.arange(len(at)) + np.repeat(start - (np.cumsum(sizes) - sizes), sizes)


def are_among(numbers: Ticks, ordered: Ticks) -> NDArray[np.bool_]:
    """Say which numbers are some of others, which are in order.

    >>> are_among(np.array([5, 1, 9]), np.array([1, 5])).tolist(), are_among(np.array([5]), np.array([], dtype=np.int64)).tolist()
    ([True, True, False], [False])
    """
    if not len(ordered):
        return np.zeros(len(numbers), dtype=np.bool_)
    found: NDArray[np.bool_] = ordered[np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)] == numbers
    return found


def counted_runs(ordered: Ticks) -> tuple[Ticks, Ticks]:
    """Return the distinct ones of sorted numbers, and how often each is there.

    >>> [column.tolist() for column in counted_runs(np.array([5, 7, 7]))]
    [[5, 7], [1, 2]]
    """
    starts = run_starts(ordered)
    counts = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=counts[:-1])
    counts[-1:] = len(ordered) - starts[-1:]
    return ordered[starts], counts


def _is_first(ordered: Column) -> NDArray[np.bool_]:
    """Say which of some sorted numbers differ from the one before."""
    is_first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return is_first


class _Packed(NamedTuple):
    """Pairs as one integer each."""

    flat: Ticks
    lowest: int
    other: int
    width: int

    def parts(self, flat: Ticks) -> tuple[Ticks, Ticks]:
        """Return the pairs that integers stand for."""
        first = flat // self.width
        return first + self.lowest, flat - first * self.width + self.other


def _packed(first: Ticks, second: Ticks) -> _Packed | None:
    """Return pairs as integers, None if they lie too far apart."""
    (lowest, span), (other, width) = span_of([first]), span_of([second])
    if span * width >= 2**62:
        return None
    return _Packed((first - lowest) * width + (second - other), lowest, other, width)


def few_pairs(first: Ticks, second: Ticks) -> DistinctPairs | None:
    """Return the distinct pairs of rows if not many more than rows are possible, found without sorting; else None."""
    if len(first) < 2:
        return None
    (lowest, span), (other, width) = span_of([first]), span_of([second])
    if span * width > 4 * len(first) + 64:
        return None
    flat = (second - other) + (first - lowest) * width if span > 1 else second - other
    index, found = dense_codes(flat, span * width)
    return DistinctPairs(index, found // width + lowest, found % width + other)


def span_of(*columns: Sequence[Ticks]) -> tuple[int, int]:
    """Return the least of some numbers, and how many there are from that to the largest; there is at least one."""
    parts = [part for column in columns for part in column]
    lowest = min(int(part.min()) for part in parts)
    return lowest, max(int(part.max()) for part in parts) - lowest + 1


def _sorted(flat: Ticks) -> tuple[Rows, Ticks]:
    order = stable_order(flat)
    ordered = flat[order]
    is_first = _is_first(ordered)
    index = np.empty(len(flat), dtype=np.intp)
    index[order] = np.cumsum(is_first) - 1
    return index, ordered[flatnonzero(is_first)]


def _ranked_pairs(first: Ticks, second: Ticks) -> DistinctPairs:
    """Take the ranks of values that lie too far apart for their differences to be multiplied."""
    (ranks, known), (other_ranks, other_known) = _sorted(first), _sorted(second)
    pairs = distinct_pairs(ranks, other_ranks)
    return DistinctPairs(pairs.index, known[pairs.first], other_known[pairs.second])
