"""Combining: the terms of a slice's rows are summed up by group and window, before any window is looked up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from streamdsl.engine.columnar.accumulator_columns import AccumulatorColumns
from streamdsl.engine.columnar.pending import Pending
from streamdsl.engine.columnar.terms import ROWS, Terms
from streamdsl.engine.pairs import counted_runs, distinct_pairs, span_of, spread
from streamdsl.engine.sorting import ascending, stable_order
from streamdsl.engine.window_budget import WindowBudget
from streamdsl.expr.encoding import integer_codes, ordered_codes
from streamdsl.expr.table import flatnonzero
from streamdsl.temporal.time import Ticks

_BITS: Final = 63


class Combined(NamedTuple):
    """Sums by group and window number."""

    groups: Ticks
    numbers: Ticks
    totals: AccumulatorColumns


def combine_windows(parts: Sequence[Pending], budget: WindowBudget) -> Combined:
    """Return what rows add to windows, which are charged to the budget. Each row covers at least one, and none without end."""
    block = _Block.of(parts)
    if block.is_dense and all(map(_is_plain, parts)):
        return _dense(parts, block)
    are_single = all(part.is_single for part in parts)
    if are_single and block.is_packable:
        return _packed(parts, block)
    rows = Pending.concat(parts)
    if are_single:
        pairs = distinct_pairs(rows.lo, rows.groups)
        totals = AccumulatorColumns(len(pairs))
        totals.add(pairs.index, rows.terms)
        return Combined(pairs.second, pairs.first, totals)
    return _between_deltas(rows.groups, rows.lo, rows.hi, rows.terms, budget)


class _Block(NamedTuple):
    """The rectangle of windows and groups from the least to the largest of some rows."""

    rows: int
    first: int
    n: int
    lowest: int
    width: int

    @staticmethod
    def of(parts: Sequence[Pending]) -> _Block:
        """Return the block of some rows, with one more window at its end."""
        first = min(part.first for part in parts)
        n = max(part.stop for part in parts) - first + 1
        return _Block(sum(len(part.lo) for part in parts), first, n, *span_of([part.groups for part in parts]))

    @property
    def is_dense(self) -> bool:
        """Whether it has not many more places than there are rows."""
        return (self.n + 1) * self.width <= 2 * self.rows + 1024

    @property
    def bits(self) -> int:
        """The bits of a group's place."""
        return (self.width - 1).bit_length()

    @property
    def is_packable(self) -> bool:
        """Whether a window and a group fit into one integer."""
        return self.n.bit_length() + self.bits < _BITS


def _dense(parts: Sequence[Pending], block: _Block) -> Combined:
    """Sum up rows in an array with a place for each window and group."""
    totals = AccumulatorColumns((block.n + 1) * block.width)
    is_single = all(part.is_single for part in parts)
    for part in parts:
        totals.add(_flat(part.lo, part.groups, block), part.terms)
        if not is_single:
            totals.add(_flat(part.hi, part.groups, block), -part.terms)
    if not is_single:
        totals.cumulate(block.width)
    found = flatnonzero(totals.counts(ROWS))
    return Combined(found % block.width + block.lowest, found // block.width + block.first, totals.take(found))


def _flat(numbers: Ticks, groups: Ticks, block: _Block) -> Ticks:
    """Return the place of each window and group in the block."""
    places = numbers - block.first
    places *= block.width
    places += groups
    places -= block.lowest
    return places


def _packed(parts: Sequence[Pending], block: _Block) -> Combined:
    """Sum up rows by integers that hold both the window and the group: sorted if rows are only counted, else hashed."""
    flat = np.empty(block.rows, dtype=np.int64)
    stops = np.cumsum([len(part.lo) for part in parts]).tolist()
    for part, stop in zip(parts, stops, strict=True):
        places = flat[stop - len(part.lo) : stop]
        np.subtract(part.lo, block.first, out=places)
        places <<= block.bits
        places += part.groups
        places -= block.lowest
    if all(part.terms.counts_rows for part in parts):
        found, counts = counted_runs(ascending(flat))
        totals = AccumulatorColumns(len(counts))
        for term in parts[0].terms.parts:
            totals.add_sums(term.column, counts, block.rows)
    else:
        index, found = integer_codes(flat)
        totals = AccumulatorColumns(len(found))
        for part, stop in zip(parts, stops, strict=True):
            totals.add(index[stop - len(part.lo) : stop], part.terms)
    return Combined((found & ((1 << block.bits) - 1)) + block.lowest, (found >> block.bits) + block.first, totals)


def _is_plain(part: Pending) -> bool:
    """Say whether rows only add numbers, so that a window with rows has a positive number of rows."""
    return part.signs is None and not part.terms.non_numeric


def _between_deltas(groups: Ticks, lo: Ticks, hi: Ticks, terms: Terms, budget: WindowBudget) -> Combined:
    """Sum up the deltas of each group: all windows between two of them are equal. The order is by window, then group."""
    codes, known = ordered_codes(groups)
    pairs = distinct_pairs(np.concatenate([codes, codes]), np.concatenate([lo, hi]))
    starting, ending = pairs.index[: len(lo)], pairs.index[len(lo) :]
    totals = AccumulatorColumns(len(pairs))
    totals.add(starting, terms)
    totals.add(ending, -terms)
    totals.cumulate()
    begun, ended = np.bincount(starting, minlength=len(pairs)), np.bincount(ending, minlength=len(pairs))
    covered = flatnonzero(np.cumsum(begun - ended))
    first, stop = pairs.second[covered], pairs.second[covered + 1]
    budget.take(int((stop - first).sum()))
    at, numbers = spread(first, stop)
    order = stable_order(numbers)
    positions = covered[at[order]]
    return Combined(known[pairs.first[positions]], numbers[order], totals.take(positions))
