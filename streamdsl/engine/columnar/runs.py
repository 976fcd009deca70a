"""Rows in order of (group, LE): sorted runs, each at least about twice as long as the next, so that adding is cheap."""

from __future__ import annotations

import enum
from typing import Final

import numpy as np

from streamdsl.engine.columnar.rows import RowTable
from streamdsl.engine.order import payload_keys
from streamdsl.expr.table import Column, Rows
from streamdsl.temporal.time import Ticks

SHORT: Final = 256
"""A run that is shorter is sorted again with what comes."""
_ROOM: Final = 2**62


class Order(enum.Enum):
    """In which order rows with the same group and LE stand."""

    ANY = enum.auto()
    END = enum.auto()
    """By (RE, payload), as modules see members."""
    PAYLOAD = enum.auto()
    """By (payload, RE), as modules see them that need an order."""


class Packing:
    """Two columns as one of integers with the same order: a rank, and a time. Other times can be packed to be looked for.

    >>> packing = Packing(2, np.array([5, 7, 9]))
    >>> packing.pack(np.array([0, 1]), np.array([9, 5])).tolist()
    [4, 6]
    """

    __slots__ = ("_high", "_low", "_span", "_times")

    def __init__(self, n_ranks: int, times: Ticks) -> None:
        self._times: Ticks | None = None
        self._low, self._high = int(times.min()), int(times.max())
        if (self._high - self._low + 2) * n_ranks >= _ROOM:
            ordered = np.sort(times)
            self._times = ordered[np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))]
            self._low, self._high = 0, len(self._times) - 1
        self._span = self._high - self._low + 2

    def pack(self, ranks: Rows, times: Ticks) -> Ticks:
        """Return the packed values; a time that none of the first comes after is as good as one after all of them."""
        if self._times is not None:
            times = np.searchsorted(self._times, times)
        return ranks * self._span + (np.clip(times, self._low, self._high + 1) - self._low)


def in_order(rows: RowTable, places: Rows, ranks: Rows, n_ranks: int, order: Order) -> tuple[Packing, Ticks, Rows]:
    """Return places sorted by (rank, LE), and then as `order` says, with their packed keys."""
    packing = Packing(n_ranks, rows.le[places])
    keys = packing.pack(ranks, rows.le[places])
    if not (keys[1:] >= keys[:-1]).all():
        sorting = np.argsort(keys, kind="stable")
        keys, places = keys[sorting], places[sorting]
    if order is not Order.ANY:
        places = _untied(rows, places, keys, order)
    return packing, keys, places


def _untied(rows: RowTable, places: Rows, keys: Ticks, order: Order) -> Rows:
    """Return places with those of equal keys in order."""
    tied = np.flatnonzero(keys[1:] == keys[:-1])
    if not len(tied) or rows.payloads is None:
        return places
    is_tied = np.zeros(len(keys), dtype=np.bool_)
    is_tied[tied] = is_tied[tied + 1] = True
    at = np.flatnonzero(is_tied)
    among = places[at]
    columns: list[Column] = payload_keys(rows.payloads.take(among))
    columns = [rows.re[among], *columns] if order is Order.END else [*columns, rows.re[among]]
    places = places.copy()
    places[at] = among[np.lexsort([*reversed(columns), keys[at]])]
    return places


class Run:
    """Some rows in order of (group, LE)."""

    __slots__ = ("_groups", "_packing", "keys", "places")

    def __init__(self, rows: RowTable, places: Rows, order: Order) -> None:
        groups = rows.groups[places]
        if (groups == groups[0]).all():
            self._groups, ranks = groups[:1], np.zeros(len(groups), dtype=np.intp)
        else:
            ordered = np.sort(groups)
            self._groups = ordered[np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))]
            ranks = np.searchsorted(self._groups, groups)
        self._packing, self.keys, self.places = in_order(rows, places, ranks, len(self._groups), order)

    def __len__(self) -> int:
        return len(self.places)

    def ranges(self, groups: Ticks, lo: Ticks, hi: Ticks) -> tuple[Rows, Rows]:
        """Return from where to where the rows of some groups stand whose LE is in `[lo, hi)`."""
        ranks = np.searchsorted(self._groups, groups)
        known = self._groups[np.minimum(ranks, len(self._groups) - 1)] == groups
        first = np.searchsorted(self.keys, self._packing.pack(ranks, lo))
        last = np.searchsorted(self.keys, self._packing.pack(ranks, hi))
        return first, np.where(known, last, first)

    @property
    def nbytes(self) -> int:
        """The memory of the arrays."""
        return self._groups.nbytes + self.keys.nbytes + self.places.nbytes


class SortedRows:
    """Places of a table in runs; what has come since the last look stands in none yet."""

    def __init__(self, rows: RowTable, order: Order) -> None:
        self._rows = rows
        self._order = order
        self._new: list[Rows] = []
        self._runs: list[Run] = []
        self._n_gone = 0

    def __len__(self) -> int:
        return sum(map(len, self._new)) + sum(map(len, self._runs))

    def add(self, places: Rows) -> None:
        """Add rows."""
        if len(places):
            self._new.append(places)

    @property
    def runs(self) -> list[Run]:
        """All rows, in runs; those that are gone may be among them."""
        if self._new:
            self._sort_new()
        return self._runs

    def _sort_new(self) -> None:
        parts, self._new = self._new, []
        size = sum(map(len, parts))
        while self._runs and len(self._runs[-1]) < max(2 * size, SHORT):
            parts.insert(0, self._runs.pop().places)
            size += len(parts[0])
        self._runs.append(Run(self._rows, np.concatenate(parts), self._order))

    @property
    def is_tidy(self) -> bool:
        """Whether there is one run at most, and no row in it is gone."""
        return len(self.runs) <= 1 and self._n_gone == self._rows.n_gone

    def tidy(self) -> None:
        """Make one run of all rows that are alive."""
        places = np.concatenate([np.empty(0, dtype=np.intp), *(run.places for run in self.runs)])
        if self._n_gone != self._rows.n_gone:
            places = places[np.flatnonzero(self._rows.alive[places])]
            self._n_gone = self._rows.n_gone
        self._runs = [Run(self._rows, places, self._order)] if len(places) else []

    def renumber(self, places: Rows) -> None:
        """Let the rows that are left have other places; `places[i]` is that of row i, -1 if it is not left."""
        old = [*self._new, *(run.places for run in self._runs)]
        left = places[np.concatenate([np.empty(0, dtype=np.intp), *old])]
        self._new, self._runs, self._n_gone = [], [], 0
        self.add(left[np.flatnonzero(left >= 0)])

    @property
    def nbytes(self) -> int:
        """The memory of the arrays."""
        return sum(part.nbytes for part in self._new) + sum(run.nbytes for run in self._runs)
