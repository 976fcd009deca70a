"""What is kept of the members of windows, as single rows come: sums and extrema, in the columns that `states.py` fills too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from streamdsl.engine.buffered.modules import ExtremumAggregate
from streamdsl.engine.columnar.accumulators import Accumulator
from streamdsl.engine.columnar.lanes import LaneParts
from streamdsl.engine.frames.table import WindowTable
from streamdsl.expr.scalars import Values


class Given(NamedTuple):
    """What aggregates are given of a row."""

    arguments: Values
    """As the arrangement holds them: of each aggregate its argument, and where it has a `where`, whether the row is chosen."""
    parts: LaneParts
    """What the row adds to the sums of a window."""
    reals: set[int]
    """The aggregates to which it adds a float, as it is sure to."""


class RowFolds:
    """What windows keep, by slot; a window of which something is not kept is computed from its members."""

    def __init__(
        self,
        table: WindowTable,
        extrema: Sequence[ExtremumAggregate],
        accumulators: Sequence[Accumulator],
        arguments: Mapping[int, tuple[int, int | None]],
    ) -> None:
        self._table = table
        self._extrema = extrema
        self._accumulators = accumulators
        self._arguments = arguments
        self._adds = [each for each in accumulators if each.number in arguments]

    def given(self, values: Values) -> Given | None:
        """Return what aggregates are given of a row; None where columns have to say."""
        parts: LaneParts = []
        for accumulator in self._adds:
            each = accumulator.parts_of(values[self._arguments[accumulator.number][0]])
            if each is None:
                return None
            parts += each
        reals = {key[0] for key, _ in parts if key[1] == "floats" and self._arguments[key[0]][1] is None}
        return Given(values, parts, reals)

    def begin(self, slot: int) -> None:
        """Let a window be without rows."""
        for column in self._table.states:
            column[slot] = ExtremumAggregate.NOTHING
        if self._adds:
            self._table.has_lanes[slot] = True
            self._table.lanes.clear(np.array([slot]))

    def copy(self, slot: int, source: int) -> None:
        """Let a new window have the members of another."""
        table = self._table
        for column in table.states:
            column[slot] = column[source]
        if self._adds and table.has_lanes[source]:
            table.has_lanes[slot] = True
            table.lanes.copy(np.array([slot]), np.array([source]))

    def merge(self, slot: int, source: int) -> None:
        """Let a window have also the members of another."""
        table = self._table
        for extremum, column in zip(self._extrema, table.states, strict=True):
            column[slot] = extremum.best(column[slot], column[source])
        if self._adds:
            table.has_lanes[slot] &= table.has_lanes[source]
            table.lanes.add_from(np.array([slot]), np.array([source]))

    def add(self, slots: Sequence[int], given: Given) -> None:
        """Let a row be in windows."""
        table = self._table
        for extremum, column in zip(self._extrema, table.states, strict=True):
            value = extremum.given(given.arguments)
            if value is not None:
                for slot in slots:
                    column[slot] = extremum.best(column[slot], value)
        if self._adds:
            table.lanes.count_reals(given.reals)
            for slot in slots:
                if table.has_lanes[slot]:
                    table.lanes.add_row(given.parts, slot, 1)

    def values(self, slot: int) -> Values:
        """Return the aggregates of a window. Raises `ArithmeticError` where its members have to tell."""
        table = self._table
        found = []
        for extremum, column in zip(self._extrema, table.states, strict=True):
            if column[slot] is None:
                raise ArithmeticError("nothing is kept")
            found.append(extremum.shown_one(column[slot]))
        if self._adds and not table.has_lanes[slot]:
            raise ArithmeticError("nothing is kept")
        rows = table.rows.item(slot)
        return (*found, *[each.result(table.lanes, slot, rows) for each in self._accumulators])
