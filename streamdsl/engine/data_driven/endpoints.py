"""Endpoints: what a batch of changed rows adds at each start and end of a lifetime, summed by group and time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.columnar.accumulator_columns import AccumulatorColumns
from streamdsl.engine.columnar.digits import parts_of
from streamdsl.engine.columnar.terms import ROWS, Terms
from streamdsl.engine.data_driven.packing import Packing
from streamdsl.engine.sorting import sorted_integers
from streamdsl.expr.table import Column, Rows, flatnonzero
from streamdsl.temporal.time import INFINITY, Ticks


@dataclass(frozen=True, slots=True)
class SignedRows:
    """Rows that now are (1), or no longer are (-1), in `[lo, hi)`, and what they add to the totals there."""

    codes: Rows
    lo: Ticks
    hi: Ticks
    signs: Ticks
    is_whole: Column
    """Whether the row is inserted or fully retracted: then its LE is an endpoint more or less."""
    terms: Terms
    are_new: bool

    @classmethod
    def of(cls, batch: Batch, codes: Rows, terms: Terms) -> SignedRows:
        """Return the changes of a batch."""
        if (batch.re_old == batch.le).all():
            always = np.ones(len(batch), dtype=np.int64)
            return cls(codes, batch.le, batch.re_new, always, always > 0, terms, are_new=True)
        lo, hi = np.minimum(batch.re_old, batch.re_new), np.maximum(batch.re_old, batch.re_new)
        return cls(codes, lo, hi, np.where(batch.re_new > batch.re_old, 1, -1), lo == batch.le, terms, are_new=False)


@dataclass(frozen=True, slots=True)
class Deltas:
    """By group and time, in order: the change in the number of endpoints, and what `totals` change by from then on.

    INFINITY is a time too.
    """

    numbers: Column
    codes: Rows
    times: Ticks
    endpoints: Ticks
    totals: AccumulatorColumns
    changed: SignedRows
    _order: Rows
    _lasts: Rows

    def __len__(self) -> int:
        return len(self.times)

    def around(self) -> Ticks:
        """Return the number of changed rows that live at each time."""
        return _around(self._order, self.changed.terms.size, self._lasts)


class SummedWindows(NamedTuple):
    """Windows with rows, and their totals."""

    codes: Rows
    le: Ticks
    re: Ticks
    totals: AccumulatorColumns


def spans_of(deltas: Deltas, until: int) -> SummedWindows:
    """Return the windows that end by `until`, given that only the rows of the deltas exist."""
    deltas.totals.cumulate()
    is_place = (deltas.endpoints > 0) | (deltas.times == INFINITY)
    places = np.arange(len(deltas)) if is_place.all() else flatnonzero(is_place)
    re = deltas.times[places[1:]]
    at = flatnonzero((deltas.totals.counts(ROWS)[places[:-1]] > 0) & (re <= until))
    rows = places[at]
    return SummedWindows(deltas.codes[rows], deltas.times[rows], re[at], deltas.totals.take(rows))


def deltas_of(changed: SignedRows, packing: Packing) -> Deltas:
    """Sum up what the rows change at both of their ends."""
    numbers = np.concatenate([packing.numbers(changed.codes, changed.lo), packing.numbers(changed.codes, changed.hi)])
    order, ordered = sorted_integers(numbers)
    is_last = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_last[:-1])
    lasts = flatnonzero(is_last)
    found = ordered[lasts]
    if changed.are_new:
        endpoints = np.diff(lasts, prepend=-1)
        terms = changed.terms
    else:
        ends = np.concatenate([np.where(changed.is_whole, changed.signs, -changed.signs), changed.signs])
        endpoints = np.diff(np.cumsum(ends[order])[lasts], prepend=0)
        terms = changed.terms.times(changed.signs)
    return Deltas(found, *packing.places(found), endpoints, _totals(terms, order, lasts), changed, order, lasts)


def _totals(terms: Terms, order: Rows, lasts: Rows) -> AccumulatorColumns:
    """Return what rows add at their first ends and subtract at their second ones, by time."""
    totals = AccumulatorColumns(len(lasts))
    parts = list(parts_of(terms))
    rest = Terms(terms.size, [part for part in parts if part.rows is not None], terms.non_numeric)
    for part in parts:
        if part.rows is None:
            sums = _around(order, terms.size, lasts) if part.amounts is None else np.cumsum(_both(part.amounts, order))[lasts]
            totals.add_sums(part.column, np.diff(sums, prepend=0), part.largest * len(order))
    if rest.parts or rest.non_numeric:
        index = np.empty(len(order), dtype=np.intp)
        index[order] = np.repeat(np.arange(len(lasts)), np.diff(lasts, prepend=-1))
        totals.add(index[: terms.size], rest)
        totals.add(index[terms.size :], -rest)
    return totals


def _both(amounts: Ticks, order: Rows) -> Ticks:
    """Return what rows add, then what they subtract, in some order."""
    return np.concatenate([amounts, -amounts])[order]


def _around(order: Rows, size: int, lasts: Rows) -> Ticks:
    """Return how many of `size` rows live at some times, given the order of all starts, followed by all ends."""
    begun: Ticks = np.cumsum(order < size, dtype=np.int64)[lasts]
    return 2 * begun - lasts - 1
