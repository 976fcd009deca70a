"""The composed window operator: a frame finds the windows that a change touches, and aggregates are computed from their members.

Only differences from the emitted results are emitted (docs/decisions/14-frames-and-aggregates.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.buffered.group_times import GroupTimes
from streamdsl.engine.buffered.members import Members
from streamdsl.engine.buffered.modules import LONG, MemberAggregate, NotPlainError, StateAggregate, order_of
from streamdsl.engine.buffered.row_table import NewRows, RowTable
from streamdsl.engine.buffered.runs import Order, in_order
from streamdsl.engine.buffered.timed import member_aggregate
from streamdsl.engine.columnar.accumulator_columns import AccumulatorColumns
from streamdsl.engine.columnar.accumulators import ACCUMULATORS, result_columns
from streamdsl.engine.columnar.terms import ROWS, Part, Terms
from streamdsl.engine.data_driven.row_arguments import RowArguments
from streamdsl.engine.data_driven.timeline import UNTOUCHED, RowChange, Touched
from streamdsl.engine.data_driven.timer_queue import TimerQueue
from streamdsl.engine.frames import frame_class
from streamdsl.engine.frames.arrangement import Arrangement
from streamdsl.engine.frames.folds import RowFolds
from streamdsl.engine.frames.frame import NO_SPLIT, ChangedRows, Policy, RowUpdate
from streamdsl.engine.frames.row_members import RowMembers
from streamdsl.engine.frames.states import MemberChanges, WindowStates, WindowSums
from streamdsl.engine.frames.window_table import WindowTable
from streamdsl.engine.frontiers import Frontier, of_windows
from streamdsl.engine.operator import EmitPolicy, Kept, inputs_of
from streamdsl.engine.operators.data_driven_windows import DataDrivenOperator, TouchedWindows
from streamdsl.engine.operators.driver import WindowActions
from streamdsl.engine.pairs import distinct
from streamdsl.engine.row_batch import RowBatch
from streamdsl.engine.sorting import order_by, stable_order
from streamdsl.engine.window_budget import Arrivals, WindowBudget
from streamdsl.errors import UserCodeError
from streamdsl.expr.deferred import AnyColumn
from streamdsl.expr.row_program import Values
from streamdsl.expr.table import Rows, Table, column_of, flatnonzero, object_column
from streamdsl.plan.node import WindowAggregate, WindowApply
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import INFINITY, Ticks
from streamdsl.udm.incremental import Held
from streamdsl.windows import Output, Sequenced

_MANY_MORE: Final = 16
"""If long windows have more members than this for each changed row, they keep accumulators instead of being computed again."""
_NONE: Final[Rows] = np.empty(0, dtype=np.intp)


@dataclass
class Computing:
    """Some windows, in order, with all that aggregates need to compute their results."""

    rows: RowTable
    operator: FramedWindowOperator
    slots: Rows
    known: dict[Order, Members] = field(default_factory=dict)

    def at(self, windows: Rows) -> Computing:
        """Return some of the windows."""
        return self if len(windows) == len(self.slots) else Computing(self.rows, self.operator, self.slots[windows])

    def members(self, order: Order) -> Members:
        """Return the members of the windows, in the order that a module needs."""
        if order not in self.known:
            self.known[order] = self._any if order is Order.ANY else ordered(self._any, self.rows, order)
        return self.known[order]

    @cached_property
    def _any(self) -> Members:
        return self.operator.frame.members(self.slots, self.operator.rows)

    def error(self, window: int, error: Exception, members: Sequence[Any]) -> Exception:
        """Return the error that a user sees for an exception in one of the windows, of what its members give."""
        return UserCodeError(error, operator=self.operator.label, window=self.period(window), members=members)

    def period(self, window: int) -> Lifetime:
        """Return the period of one of the windows."""
        table, slot = self.operator.table, self.slots[window]
        return Lifetime(int(table.le[slot]), int(table.re[slot]))

    def periods(self) -> tuple[Ticks, Ticks]:
        """Return the starts and the ends of the windows."""
        return self.operator.table.le[self.slots], self.operator.table.re[self.slots]


def ordered(members: Members, rows: RowTable, order: Order) -> Members:
    """Return members in order of LE, ties as `order` says."""
    places = members.places
    if not len(places):
        return members
    number = np.full(len(rows), -1, dtype=np.intp)
    number[places] = np.arange(len(places))
    each = places if members.are_single else flatnonzero(number >= 0)
    times = GroupTimes(rows.groups[each], rows.le[each])
    found = in_order(rows, each, times.pack(rows.groups[each], rows.le[each]), order)
    if members.are_single:
        return members.only(number[found])
    number[found] = np.arange(len(found))
    return members.only(stable_order(number[places]))


class FramedWindowOperator(DataDrivenOperator):
    """Any aggregates over the windows of a frame.

    A batch updates the arrangement, then the frame, which returns the touched windows. The timer queue adds those that are due at
    the new high water. Of these windows results are computed: sums from accumulator columns, the states of modules from what has
    entered and left, all else from the members. Single rows are added to the arrangement one by one: the frame finds the windows
    that each enters, and their accumulators are updated. A window without accumulators, or with an aggregate that needs all
    members, is computed from its members, in columns.
    """

    kind = "window (framed)"
    table: WindowTable

    def __init__(self, label: str, node: WindowAggregate | WindowApply, emit_policy: EmitPolicy) -> None:
        # If modules see ends, each partition is closed up to a time of its own, so that no window waits for other partitions.
        # The results of time-bound modules may be final long before their window is closed.
        # The last window of a sequence goes on: it holds back the output CTI only if it has a result.
        waits = not node.sees_ends and node.output is not Output.TIME_BOUND and not isinstance(node.windows, Sequenced)
        super().__init__(label, node, replace(emit_policy, final=emit_policy.final and waits))
        self.members = [
            member_aggregate(number, self.aggregates[number], *place, node.clip, node.output)
            for number, place in self.arguments.places.items()
            if type(self.aggregates[number].function) not in ACCUMULATORS
        ]
        self._orders = {order_of(agg.function) for agg in self.aggregates} - {Order.ANY}
        self.budget = WindowBudget(label, f"{node.windows.describe(node.unit)} windows", emit_policy.most)
        policy = Policy(self.emit_policy, self.budget, node.output, node.time_sensitive, node.sees_ends)
        frame = frame_class(node.windows)(policy, node.windows)
        self._has_payloads = bool(self._orders) or node.windows.by_position
        self.rows = Arrangement(self.arguments.size, self._has_payloads, frame.by_point, frame.by_end)
        self.frame = frame
        self.table, self.codes = frame.table, frame.table.codes
        self.timers = TimerQueue()
        self.changes = MemberChanges(frame, self.rows)
        self.states = WindowStates(self.changes, [module for module in self.members if isinstance(module, StateAggregate)])
        self.sums = WindowSums(self.changes)
        self._has_accumulators = False
        """Whether any window has ever kept a state or totals."""
        self._computed = _NONE
        self.results, self.totals = frame.table.results, frame.table.totals
        self.accumulators_suffice = all(each.tells_rows for each in self.members)
        self.accumulates_all = False
        """Whether short windows keep accumulators too."""
        self.has_unemitted_accumulators = False
        """Whether windows without an emitted result may have accumulators."""
        self.folds = RowFolds(self.members, self.accumulators, self.arguments, RowMembers(frame, self.rows))

    def _summed_up(self) -> Rows:
        slots = self.table.all()
        return slots[flatnonzero(self.table.has_totals[slots])]

    def kept(self) -> Iterator[Kept]:
        yield from super().kept()
        slots = self.table.all()
        for module, column in zip(self.states.modules, self.table.states, strict=True):
            known = slots[flatnonzero(column[slots] != None)]  # noqa: E711
            for held, group, le, re in zip(column[known], *(each.tolist() for each in self._windows(known)), strict=True):
                yield Kept(
                    group if self.is_grouped else None,
                    Lifetime(le, re),
                    module.function.label,
                    held.state if isinstance(held, Held) else held,
                )

    def _drop_windows(self, slots: Rows) -> None:
        if len(slots):
            self.table.drop(slots)

    def _forget(self, cti: int) -> None:
        self.frame.forget(cti, self.rows)

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        self.frame.clock = INFINITY if self.ending else max(self.frame.clock, batches[0].high_water, ctis[0])
        return super().change(batches, ctis)

    def _take(self, batch: Batch) -> Batch:
        touched, changed, moves = UNTOUCHED, None, None
        self.budget.open(len(batch) + self.frame.n_waiting(self.rows))
        self.frame.is_grouped, self.frame.split, self.frame.due = self.is_grouped, NO_SPLIT, self._due()
        if len(batch) or self.frame.opens():
            self._forget_unemitted()
            codes = self._codes(batch)
            changed = ChangedRows(codes, batch.le, batch.re_old, batch.re_new)
            moves = self.rows.change(batch, codes, self._new_rows)
            touched = self.frame.change(changed, self.rows)
        touched = self._with_due(touched)
        self.changes.begin(changed, moves)
        out = self._emit(touched)
        if self._has_accumulators:
            self._drop_states(touched)
        self._drop_windows(touched.gone)
        self.frame.end_step()
        return out

    def _drop_states(self, touched: Touched) -> None:
        """Drop the states of windows that have changed without being computed, or have no emitted result."""
        is_stale = np.zeros(self.table.capacity, dtype=np.bool_)
        is_stale[touched.slots[touched.summed]] = True
        is_stale[self._computed] = False
        is_stale[touched.slots] |= ~self.table.results.is_emitted[touched.slots]
        self.table.forget_states(flatnonzero(is_stale))
        self._computed = _NONE

    def _due(self) -> Rows:
        """Return the windows whose timers are due at the high water."""
        table, (times, slots) = self.table, self.timers.pop_until(self.high_water)
        slots = distinct(slots[self._times(slots) == times], table.capacity)
        return slots[flatnonzero((table.rows[slots] > 0) & ~table.results.is_emitted[slots])]

    def _with_due(self, touched: Touched) -> Touched:
        """Add the due windows that have not changed to the touched ones."""
        due = self.frame.due
        if not len(due):
            return touched
        is_due = np.zeros(self.table.capacity, dtype=np.bool_)
        is_due[due] = True
        is_due[touched.gone] = is_due[touched.slots] = False
        due = flatnonzero(is_due)
        summed = np.concatenate([touched.summed, np.ones(len(due), dtype=np.bool_)])
        return Touched(np.concatenate([touched.slots, due]), summed, touched.gone)

    def _times(self, slots: Rows) -> Ticks:
        """Return the high water from which on windows may show."""
        return (self.table.re if self.emit_policy.by_end else self.table.le)[slots]

    def _closed(self, cti: int) -> int:
        return INFINITY if cti == INFINITY else self.frame.closed(cti, self.rows)

    def _hide(self, slots: Rows) -> None:
        times = self._times(slots)
        waits = times > self.high_water
        self.timers.add(times[waits], slots[waits])

    def _hidden(self) -> Rows:
        """Return the windows that wait for their ends. A window that is closed and hidden ends after the end of a bounded run."""
        if not self.emit_policy.by_end:
            return _NONE
        table, slots = self.table, self.table.all()
        waits = (table.rows[slots] > 0) & ~table.results.is_emitted[slots] & (table.re[slots] >= self.input_ctis[0])
        return slots[waits]

    def held_back(self) -> int:
        return INFINITY if self._is_at_end else int(self.table.le[self._hidden()].min(initial=INFINITY))

    def held_ends(self) -> list[int]:
        ends: list[int] = self.table.re[self._hidden()].tolist() if self.emit_policy.final else []
        return ends

    def _new_rows(self, batch: Batch, codes: Rows) -> NewRows:
        inputs = inputs_of(batch)
        arguments: list[AnyColumn] = []
        in_parts = {each.number for each in self.members if each.keeps_parts}
        for number, agg in enumerate(self.aggregates):
            if agg.counts_rows:
                continue
            if number in in_parts:
                arguments.append(self.evaluate_nested(agg.given, inputs, batch))
                continue
            column, chosen = self.argument(agg.given, agg.where, batch, inputs)
            arguments.append(column)
            if agg.where is not None:
                arguments.append(np.ones(len(batch), dtype=np.bool_) if chosen is None else chosen)
        return NewRows(batch.ids, codes, batch.le, batch.re_new, arguments, batch.table if self._has_payloads else None)

    def _results(self, slots: Rows) -> Table:
        order = order_by([self.table.code[slots], self.table.le[slots]])
        if order is None:
            return self._in_order(slots)
        back = np.empty(len(order), dtype=np.intp)
        back[order] = np.arange(len(order))
        return self._in_order(slots[order]).take(back)

    def _in_order(self, slots: Rows) -> Table:
        """Compute the results of windows that are in order of partition and start."""
        table, self._computed = self.table, slots
        groups = self.codes.groups(table.code[slots])
        return self._payloads(table.le[slots], table.re[slots], groups, lambda: self._columns(self._computing(slots)))

    def _computing(self, slots: Rows) -> Computing:
        """Return windows, which are in order, in the form that aggregates read."""
        return Computing(self.rows.rows, self, slots)

    def _columns(self, found: Computing) -> dict[str, AnyColumn]:
        """Compute the aggregates of windows, a column for each."""
        if not len(found.slots):
            return {f"a{number}": np.empty(0, dtype=np.int64) for number in range(len(self.aggregates))}
        columns = {f"a{each.number}": self._column(each, found) for each in self.members}
        return {**columns, **(result_columns(self.accumulators, self._sums(found)) if self.accumulators else {})}

    def _column(self, module: MemberAggregate, found: Computing) -> AnyColumn:
        if not isinstance(module, StateAggregate):
            return module.results(found)
        short, long = self._by_size(found.slots, module.least_rows)
        if not len(short):
            return module.shown(found, self.states.of(module, found, found.slots))
        self.states.forget(module, found.slots[short])
        if not len(long):
            return module.results(found)
        results = object_column([None] * len(found.slots))
        requested = found.at(long)
        results[long] = object_column(module.shown(requested, self.states.of(module, requested, requested.slots)).tolist())
        results[short] = object_column(module.results(found.at(short)).tolist())
        return column_of(results.tolist())

    def _by_size(self, slots: Rows, least_rows: int) -> tuple[Rows, Rows]:
        """Return which windows are computed from their members, and which keep accumulators.

        Long windows keep accumulators, unless their members are not many more than the changed rows.
        """
        if not self.frame.by_period:
            return np.arange(len(slots)), _NONE
        rows = self.table.rows[slots]
        are_long = (rows >= least_rows) | self.accumulates_all
        if least_rows and not self.accumulates_all and int(rows[are_long].sum()) < _MANY_MORE * self.changes.n_changed:
            are_long[:] = False
        long = flatnonzero(are_long)
        self._has_accumulators |= len(long) > 0
        return flatnonzero(~are_long), long

    def _sums(self, found: Computing) -> AccumulatorColumns:
        """Return the totals of windows."""
        totals = AccumulatorColumns(len(found.slots))
        if not any(accumulator.number in self.arguments.places for accumulator in self.accumulators):
            rows = self.table.rows[found.slots]  # the frame has counted them
            totals.add_sums(ROWS, rows, int(rows.sum()))
            return totals
        short, long = self._by_size(found.slots, LONG)
        if len(long):
            requested = found.at(long)
            totals.merge(long, self.sums.of(requested, requested.slots, self._terms_at))
        if len(short):
            self.table.has_totals[found.slots[short]] = False
            members = found.at(short).members(Order.ANY)
            totals.merge(
                short, AccumulatorColumns.of_spans(members.first, members.last, len(short), self._terms_at(members.places))
            )
        return totals

    def _terms_at(self, places: Rows) -> Terms:
        """Return what the rows at some places add to the totals of windows."""
        terms, rows = Terms(len(places), [Part(ROWS, None, None, 1)]), self.rows.rows
        for accumulator in self.accumulators:
            values = self.arguments.places.get(accumulator.number)
            if values is not None:
                column, where = values
                chosen = None if where is None else rows.argument(where)[places].astype(np.bool_)
                accumulator.add_terms(rows.argument(column)[places], chosen, terms)
        return terms

    def output_cti(self, ctis: list[int]) -> int:
        settled = self.frame.output_cti(ctis[0], self.rows)
        # In a bounded run an open window may still grow beyond the bound, and then has no result.
        return settled if self.emit_policy.until == INFINITY else min(settled, self.frame.first_start(ctis[0], self.rows))

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return of_windows(self.node.output, self.frame.closed(inputs[0].cti, self.rows))

    def max_new_windows(self, arrivals: Arrivals) -> float:
        return self.frame.max_new_windows(arrivals, self.high_water, self.rows)

    def slowest_group(self, cti: int) -> int | None:
        """Return the group that holds back the output CTI, None if none does."""
        groups = self.codes.groups(self.frame.slowest_code(cti, self.rows))
        return int(groups[0]) if len(groups) else None

    def _sizes(self, cti: int) -> Ticks:
        return self.table.rows[self.frame.open_windows(cti, self.rows)]

    def _n_events(self, cti: int) -> int:
        places = flatnonzero(self.rows.rows.alive)
        return int(np.count_nonzero(self.frame.is_needed(cti, self.rows, places)))

    # Row by row

    def _enter(self, batch: RowBatch, arguments: Sequence[RowArguments], cti: int) -> WindowActions | None:
        self.frame.clock = max([self.frame.clock, cti, *(le for _, _, le, _, _ in batch.changes)])
        return super()._enter(batch, arguments, cti)

    def _takes(self, rows: Sequence[RowChange], high_water: int) -> bool:
        come = [(code, le, re_new) for code, le, re_old, re_new in rows if le == re_old < re_new]
        return len(come) == len(rows) and self.frame.takes(come, high_water, self.rows)

    def _take_rows(self, batch: RowBatch, rows: Sequence[RowChange], arguments: Sequence[RowArguments]) -> TouchedWindows:
        self._has_accumulators = self.has_unemitted_accumulators = True
        self.frame.is_grouped = self.is_grouped
        touched: dict[int, bool] = {}
        gone: list[int] = []
        if self.rows.rows.payloads is not None:
            self.rows.rows.payloads.append(batch.table)
        for id, (code, le, _, re), each in zip(batch.row_ids(), rows, arguments, strict=True):
            place = self.rows.add_one(id, code, le, re, each.values)
            step = self.frame.take(code, le, re, place, self.rows)
            self._follow(step, touched, gone)
            self.folds.add(step.entered, each, le, re)
        table = self.frame.table
        times = table.re if self.emit_policy.by_end else table.le
        for time, slot in self.timers.pop_each(self.high_water):
            waits = times.item(slot) == time and not table.results.is_emitted.item(slot)
            if waits and table.rows.item(slot) and slot not in gone:
                touched[slot] = True
        return TouchedWindows(touched, gone)

    def _follow(self, step: RowUpdate, touched: dict[int, bool], gone: list[int]) -> None:
        """Create, copy, merge and drop accumulators as the windows that a row changes are created, split, merged and dropped."""
        folds = self.folds
        for slot in step.moved:
            touched.setdefault(slot, False)
        for slot in step.new:
            folds.begin(slot)
        for slot, before in step.split:
            folds.copy(slot, before)
            touched[slot] = True
        for slot, into in step.gone:
            folds.merge(into, slot)
            touched.pop(slot, None)
            gone.append(slot)
        for slot in step.entered:
            touched[slot] = True

    def flush_deferred(self) -> None:
        self.rows.rows.put_in_columns()

    def _values(self, slot: int) -> Values:
        try:
            return self.folds.values(slot)
        except NotPlainError:
            self.accumulators_suffice = False
            raise

    def _hide_one(self, slot: int) -> None:
        table = self.frame.table
        time = (table.re if self.emit_policy.by_end else table.le).item(slot)
        if time > self.high_water:
            self.timers.add_one(time, slot)

    def _in_columns(self, actions: WindowActions) -> Batch:
        self.frame.split = NO_SPLIT
        self.changes.begin_applied()
        self.accumulates_all = True
        out = super()._in_columns(actions)
        self.accumulates_all = False
        return out

    def _forget_unemitted(self) -> None:
        """Drop the accumulators of windows without an emitted result: batches in columns do not keep them up to date."""
        if self.has_unemitted_accumulators:
            self.frame.table.forget_states(flatnonzero(~self.frame.table.results.is_emitted))
            self.has_unemitted_accumulators = False
