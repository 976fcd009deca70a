"""The buffered window operator: hopping and tumbling windows with aggregates that cannot be taken back, in columns.

Which windows have changed is found as in the columnar operator. Rows are kept in a buffer, in order of LE, so that the members of
a window stand together; modules are given views of it, once for each window that a piece of input changes.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.columnar.accumulators import ACCUMULATORS
from streamdsl.engine.columnar.buffer import Buffer, Members
from streamdsl.engine.columnar.modules import MemberAggregate, StateAggregate, member_aggregate
from streamdsl.engine.columnar.ring import Opened
from streamdsl.engine.columnar.rows import NewRows
from streamdsl.engine.columnar.runs import Order
from streamdsl.engine.columnar.states import CellDeltas, StateCells
from streamdsl.engine.operator import Gate, inputs_of
from streamdsl.engine.operators.columnar import ColumnarWindowOperator, Pending, changed
from streamdsl.engine.windows.panes import use_panes
from streamdsl.errors import UserCodeError
from streamdsl.expr.nodes import Life
from streamdsl.expr.table import Column, Rows, object_column
from streamdsl.plan.node import WindowAggregate, WindowApply
from streamdsl.temporal.time import Ticks
from streamdsl.udm.bases import can_remove
from streamdsl.udm.builtin import Builtin
from streamdsl.udm.incremental import Held, keeps_state
from streamdsl.windows import Hopping


class BufferedWindowOperator(ColumnarWindowOperator):
    """Modules and built-ins that need all members of a window, or a state of it."""

    kind = "window (buffered)"

    def __init__(self, label: str, node: WindowAggregate, gate: Gate) -> None:
        super().__init__(label, node, gate)
        self.members: list[MemberAggregate] = []
        n_columns = 0
        for number, agg in enumerate(node.aggregates):
            if type(agg.function) not in ACCUMULATORS:
                where = None if agg.where is None else n_columns + 1
                self.members.append(member_aggregate(number, agg, n_columns, where))
                n_columns += 1 if agg.where is None else 2
        self.stateful = [module for module in self.members if isinstance(module, StateAggregate)]
        self.cells = StateCells(len(self.stateful))
        self.buffer = Buffer(self.windows, n_columns, members_order(node) or Order.ANY)

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        batch = changed(batches[0])
        self._deltas = CellDeltas(self._take(batch), batch.re_new > batch.re_old)
        return super().change(batches, ctis)

    def _take(self, batch: Batch) -> Rows:
        """Keep the rows of a batch up to date, and return where each is, or was."""
        self.buffer.settle()
        places = np.empty(len(batch), dtype=np.intp)
        is_known, stays = batch.re_old > batch.le, batch.re_new > batch.le
        if is_known.any():
            known = np.flatnonzero(is_known)
            places[known] = self.buffer.remove(batch.ids[known], batch.le[known])
            moved = np.flatnonzero(is_known & stays)
            places[moved] = self.buffer.add(self.buffer.rows.at(places[moved], batch.re_new[moved]))
        new = np.flatnonzero(stays & ~is_known)
        if len(new):
            places[new] = self.buffer.add(self._new_rows(batch if len(new) == len(batch) else batch.take(new)))
        return places

    def _new_rows(self, batch: Batch) -> NewRows:
        inputs = inputs_of(batch)
        arguments: list[Column] = []
        for module in self.members:
            agg = self.node.aggregates[module.number]
            column, chosen = self.argument(agg.given, agg.where, batch, inputs)
            arguments.append(column)
            if agg.where is not None:
                arguments.append(np.ones(len(batch), dtype=np.bool_) if chosen is None else chosen)
        table = None if self.buffer.order is Order.ANY else batch.table
        return NewRows(batch.ids, self._group_numbers(batch.keys, len(batch)), batch.le, batch.re_new, arguments, table)

    def _group_numbers(self, groups: Column | None, size: int) -> Ticks:
        if groups is None:
            return np.zeros(size, dtype=np.int64)
        if groups.dtype == object:
            known = self.__dict__.setdefault("_known", {})
            return np.array([known.setdefault(group, len(known)) for group in groups.tolist()], dtype=np.int64)
        return groups

    def _show(self, opened: Opened) -> Rows:
        slots = super()._show(opened)
        self._deltas.show(slots)
        return slots

    def _enter(self, part: Pending, groups: Ticks) -> Rows:
        slots = super()._enter(part, groups)
        if self.stateful:
            self._deltas.enter(part.codes, part.lo, np.minimum(part.hi, part.limit), groups, self.cells)
        return slots

    def _columns(self, slots: Rows) -> dict[str, Column]:
        columns = super()._columns(slots)
        if not len(slots):
            return columns | {f"a{module.number}": np.empty(0, dtype=np.int64) for module in self.members}
        members = None
        failed = partial(self._failed, slots)
        for module in self.members:
            if isinstance(module, StateAggregate):
                found = module.shown(self._advance(module, slots), failed)
            else:
                members = members or self._members(slots)
                found = module.results(self.buffer.rows, members, failed)
            columns[f"a{module.number}"] = found
        return columns

    def _members(self, slots: Rows) -> Members:
        groups = self._group_numbers(self.cells.group[slots] if self._keyed else None, len(slots))
        return self.buffer.members(groups, self.numbers.starts(self.cells.number[slots]))

    def _advance(self, module: StateAggregate, slots: Rows) -> list[Held]:
        """Bring the states of cells up to date, by what has changed or else from all members, and return them."""
        states = self.cells.states[self.stateful.index(module)]
        gone, come = self._deltas.of(slots, False), self._deltas.of(slots, True)
        anew = self._deltas.are_shown(slots) & (states[slots] == None)  # noqa: E711
        if not can_remove(module.function):
            anew |= gone.lo < gone.hi
        for rows in (np.flatnonzero(anew), np.flatnonzero(~anew)):
            if not len(rows):
                continue
            at, failed = slots[rows], partial(self._failed, slots[rows])
            if anew[rows[0]]:
                after = module.built(self.buffer.rows, self._members(at), failed)
            else:
                after = module.advanced(states[at].tolist(), self.buffer.rows, gone.at(rows), come.at(rows), failed)
            states[at] = object_column(after)
        held: list[Held] = states[slots].tolist()
        return held

    def _failed(self, slots: Rows, error: Exception, n: int) -> Exception:
        """Return what a user sees of an error in a cell."""
        return UserCodeError(error, operator=self.label, window=self._period(int(self.cells.number[slots[n]])))

    def forget(self, cti: int) -> None:
        super().forget(cti)
        self.buffer.forget(min(self.windows.start(self.windows.first_ending_after(cti)) + 1, cti))

    def state(self) -> dict[str, int]:
        figures = super().state()
        return {**figures, "events": len(self.buffer), "state_bytes": figures["state_bytes"] + self.buffer.nbytes}


def members_order(node: WindowAggregate) -> Order | None:
    """Return the order in which the members of a window must stand, None if modules differ in that."""
    modules = [module for module in node.modules if type(module) not in ACCUMULATORS]
    orders = {Order.PAYLOAD for module in modules if not module.order_insensitive}
    if any(module.order_insensitive and not isinstance(module, Builtin) and not keeps_state(module) for module in modules):
        orders.add(Order.END)
    return None if len(orders) > 1 else orders.pop() if orders else Order.ANY


def why_not_buffered(node: WindowAggregate | WindowApply) -> str | None:
    """Say why the buffered operator cannot run a node, None if it can."""
    if not isinstance(node, WindowAggregate):
        return "it runs an operator, not aggregates"
    if not isinstance(node.windows, Hopping):
        return f"its windows are {node.windows.describe()}, not hopping or tumbling"
    for agg in node.aggregates:
        if agg.function.time_sensitive:
            return f"{agg.function.label} is time-sensitive"
        if keeps_state(agg.function) and use_panes(node.windows, agg.function):
            return f"the states of {agg.function.label} are merged"
        if any(isinstance(part, Life) for expr in (agg.argument, agg.where) if expr is not None for part in expr.walk()):
            return "an aggregate reads lifetimes"
    return None if members_order(node) else "one module needs its members in order, and another in another"
