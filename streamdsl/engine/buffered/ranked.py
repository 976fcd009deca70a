"""The largest rows of windows, ranked for all of them at once."""

from __future__ import annotations

from datetime import date
from typing import Final, NamedTuple

import numpy as np

from streamdsl.engine.buffered.members import MemberPairs, Members, Values
from streamdsl.engine.buffered.modules import AggregatedWindows, MemberAggregate
from streamdsl.engine.buffered.runs import as_integers
from streamdsl.engine.sorting import stable_order
from streamdsl.expr.deferred import AnyColumn, DeferredColumn, with_parts
from streamdsl.expr.encoding import ordered_codes
from streamdsl.expr.lists import ListSource
from streamdsl.expr.nested import field_of_nested, is_nested, nested
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Rows, Table, column_of, flatnonzero
from streamdsl.temporal.time import Ticks
from streamdsl.temporal.value_arrays import distinct

_IN_ORDER: Final = (str, date)
"""Types of which the values have an order, and are equal where neither is before the other."""


class _Ranks(NamedTuple):
    """Which members have a value, and the rank of each: 0 for the largest, equal for equal ones."""

    at: Rows
    ranks: Rows


class RankedAggregate(MemberAggregate):
    """`top_k`: chooses the largest rows, as `(value, row)` in columns."""

    keeps_parts = True

    def results(self, requested: AggregatedWindows) -> AnyColumn:
        members = requested.members(self.order)
        part = requested.rows.argument_part(self._argument)[members.places]
        found = _ranks(field_of_nested(part, "_0")) if is_nested(part) else None
        if found is not None:
            return self._of_ranks(found, field_of_nested(part, "_1"), members)
        column = part.column if isinstance(part, DeferredColumn) else part
        return column_of(self._of_each(Values(column, members), requested))

    def _of_ranks(self, found: _Ranks, rows: AnyColumn, members: Members) -> AnyColumn:
        order = stable_order(found.ranks)
        members, ranks, rows = members.only(found.at[order]), found.ranks[order], rows[found.at[order]]
        at, places, sizes = _largest(_candidates(members, ranks, self.function.k), ranks, self.function.k, members.n_windows)
        items = rows[at]
        if self.function.rank:
            items = nested(Table(Schema.tuple(2), with_parts({"_0": places, "_1": items}), len(places)))
        stops = np.cumsum(sizes)
        return DeferredColumn(ListSource(items, stops - sizes, stops))


def _ranks(values: AnyColumn) -> _Ranks | None:
    """Return the ranks of values, None if Python must compare them. NaN is the largest, None has no rank."""
    column = values.column if isinstance(values, DeferredColumn) else values
    at = np.arange(len(column))
    if column.dtype == object:
        listed = column.tolist()
        at = flatnonzero(np.array([value is not None for value in listed], dtype=np.bool_))
        column = column_of([value for value in listed if value is not None])
    if column.dtype != object:
        ranks, known = ordered_codes(as_integers(column))
        return _Ranks(at, len(known) - 1 - ranks)
    listed = column.tolist()
    if len(kinds := distinct(map(type, listed))) > 1 or not kinds <= {*_IN_ORDER}:
        return None
    places = {value: place for place, value in enumerate(sorted(set(listed), reverse=True))}
    return _Ranks(at, np.fromiter(map(places.__getitem__, listed), dtype=np.intp, count=len(listed)))


def _candidates(members: Members, ranks: Rows, k: int) -> MemberPairs:
    """Return windows with rows that may be among their k largest, the largest first: of most windows few rows are looked at.

    Members are in the order of `ranks`. As many are taken at a time as fill their windows twice over if they are spread evenly;
    of what is left only windows are looked at that are not full yet, in which fewer than k rows are as large as those so far.
    """
    left, windows = Members(np.arange(len(ranks)), members.first, members.last, members.n_windows), np.arange(members.n_windows)
    counts, each, found = np.zeros(len(windows), dtype=np.int64), 2 * k, [MemberPairs(windows[:0], windows[:0])]
    while len(left.places):
        stop = int(np.searchsorted(np.cumsum(left.last - left.first), each * len(windows))) + 1
        ordered = ranks[left.places]
        stop = int(np.searchsorted(ordered, ordered[min(stop, len(ordered)) - 1], side="right"))  # equal ones all at once
        part = left.only(np.arange(stop))
        at, rows = part.pairs()
        found.append(MemberPairs(windows[at], part.places[rows]))
        counts[windows] += part.sizes
        open_ = flatnonzero(counts[windows] < k)
        left, windows, each = left.only(np.arange(stop, len(ordered))).at(open_), windows[open_], 2 * each
    return MemberPairs(*map(np.concatenate, zip(*found, strict=True)))


def _largest(pairs: MemberPairs, ranks: Rows, k: int, n_windows: int) -> tuple[Rows, Ticks, Ticks]:
    """Return the largest rows of windows, window by window, with their ranks, and the number of rows of each window."""
    order = stable_order(pairs.windows)
    at, sizes = pairs.places[order], np.bincount(pairs.windows, minlength=n_windows)
    starts = np.cumsum(sizes) - sizes
    values, places = ranks[at], np.arange(len(at))
    is_first = np.append(True, values[1:] != values[:-1])[: len(at)]
    is_first[starts[sizes > 0]] = True
    places = np.maximum.accumulate(np.where(is_first, places, 0)) - np.repeat(starts, sizes)
    chosen = flatnonzero(places < k)
    windows = np.repeat(np.arange(n_windows), sizes)[chosen]
    return at[chosen], places[chosen] + 1, np.bincount(windows, minlength=n_windows)
