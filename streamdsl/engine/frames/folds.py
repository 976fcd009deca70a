"""Accumulators of windows, updated row by row: totals and module states, in the columns that `states.py` updates by batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamdsl.engine.buffered.modules import InsertedRow, MemberAggregate, StateAggregate
from streamdsl.engine.columnar.accumulators import Accumulator
from streamdsl.engine.data_driven.row_arguments import ArgumentSlots, RowArguments
from streamdsl.engine.frames.row_members import RowMembers
from streamdsl.expr.row_program import Values
from streamdsl.temporal.lifetime import Lifetime


class RowFolds:
    """The accumulators of each window, by slot. A window that lacks one is computed from its members."""

    def __init__(
        self,
        members: Sequence[MemberAggregate],
        accumulators: Sequence[Accumulator],
        arguments: ArgumentSlots,
        rows: RowMembers,
    ) -> None:
        self._members = members
        self._rows = rows
        self._table = rows.table
        self._modules = [each for each in members if isinstance(each, StateAggregate)]
        self._accumulators = accumulators
        self._adds = any(each.number in arguments.places for each in accumulators)

    def begin(self, slot: int) -> None:
        """Give a new window empty accumulators."""
        for module, column in zip(self._modules, self._table.states, strict=True):
            column[slot] = module.nothing()
        if self._adds:
            self._table.has_totals[slot] = True
            self._table.totals.clear(np.array([slot]))

    def copy(self, slot: int, source: int) -> None:
        """Copy the accumulators of a window to a new one."""
        table = self._table
        for module, column in zip(self._modules, table.states, strict=True):
            column[slot] = module.copy(column[source])
        if self._adds and table.has_totals[source]:
            table.has_totals[slot] = True
            table.totals.copy(np.array([slot]), np.array([source]))

    def merge(self, slot: int, source: int) -> None:
        """Merge the accumulators of a window into those of another."""
        table = self._table
        for module, column in zip(self._modules, table.states, strict=True):
            column[slot] = module.merged(column[slot], column[source])
        if self._adds:
            table.has_totals[slot] &= table.has_totals[source]
            table.totals.add_from(np.array([slot]), np.array([source]))

    def period(self, slot: int) -> Lifetime:
        """Return the period of a window."""
        return Lifetime(self._table.le.item(slot), self._table.re.item(slot))

    def add(self, slots: Sequence[int], arguments: RowArguments, le: int, re: int) -> None:
        """Add a row to the accumulators of windows."""
        table = self._table
        if self._modules:
            row = InsertedRow(arguments.values, le, re)
            for module, column in zip(self._modules, table.states, strict=True):
                for slot in slots:
                    column[slot] = module.with_row(column[slot], row, self, slot)
        if self._adds:
            table.totals.count_reals(arguments.reals)
            for slot in slots:
                if table.has_totals[slot]:
                    table.totals.add_row(arguments.parts, slot, 1)

    def values(self, slot: int) -> Values:
        """Return the aggregates of a window. Raises `ArithmeticError` if they must be computed from its members."""
        table, states, found = self._table, iter(self._table.states), []
        for module in self._members:
            if not isinstance(module, StateAggregate):
                found.append(module.of_one(self._rows.rows, self._rows.of(slot, module.order)))
                continue
            state = next(states)[slot]
            if state is None:
                raise ArithmeticError("nothing is kept")
            found.append(module.shown_one(state, self, slot))
        if self._adds and not table.has_totals[slot]:
            raise ArithmeticError("nothing is kept")
        rows = table.rows.item(slot)
        return (*found, *[each.result(table.totals, slot, rows) for each in self._accumulators])
