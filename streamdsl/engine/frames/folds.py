"""What is kept of the members of windows, as single rows come: sums and extrema, in the columns that `states.py` fills too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamdsl.engine.buffered.modules import ExtremumAggregate
from streamdsl.engine.columnar.accumulators import Accumulator
from streamdsl.engine.frames.table import WindowTable
from streamdsl.engine.swept.given import Arguments, Given
from streamdsl.expr.scalars import Values


class RowFolds:
    """What windows keep, by slot; a window of which something is not kept is computed from its members."""

    def __init__(
        self,
        table: WindowTable,
        extrema: Sequence[ExtremumAggregate],
        accumulators: Sequence[Accumulator],
        arguments: Arguments,
    ) -> None:
        self._table = table
        self._extrema = extrema
        self._accumulators = accumulators
        self._adds = any(each.number in arguments.places for each in accumulators)

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
            value = extremum.given(given.values)
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
