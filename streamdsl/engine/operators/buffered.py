"""The buffered window operator: hopping and tumbling windows with aggregates that cannot be taken back, in columns.

Which windows have changed is found as in the columnar operator. Rows are kept in a buffer, in order of LE, so that the members of
a window stand together; modules are given views of it, once for each window that a piece of input changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import ClassVar, Final

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.buffered.buffer import Buffer
from streamdsl.engine.buffered.modules import Asked, MemberAggregate, StateAggregate, order_of
from streamdsl.engine.buffered.rows import NewRows
from streamdsl.engine.buffered.runs import Order, spread
from streamdsl.engine.buffered.states import CellDeltas, StateCells
from streamdsl.engine.buffered.timed import member_aggregate
from streamdsl.engine.columnar.accumulators import ACCUMULATORS
from streamdsl.engine.columnar.lanes import Lanes, distinct
from streamdsl.engine.columnar.pending import Pending
from streamdsl.engine.columnar.ring import Opened
from streamdsl.engine.operator import Gate, inputs_of
from streamdsl.engine.operators.columnar import ColumnarWindowOperator, aggregates_of
from streamdsl.engine.windows.panes import use_panes
from streamdsl.errors import UserCodeError
from streamdsl.expr.nodes import Life
from streamdsl.expr.table import Column, Rows, flatnonzero, object_column
from streamdsl.plan.node import WindowAggregate, WindowApply
from streamdsl.temporal.time import Ticks
from streamdsl.udm.bases import can_remove
from streamdsl.udm.incremental import Held, keeps_state
from streamdsl.windows import Hopping

_NO_DELTAS: Final = CellDeltas(np.empty(0, dtype=np.intp), np.empty(0, dtype=np.bool_))


class BufferedWindowOperator(ColumnarWindowOperator):
    """Modules and built-ins that need all members of a window, or a state of it."""

    kind = "window (buffered)"
    takes_slices = False
    n_columns: ClassVar[int] = 0
    """The columns that its cells have besides those for states."""

    def __init__(self, label: str, node: WindowAggregate | WindowApply, gate: Gate) -> None:
        super().__init__(label, node, gate)
        self.members: list[MemberAggregate] = []
        n_columns = 0
        for number, agg in enumerate(self.aggregates):
            if type(agg.function) not in ACCUMULATORS:
                where = None if agg.where is None else n_columns + 1
                self.members.append(member_aggregate(number, agg, n_columns, where, node.clip))
                n_columns += 1 if agg.where is None else 2
        self.stateful = [module for module in self.members if isinstance(module, StateAggregate)]
        # Where a window's results are wanted only once, so is its state.
        self._keeps_states = bool(self.stateful) and not gate.final
        self.cells: StateCells = StateCells(len(self.stateful) + self.n_columns)
        self.buffer = Buffer(self.windows, n_columns, members_order(node) or Order.ANY)
        self._deltas = _NO_DELTAS

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        batch = batches[0].changed()
        self._deltas = CellDeltas(self._take(batch), batch.re_new > batch.re_old)
        out = super().change(batches, ctis)
        self._deltas = _NO_DELTAS
        return out

    def _take(self, batch: Batch) -> Rows:
        """Keep the rows of a batch up to date, and return where each is, or was."""
        self.buffer.settle()
        places = np.empty(len(batch), dtype=np.intp)
        is_known, stays = batch.re_old > batch.le, batch.re_new > batch.le
        if is_known.any():
            known = flatnonzero(is_known)
            places[known] = self.buffer.remove(batch.ids[known], batch.le[known])
            moved = flatnonzero(is_known & stays)
            places[moved] = self.buffer.add(self.buffer.rows.at(places[moved], batch.re_new[moved]))
        new = flatnonzero(stays & ~is_known)
        if len(new):
            places[new] = self.buffer.add(self._new_rows(batch if len(new) == len(batch) else batch.take(new)))
        return places

    def _new_rows(self, batch: Batch) -> NewRows:
        inputs = inputs_of(batch)
        arguments: list[Column] = []
        for module in self.members:
            agg = self.aggregates[module.number]
            column, chosen = self.argument(agg.given, agg.where, batch, inputs)
            arguments.append(column)
            if agg.where is not None:
                arguments.append(np.ones(len(batch), dtype=np.bool_) if chosen is None else chosen)
        table = None if self.buffer.order is Order.ANY else batch.table
        groups = np.zeros(len(batch), dtype=np.int64) if batch.keys is None else batch.keys
        return NewRows(batch.ids, groups, batch.le, batch.re_new, arguments, table)

    def _rows_of(self, batch: Batch) -> Rows | None:
        return self._deltas.number(len(batch)) if self._keeps_states else None

    def _open(self, opened: Opened) -> Rows:
        slots = super()._open(opened)
        self._deltas.show(slots)
        return slots

    def _seen_otherwise(self, batch: Batch) -> list[Rows]:
        if not self.node.time_sensitive:
            return []
        # What is clipped to the window looks otherwise only where the earlier of both ends is inside.
        batch = batch.changed()
        batch = batch.take(flatnonzero((batch.re_old > batch.le) & (batch.re_new > batch.le)))
        earlier = np.minimum(batch.re_old, batch.re_new)
        first = self.numbers.first_ending_after(earlier)
        last = np.minimum(self.numbers.after_last(batch.le, earlier), self.ring.next)
        at, numbers = spread(first, np.maximum(last, first))
        return [distinct([self.cells.find(numbers, self._groups(batch)[at])])]

    def _show(self, cells: Rows) -> None:
        self._deltas.show(cells)

    def _enter(self, part: Pending) -> Rows:
        slots = super()._enter(part)
        if self._keeps_states:
            self._deltas.enter(part, self.cells)
        return slots

    def _columns(self, numbers: Ticks, groups: Ticks, lanes: Lanes, slots: Rows | None) -> dict[str, Column]:
        columns = super()._columns(numbers, groups, lanes, slots)
        if not len(numbers):
            return columns | {f"a{module.number}": np.empty(0, dtype=np.int64) for module in self.members}
        found = Asked(self.buffer, numbers, groups, self.numbers.starts(numbers), self._failed)
        for module in self.members:
            if isinstance(module, StateAggregate):
                kept = slots if self._keeps_states else None
                states = module.built(found) if kept is None else self._advanced(module, found, kept)
                columns[f"a{module.number}"] = module.shown(found, states)
            else:
                columns[f"a{module.number}"] = module.results(found)
        return columns

    def _advanced(self, module: StateAggregate, asked: Asked, slots: Rows) -> list[Held]:
        """Bring the states of cells up to date, by what has changed or else from all members, and return them."""
        states = self.cells.columns[self.stateful.index(module)]
        gone, come = self._deltas.of(slots, False), self._deltas.of(slots, True)
        anew = self._deltas.are_shown(slots) & (states[slots] == None)  # noqa: E711
        if not can_remove(module.function):
            anew |= gone.lo < gone.hi
        some, others = flatnonzero(anew), flatnonzero(~anew)
        if len(some):
            states[slots[some]] = object_column(module.built(asked.at(some)))
        if len(others):
            held = states[slots[others]].tolist()
            states[slots[others]] = object_column(module.advanced(asked.at(others), held, gone.at(others), come.at(others)))
        after: list[Held] = states[slots].tolist()
        return after

    def _failed(self, number: int, error: Exception) -> Exception:
        """Return what a user sees of an error in a window."""
        return UserCodeError(error, operator=self.label, window=self._period(number))

    def held_groups(self) -> Iterable[int | None]:
        return chain(super().held_groups(), self.buffer.held_groups().tolist())

    def forget(self, cti: int) -> None:
        super().forget(cti)
        self.buffer.forget(min(self.windows.start(self.windows.first_ending_after(cti)) + 1, cti))

    def state(self) -> dict[str, int]:
        return {**super().state(), "events": len(self.buffer)}


def members_order(node: WindowAggregate | WindowApply) -> Order | None:
    """Return the order in which the members of a window must stand, None if modules differ in that."""
    modules = [module for module in node.modules if type(module) not in ACCUMULATORS]
    orders = {order for module in modules if (order := order_of(module)) is not Order.ANY}
    return None if len(orders) > 1 else orders.pop() if orders else Order.ANY


def why_not_buffered(node: WindowAggregate | WindowApply) -> str | None:
    """Say why the buffered operator cannot run a node, None if it can."""
    if not isinstance(node.windows, Hopping):
        return f"its windows are {node.windows.describe()}, not hopping or tumbling"
    for agg in aggregates_of(node):
        if agg.function.time_sensitive and (node.sees_ends or keeps_state(agg.function) or isinstance(node, WindowApply)):
            return f"{agg.function.label} is time-sensitive"
        if keeps_state(agg.function) and use_panes(node.windows, agg.function):
            return f"the states of {agg.function.label} are merged"
        if any(isinstance(part, Life) for expr in (agg.argument, agg.where) if expr is not None for part in expr.walk()):
            return "an aggregate reads lifetimes"
    return None if members_order(node) else "one module needs its members in order, and another in another"
