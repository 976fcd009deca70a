"""Rows by position: of each partition in order of LE, and of payload where that counts; the first may have been forgotten."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property

import numpy as np

from streamdsl.engine.buffered.group_times import GroupTimes
from streamdsl.engine.buffered.row_table import RowTable
from streamdsl.engine.buffered.runs import Order, in_order
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks


class Positions:
    """The rows of some partitions. A position counts all rows of a partition that there have been, from 0."""

    def __init__(self, codes: Rows, rows: RowTable, places: Rows, order: Order, dropped: Ticks, origin: Ticks) -> None:
        self.codes = codes
        """The partitions, in order."""
        self.places = places
        """Where the rows are in their table, one partition after the other."""
        self.le: Ticks = rows.le[places]
        """Their LEs."""
        self._keys = self.le
        if len(places):
            groups = rows.groups[places]
            self._times = GroupTimes(groups, self.le)
            self.places = in_order(rows, places, self._times.pack(groups, self.le), order)
            self.le = rows.le[self.places]
            self._keys = self._times.pack(rows.groups[self.places], self.le)
        partitions = np.arange(len(codes))
        self._begin = self._rows_from(partitions, np.full(len(codes), MIN_TIME))
        self.sizes: Ticks = self._rows_from(partitions, np.full(len(codes), INFINITY)) - self._begin
        """How many rows each partition has."""
        self.dropped = dropped
        """How many rows of each have been forgotten."""
        some = flatnonzero(self.sizes)
        self.first_times: Ticks = np.full(len(codes), INFINITY)
        """When the first row of each starts that is there, INFINITY if there is none."""
        self.first_times[some] = self.le[self._begin[some]]
        self.origin: Ticks = np.where(origin < INFINITY, origin, self.first_times)
        """When the query of each starts: where that is not given, with the first row; INFINITY if there has been none."""
        self.last_times: Ticks = np.full(len(codes), INFINITY)
        """When the last row of each starts, INFINITY if there is none."""
        self.last_times[some] = self.le[(self._begin + self.sizes - 1)[some]]
        self._ids = rows.ids

    @cached_property
    def reach(self) -> int:
        """The time that is furthest away from 0."""
        known = np.concatenate([self.le, self.origin[self.origin < INFINITY]])
        return max(-int(known.min(initial=0)), int(known.max(initial=0)))

    @cached_property
    def of(self) -> Rows:
        """The number of each row's partition."""
        return np.repeat(np.arange(len(self.codes)), self.sizes)

    @property
    def numbers(self) -> Ticks:
        """The position of each row."""
        return np.arange(len(self.places)) + (self.dropped - self._begin)[self.of]

    def first_from(self, of: Rows, times: Ticks) -> Ticks:
        """Return the first position in some partitions, given by their numbers, of a row that does not start before a time."""
        return self._rows_from(of, times) - self._begin[of] + self.dropped[of]

    def rows_at(self, of: Rows, positions: Ticks) -> Rows:
        """Return the numbers of the rows at positions of partitions."""
        return self._begin[of] + positions - self.dropped[of]

    def times_of(self, of: int) -> list[int]:
        """Return the LEs of a partition's rows."""
        begin = int(self._begin[of])
        times: list[int] = self.le[begin : begin + int(self.sizes[of])].tolist()
        return times

    def last_id(self, of: int) -> Hashable:
        """Return the id of the last row of a partition."""
        place: Hashable = self._ids[self.places[int(self._begin[of] + self.sizes[of]) - 1 :][:1]].tolist()[0]
        return place

    def _rows_from(self, of: Rows, times: Ticks) -> Rows:
        if not len(self.places):
            return np.zeros(len(of), dtype=np.intp)
        return self._times.ranges(self._keys, self.codes[of], times, times)[0]
