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
    """The distinct pairs of group and window number, in order, and which of them each row has."""

    index: Rows
    codes: Rows
    numbers: Ticks


def distinct_pairs(codes: Rows, numbers: Ticks) -> Pairs:
    """Return the distinct pairs of some rows. Few groups x windows are marked in an array, many are sorted.

    >>> pairs = distinct_pairs(np.array([1, 0, 1]), np.array([5, 5, 5]))
    >>> pairs.index.tolist(), pairs.codes.tolist(), pairs.numbers.tolist()
    ([1, 0, 1], [0, 1], [5, 5])
    """
    if not len(codes):
        return Pairs(codes, codes, numbers)
    lowest = int(numbers.min())
    span = int(numbers.max()) - lowest + 1
    size = (int(codes.max()) + 1) * span
    if size >= 2**62:
        return _ranked(codes, numbers)
    flat = codes * span + (numbers - lowest)
    index, found = _marked(flat, size) if size <= 4 * len(flat) + 1024 else _sorted(flat)
    return Pairs(index, found // span, found % span + lowest)


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


def _ranked(codes: Rows, numbers: Ticks) -> Pairs:
    """Take the ranks of window numbers that lie too far apart for their differences to be multiplied."""
    rank, known = _sorted(numbers)
    ranked = distinct_pairs(codes, rank)
    return Pairs(ranked.index, ranked.codes, known[ranked.numbers])


def combine_deltas(codes: Rows, lo: Ticks, hi: Ticks, terms: Terms) -> Combined:
    """Return what is added where each row's windows begin, and taken out where they end (if they do)."""
    return _deltas(codes, lo, hi, terms)[0]


def _deltas(codes: Rows, lo: Ticks, hi: Ticks, terms: Terms) -> tuple[Combined, Ticks]:
    """Return the deltas, and how many rows more cover each window than the one before it."""
    starting = np.flatnonzero(lo < hi)
    ending = starting[hi[starting] != ENDLESS]
    n = len(starting)
    pairs = distinct_pairs(np.concatenate([codes[starting], codes[ending]]), np.concatenate([lo[starting], hi[ending]]))
    size = len(pairs.codes)
    lanes = Lanes(size + 1)
    lanes.add(_spread(pairs.index[:n], starting, size, terms), terms)
    if len(ending):
        lanes.add(_spread(pairs.index[n:], ending, size, terms), -terms)
    cover = np.bincount(pairs.index[:n], minlength=size) - np.bincount(pairs.index[n:], minlength=size)
    return Combined(pairs.codes, pairs.numbers, lanes, np.arange(size)), cover


def combine_windows(codes: Rows, lo: Ticks, hi: Ticks, terms: Terms) -> Combined:
    """Return what is added to each window that rows cover; no range is endless."""
    inside = np.flatnonzero(lo < hi)
    if (hi[inside] - lo[inside] == 1).all():
        pairs = distinct_pairs(codes[inside], lo[inside])
        lanes = Lanes(len(pairs.codes) + 1)
        lanes.add(_spread(pairs.index, inside, len(pairs.codes), terms), terms)
        return Combined(pairs.codes, pairs.numbers, lanes, np.arange(len(pairs.codes)))
    deltas, cover = _deltas(codes, lo, hi, terms)
    deltas.lanes.cumulate()
    return _expanded(deltas, np.flatnonzero(np.cumsum(cover)))


def _expanded(deltas: Combined, covered: Rows) -> Combined:
    """Return each window of the stretches that begin at the covered deltas; each ends where its group's next delta is."""
    lengths = deltas.numbers[covered + 1] - deltas.numbers[covered]
    positions = np.repeat(covered, lengths)
    offsets = np.arange(len(positions)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return Combined(deltas.codes[positions], deltas.numbers[positions] + offsets, deltas.lanes, positions)


def _spread(index: Rows, rows: Rows, size: int, terms: Terms) -> Rows:
    """Return the position of every row's terms; those of rows that do not count go to one after the last."""
    if len(rows) == terms.size:
        return index
    spread = np.full(terms.size, size, dtype=np.intp)
    spread[rows] = index
    return spread
