"""Rows in order of (group, LE): sorted runs, each at least about twice as long as the next, so that adding is cheap."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.buffered.group_times import ROOM, GroupTimes
from streamdsl.engine.buffered.row_table import RowTable
from streamdsl.engine.order import payload_keys
from streamdsl.engine.sorting import sorted_integers
from streamdsl.expr.table import Column, Rows, flatnonzero
from streamdsl.temporal.time import Ticks

SHORT: Final = 256
"""A shorter run is sorted again, together with new rows."""


class Order(enum.Enum):
    """The order of rows with the same group and LE."""

    ANY = enum.auto()
    END = enum.auto()
    """By (RE, payload), as modules get members."""
    PAYLOAD = enum.auto()
    """By (payload, RE), as modules get them that need an order."""


def by_keys(places: Rows, keys: Ticks) -> tuple[Rows, Ticks]:
    """Return places in order of some keys, and the keys in this order."""
    if (keys[1:] >= keys[:-1]).all():
        return places, keys
    order, ordered = sorted_integers(keys)
    return places[order], ordered


def in_order(rows: RowTable, places: Rows, keys: Ticks, order: Order) -> Rows:
    """Return places in order of some keys, ties as `order` says."""
    places, keys = by_keys(places, keys)
    return places if order is Order.ANY else _untied(rows, places, keys, flatnonzero(keys[1:] == keys[:-1]), order)


def _untied(rows: RowTable, places: Rows, keys: Ticks, tied: Rows, order: Order) -> Rows:
    """Return places with ties in order; all but the last row of each tie are at `tied`."""
    if not len(tied) or rows.payloads is None:
        return places
    is_tied = np.zeros(len(keys), dtype=np.bool_)
    is_tied[tied] = is_tied[tied + 1] = True
    at = flatnonzero(is_tied)
    among = places[at]
    columns: list[Column] = payload_keys(rows.payloads.take(among))
    le, ends = rows.le[among], rows.re[among]
    if int(ends.max()) - int(le.min()) < ROOM:
        ends = ends - le  # as good, and all the same where rows are points
    columns = [ends, *columns] if order is Order.END else [*columns, ends]
    places = places.copy()
    places[at] = among[_refined(keys[at], columns)]
    return places


def _refined(keys: Ticks, columns: Sequence[Column]) -> Rows:
    """Return an order of rows, which are in order of `keys`, by these and then by columns, the first decides.

    >>> _refined(np.array([4, 4, 4, 7]), [np.array([0, 0, 0, 0]), np.array([2.5, -1.0, 0.0, 9.0])]).tolist()
    [1, 2, 0, 3]
    """
    order = np.arange(len(keys))
    ranks = _ranked(keys[1:] != keys[:-1])
    for column in columns:
        values = as_integers(column)[order]
        low, span = int(values.min()), int(values.max()) - int(values.min()) + 1
        if span == 1:
            continue
        if int(ranks[-1] + 1) * span < ROOM:
            packed = ranks * span + (values - low)
            sorting, _ = sorted_integers(packed)
        else:
            sorting = np.lexsort((values, ranks))
        order, values = order[sorting], values[sorting]
        ranks = _ranked((ranks[1:] != ranks[:-1]) | (values[1:] != values[:-1]))
        if int(ranks[-1]) == len(ranks) - 1:
            break
    return order


def _ranked(differs: NDArray[np.bool_]) -> Rows:
    """Return the rank of each row, given which differ from the one before."""
    return np.concatenate([[0], np.cumsum(differs)])


def as_integers(column: Column) -> Ticks:
    """Return integers with the order of a column's numbers: NaN is the largest, and 0.0 is -0.0."""
    if column.dtype.kind != "f":
        return column.astype(np.int64, copy=False)
    known = np.where(np.isnan(column), np.nan, column + 0.0)
    bits = known.view(np.int64)
    integers: Ticks = np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
    return integers


class PlaceRun:
    """Some rows in order of (group, LE)."""

    __slots__ = ("_rows", "_times", "keys", "places")

    def __init__(self, rows: RowTable, places: Rows) -> None:
        self._rows = rows
        self._times = GroupTimes(rows.groups[places], rows.le[places])
        self.places, self.keys = by_keys(places, self._times.pack(rows.groups[places], rows.le[places]))

    def __len__(self) -> int:
        return len(self.places)

    def merge(self, places: Rows) -> None:
        """Add rows."""
        rows = self._rows
        groups, le = rows.groups[places], rows.le[places]
        if not self._times.fits(groups, le):
            known = rows.groups[self.places], rows.le[self.places]
            self._times = GroupTimes(np.concatenate([known[0], groups]), np.concatenate([known[1], le]))
            self.keys = self._times.pack(*known)
        places, keys = by_keys(places, self._times.pack(groups, le))
        at = np.searchsorted(self.keys, keys, "right") + np.arange(len(keys))
        self.places, self.keys = _inserted(self.places, places, at), _inserted(self.keys, keys, at)

    def ranges(self, groups: Ticks, lo: Ticks, hi: Ticks) -> tuple[Rows, Rows]:
        """Return the range of each group with LE in `[lo, hi)`."""
        return self._times.ranges(self.keys, groups, lo, hi)


def _inserted(column: Column, values: Column, at: Rows) -> Column:
    """Return a column with values inserted, so that they then are at these places."""
    first = int(at[0])
    longer = np.empty(len(column) + len(values), dtype=column.dtype)
    longer[:first] = column[:first]
    is_old = np.ones(len(longer) - first, dtype=np.bool_)
    is_old[at - first] = False
    longer[at] = values
    longer[first:][is_old] = column[first:]
    return longer


class SortedRows:
    """Places of a table in sorted runs. New places are in none until the next read."""

    def __init__(self, rows: RowTable) -> None:
        self._rows = rows
        self._new: list[Rows] = []
        self._runs: list[PlaceRun] = []

    def __len__(self) -> int:
        return sum(map(len, self._new)) + sum(map(len, self._runs))

    def add(self, places: Rows) -> None:
        """Add rows."""
        if len(places):
            self._new.append(places)

    @property
    def runs(self) -> list[PlaceRun]:
        """All rows, in runs. Removed ones may be among them."""
        if self._new:
            self._sort_new()
        return self._runs

    def _sort_new(self) -> None:
        places, self._new = np.concatenate(self._new), []
        if self._runs and len(self._runs[-1]) < max(2 * len(places), SHORT):
            self._runs[-1].merge(places)
        else:
            self._runs.append(PlaceRun(self._rows, places))
        while len(self._runs) > 1 and len(self._runs[-2]) < max(2 * len(self._runs[-1]), SHORT):
            self._merge_last()

    def _merge_last(self) -> None:
        """Merge the last run with the one before it."""
        last, before = self._runs.pop(), self._runs.pop()
        small, large = sorted((last, before), key=len)
        large.merge(small.places)
        self._runs.append(large)

    def renumber(self, places: Rows) -> None:
        """Move rows to other places: `places[i]` is that of row i, -1 drops it."""
        old = [*self._new, *(run.places for run in self._runs)]
        left = places[np.concatenate([np.empty(0, dtype=np.intp), *old])]
        self._new, self._runs = [], []
        self.add(left[flatnonzero(left >= 0)])
