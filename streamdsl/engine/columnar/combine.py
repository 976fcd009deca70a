"""Combining: what the rows of a slice add to windows, summed per group and window before anything is looked up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamdsl.engine.columnar.lanes import Lanes, Terms
from streamdsl.engine.columnar.numbers import ENDLESS
from streamdsl.expr.table import Rows
from streamdsl.temporal.time import Ticks


class Combined(NamedTuple):
    """Sums by group and window number, in order: those at `positions` of `lanes`."""

    codes: Rows
    numbers: Ticks
    lanes: Lanes
    positions: Rows


@dataclass(frozen=True, slots=True)
class Pairs:
    """The distinct pairs of two columns, in order of the first, then of the second, and which of them each row has."""

    index: Rows
    first: Ticks
    second: Ticks

    def __len__(self) -> int:
        return len(self.first)


def distinct_pairs(first: Ticks, second: Ticks) -> Pairs:
    """Return the distinct pairs of rows. If few are possible they are marked in an array, else sorted.

    >>> pairs = distinct_pairs(np.array([1, 0, 1]), np.array([5, 5, 5]))
    >>> pairs.index.tolist(), pairs.first.tolist(), pairs.second.tolist()
    ([1, 0, 1], [0, 1], [5, 5])
    """
    if not len(first):
        return Pairs(first, first, second)
    (lowest, span), (other, width) = _spread_of(first), _spread_of(second)
    if span * width >= 2**62:
        return _ranked_pairs(first, second)
    flat = (first - lowest) * width + (second - other)
    index, found = _marked(flat, span * width) if span * width <= 4 * len(flat) + 1024 else _sorted(flat)
    return Pairs(index, found // width + lowest, found % width + other)


def _spread_of(values: Ticks) -> tuple[int, int]:
    lowest = int(values.min())
    return lowest, int(values.max()) - lowest + 1


def _marked(flat: Ticks, size: int) -> tuple[Rows, Ticks]:
    place = np.zeros(size, dtype=np.intp)
    place[flat] = 1
    found = np.flatnonzero(place)
    place[found] = np.arange(len(found))
    return place[flat], found


def _sorted(flat: Ticks) -> tuple[Rows, Ticks]:
    order = np.argsort(flat)
    ordered = flat[order]
    is_first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    index = np.empty(len(flat), dtype=np.intp)
    index[order] = np.cumsum(is_first) - 1
    return index, ordered[np.flatnonzero(is_first)]


def _ranked_pairs(first: Ticks, second: Ticks) -> Pairs:
    """Take the ranks of values that lie too far apart for their differences to be multiplied."""
    (ranks, known), (other_ranks, other_known) = _sorted(first), _sorted(second)
    pairs = distinct_pairs(ranks, other_ranks)
    return Pairs(pairs.index, known[pairs.first], other_known[pairs.second])


def combine_deltas(codes: Rows, lo: Ticks, hi: Ticks, terms: Terms) -> Combined:
    """Return what is added where each row's windows begin, and taken out where they end (if they do), window by window."""
    starting, ending, at_codes, at_numbers = _boundaries(codes, lo, hi)
    pairs = distinct_pairs(at_numbers, at_codes)
    return Combined(pairs.second, pairs.first, _delta_lanes(pairs, starting, ending, terms), np.arange(len(pairs)))


def combine_windows(codes: Rows, lo: Ticks, hi: Ticks, terms: Terms) -> Combined:
    """Return what is added to each window that rows cover; no range is endless."""
    inside = np.flatnonzero(lo < hi)
    if (hi[inside] - lo[inside] == 1).all():
        pairs = distinct_pairs(lo[inside], codes[inside])
        lanes = Lanes(len(pairs) + 1)
        lanes.add(_spread(pairs.index, inside, len(pairs), terms), terms)
        return Combined(pairs.second, pairs.first, lanes, np.arange(len(pairs)))
    return _stretches(codes, lo, hi, terms)


def _stretches(codes: Rows, lo: Ticks, hi: Ticks, terms: Terms) -> Combined:
    """Sum up the deltas of each group: between two of them all windows are alike."""
    starting, ending, at_codes, at_numbers = _boundaries(codes, lo, hi)
    pairs = distinct_pairs(at_codes, at_numbers)
    lanes = _delta_lanes(pairs, starting, ending, terms)
    lanes.cumulate()
    begun = np.bincount(pairs.index[: len(starting)], minlength=len(pairs))
    ended = np.bincount(pairs.index[len(starting) :], minlength=len(pairs))
    covered = np.flatnonzero(np.cumsum(begun - ended))
    lengths = pairs.second[covered + 1] - pairs.second[covered]
    positions = np.repeat(covered, lengths)
    offsets = np.arange(len(positions)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return Combined(pairs.first[positions], pairs.second[positions] + offsets, lanes, positions)


def _boundaries(codes: Rows, lo: Ticks, hi: Ticks) -> tuple[Rows, Rows, Rows, Ticks]:
    """Return the rows with windows, those of them whose windows end, and the group and window number of all these places."""
    starting = np.flatnonzero(lo < hi)
    ending = starting[hi[starting] != ENDLESS]
    return starting, ending, np.concatenate([codes[starting], codes[ending]]), np.concatenate([lo[starting], hi[ending]])


def _delta_lanes(pairs: Pairs, starting: Rows, ending: Rows, terms: Terms) -> Lanes:
    lanes = Lanes(len(pairs) + 1)
    lanes.add(_spread(pairs.index[: len(starting)], starting, len(pairs), terms), terms)
    if len(ending):
        lanes.add(_spread(pairs.index[len(starting) :], ending, len(pairs), terms), -terms)
    return lanes


def _spread(index: Rows, rows: Rows, size: int, terms: Terms) -> Rows:
    """Return the position of every row's terms; those of rows that do not count go to one after the last."""
    if len(rows) == terms.size:
        return index
    spread = np.full(terms.size, size, dtype=np.intp)
    spread[rows] = index
    return spread
