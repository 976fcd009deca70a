"""The row path of the composed window operator: a row updates the accumulators of the windows that it enters."""

from __future__ import annotations

from collections.abc import Sequence

from streamdsl.engine.batch import Batch
from streamdsl.engine.buffered.modules import MemberAggregate, NotPlainError
from streamdsl.engine.data_driven.row_arguments import RowArguments
from streamdsl.engine.data_driven.timeline import RowChange
from streamdsl.engine.data_driven.timer_queue import TimerQueue
from streamdsl.engine.frames.arrangement import Arrangement
from streamdsl.engine.frames.folds import RowFolds
from streamdsl.engine.frames.frame import NO_SPLIT, Frame, RowUpdate
from streamdsl.engine.frames.states import MemberChanges
from streamdsl.engine.operators.data_driven import DataDrivenOperator, TouchedWindows
from streamdsl.engine.operators.driver import WindowActions
from streamdsl.engine.row_batch import RowBatch
from streamdsl.expr.row_program import Values
from streamdsl.expr.table import flatnonzero


class RowFramedOperator(DataDrivenOperator):
    """Windows of a frame, whose rows may be added one by one.

    A row is added to the arrangement, the frame finds the windows that it enters, and their accumulators are updated. A window
    without accumulators, or with an aggregate that needs all members, is computed from its members, in columns.
    """

    frame: Frame
    rows: Arrangement
    changes: MemberChanges
    timers: TimerQueue
    members: list[MemberAggregate]
    folds: RowFolds
    _has_accumulators: bool
    """Whether any window has ever kept a state or totals."""
    accumulates_all: bool
    """Whether short windows keep accumulators too."""
    has_unemitted_accumulators: bool
    """Whether windows without an emitted result may have accumulators."""

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
