"""The built-in aggregates that need all members of a window at once, over many windows at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.buffered.runs import spread
from streamdsl.engine.codes import factorise
from streamdsl.engine.sorting import ascending, sorted_integers, stable_order
from streamdsl.expr.table import Column, Rows, column_of, flatnonzero, object_column
from streamdsl.temporal.alike import unique
from streamdsl.udm.builtin import Builtin, Collect, CountDistinct, First, Last, Max, Median, Min, Quantile

_ROOM: Final = 2**62
LONG: Final = 256
"""With so many members, a window by itself costs less than windows together."""


class Chosen(NamedTuple):
    """Which of some rows values are of; a row is there more than once where it is in several windows."""

    column: Column
    places: Rows


class Segments(NamedTuple):
    """The values of windows, none of them None: those of window i are `values[lo[i]:hi[i]]`, of which there is at least one."""

    values: Column
    lo: Rows
    hi: Rows
    chosen: Chosen | None = None

    @property
    def are_long(self) -> bool:
        """Whether windows have many values, or share them."""
        return self.n_members > max(LONG * len(self.lo), 2 * len(self.values))

    @property
    def n_members(self) -> int:
        """How many values all windows have together."""
        return int((self.hi - self.lo).sum())

    def numbered(self, number: Callable[[Column], Rows]) -> Rows:
        """Return a number for each value, found once for each row where many are in several windows."""
        if self.chosen is None or len(self.chosen.column) > len(self.values):
            return number(self.values)
        numbers: Rows = number(self.chosen.column)[self.chosen.places]
        return numbers

    def packed(self, numbers: Rows) -> tuple[Column, Column]:
        """Return numbers that are not negative in order, window after window, and what is to be taken from each of a window."""
        at, places = spread(self.lo, self.hi)
        span = int(numbers.max()) + 1
        bases = at * span
        return ascending(bases + numbers[places]), bases


Holistic: TypeAlias = Callable[[Any, Segments], Column | None]
"""The results of an aggregate's windows; None if these values are not for columns."""


def smallest(function: Min, found: Segments) -> Column | None:
    """Return the smallest values; NaN counts as the largest.

    >>> smallest(Min(), Segments(np.array([3, 1, 2]), np.array([0, 1]), np.array([2, 3]))).tolist()
    [1, 1]
    """
    if found.values.dtype == object:
        return None
    return _reduced(np.fmin if found.values.dtype.kind == "f" else np.minimum, found)


def largest(function: Max, found: Segments) -> Column | None:
    """Return the largest values; NaN counts as the largest."""
    return None if found.values.dtype == object else _reduced(np.maximum, found)


def _reduced(best: np.ufunc, found: Segments) -> Column:
    values, lo, hi, _ = found
    if int((hi - lo).sum()) > 16 * len(values):
        return _from_blocks(best, found)
    order = stable_order(lo)  # what is between windows is reduced too
    bounds = np.stack([lo[order], hi[order]], axis=1).reshape(-1)
    results = np.empty(len(lo), dtype=values.dtype)
    results[order] = best.reduceat(np.concatenate([values, values[:1]]), bounds)[::2]
    return results


def _from_blocks(best: np.ufunc, found: Segments) -> Column:
    """Put each window together from two blocks of 2 ** n values, which may overlap."""
    blocks, lo, hi, _ = found
    levels = np.frexp((hi - lo).astype(np.float64))[1] - 1
    results = np.empty(len(lo), dtype=blocks.dtype)
    for level in range(int(levels.max()) + 1):
        if level:
            half = 2 ** (level - 1)
            blocks = best(blocks[:-half], blocks[half:])
        at = flatnonzero(levels == level)
        results[at] = best(blocks[lo[at]], blocks[hi[at] - 2**level])
    return results


def quantiles(function: Quantile, found: Segments) -> Column | None:
    """Return the quantiles, of integers integers where they need not be interpolated.

    >>> quantiles(Median(), Segments(np.array([4, 1, 2]), np.array([0, 1]), np.array([2, 3]))).tolist()
    [2.5, 1.5]
    """
    values = found.values
    if values.dtype == object or values.dtype == np.bool_ or _is_wide(values):
        return None
    places, shares = _positions(function, found.hi - found.lo)
    low, high = _ordered_at(found, places, shares > 0)
    is_between = (shares > 0) & (low != high)
    with np.errstate(invalid="ignore"):
        between = low + (high - low) * shares
    if values.dtype.kind == "f" or not is_between.any():
        return np.where(is_between, between, low).astype(values.dtype)
    if is_between.all():
        return between
    return object_column([b if far else a for a, b, far in zip(low.tolist(), between.tolist(), is_between.tolist(), strict=True)])


def _is_wide(values: Column) -> bool:
    """Say whether differences of integers may be too large for columns."""
    return values.dtype.kind == "i" and (int(values.min()) < -(2**52) or int(values.max()) > 2**52)


def _positions(function: Quantile, sizes: Rows) -> tuple[Rows, NDArray[np.float64]]:
    """Return where in order each window's quantile is, and how far on the way to the next value."""
    known = unique(sizes.tolist())
    places, shares = np.zeros(max(known) + 1, dtype=np.intp), np.zeros(max(known) + 1)
    for size in known:
        place, share = function.position(size)
        places[size], shares[size] = place, float(share)
    return places[sizes], shares[sizes]


def _ordered_at(found: Segments, places: Rows, with_next: NDArray[np.bool_]) -> tuple[Column, Column]:
    """Return the values at some place in the order of each window, and those after them where they are asked for."""
    values, lo, hi, _ = found
    if not found.are_long:
        ordered, first = _sorted_apart(found)
        at = first + places
        return ordered[at], ordered[at + with_next]
    low, high = np.empty(len(lo), dtype=values.dtype), np.empty(len(lo), dtype=values.dtype)
    spans = zip(lo.tolist(), hi.tolist(), places.tolist(), with_next.tolist(), strict=True)
    for n, (start, stop, place, has_next) in enumerate(spans):
        part = np.partition(values[start:stop], place)
        low[n] = high[n] = part[place]
        if has_next:
            rest = part[place + 1 :]
            high[n] = np.fmin.reduce(rest) if values.dtype.kind == "f" else rest.min()
    return low, high


def _sorted_apart(found: Segments) -> tuple[Column, Rows]:
    """Return the values of each window in order, window after window, and where each begins."""
    sizes = found.hi - found.lo
    first = np.cumsum(sizes) - sizes
    known = found.values if found.chosen is None or len(found.chosen.column) > len(found.values) else found.chosen.column
    if known.dtype.kind == "i" and (int(known.max()) - int(known.min()) + 1) * len(sizes) < _ROOM:
        low = int(known.min())
        packed, bases = found.packed(found.values - low)
        return packed - bases + low, first
    order = np.argsort(known)
    packed, bases = found.packed(found.numbered(lambda column: _ranks(order)))
    return known[order[packed - bases]], first


def _ranks(order: Rows) -> Rows:
    """Return the rank of each value, given an order of all."""
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return ranks


def distinct_counts(function: CountDistinct, found: Segments) -> Column:
    """Return how many different values there are: those that no equal one stands before in the window.

    >>> distinct_counts(CountDistinct(), Segments(np.array([1, 2, 1]), np.array([0, 1]), np.array([3, 3]))).tolist()
    [2, 2]
    """
    codes = found.numbered(factorise)
    if found.n_members <= 2 * len(codes):
        packed, _ = found.packed(codes)
        is_new = np.concatenate([[True], packed[1:] != packed[:-1]])
        return np.add.reduceat(is_new, np.cumsum(found.hi - found.lo) - (found.hi - found.lo), dtype=np.int64)
    before = _places_before(codes)
    if found.are_long:
        spans = zip(found.lo.tolist(), found.hi.tolist(), strict=True)
        return np.array([np.count_nonzero(before[lo:hi] < lo) for lo, hi in spans], dtype=np.int64)
    at, places = spread(found.lo, found.hi)
    return np.bincount(at[flatnonzero(before[places] < found.lo[at])], minlength=len(found.lo)).astype(np.int64)


def _places_before(codes: Rows) -> Rows:
    """Return for each value the place of the last equal one before it, -1 where there is none."""
    order, ordered = sorted_integers(codes)
    before = np.full(len(codes), -1, dtype=np.intp)
    same = flatnonzero(ordered[1:] == ordered[:-1])
    before[order[same + 1]] = order[same]
    return before


def first_values(function: First, found: Segments) -> Column:
    """Return the first values."""
    return _chosen(found.values, found.lo)


def last_values(function: Last, found: Segments) -> Column:
    """Return the last values."""
    return _chosen(found.values, found.hi - 1)


def _chosen(values: Column, at: Rows) -> Column:
    return column_of(values[at].tolist()) if values.dtype == object else values[at]


def lists(function: Collect, found: Segments) -> Column:
    """Return the lists of all values."""
    values: list[Any] = found.values.tolist()
    return object_column([values[lo:hi] for lo, hi in zip(found.lo.tolist(), found.hi.tolist(), strict=True)])


HOLISTIC: Final[dict[type[Builtin], Holistic]] = {
    Min: smallest,
    Max: largest,
    Quantile: quantiles,
    Median: quantiles,
    CountDistinct: distinct_counts,
    First: first_values,
    Last: last_values,
    Collect: lists,
}
"""The built-ins that are computed over many windows at once, where their values allow it."""
