"""The composed window operator's way for few changes: number by number, in the state that its columns have.

The rows that come are put in the arrangement, the frame says which windows they come into, and what is kept of the members of
these takes them in. Results that nothing kept tells are computed from the members, in columns.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Final

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.buffered.modules import ExtremumAggregate, MemberAggregate, StateAggregate
from streamdsl.engine.columnar.window_ids import WindowIds
from streamdsl.engine.few import Few, Result, few_of
from streamdsl.engine.frames.arrangement import Arrangement
from streamdsl.engine.frames.folds import Given, RowFolds
from streamdsl.engine.frames.frame import NO_SPLIT, Frame, RowStep
from streamdsl.engine.frames.states import MemberChanges
from streamdsl.engine.operators.swept import SweptOperator
from streamdsl.engine.swept.agenda import Agenda
from streamdsl.engine.swept.timeline import Touched
from streamdsl.expr.nodes import Choose, Constant, Expr, Make
from streamdsl.expr.scalars import Program, Project, Values
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import flatnonzero
from streamdsl.temporal.time import CHRONON, INFINITY
from streamdsl.udm.aggregates import BoundAgg
from streamdsl.windows import Output

_NO_GROUP: Final = itertools.repeat(0)


class RowFramedOperator(SweptOperator):
    """Windows of a frame, whose rows may come one by one: insertions, where what is kept of windows tells their results."""

    frame: Frame
    rows: Arrangement
    members: list[MemberAggregate]
    arguments: dict[int, tuple[int, int | None]]
    changes: MemberChanges
    timers: Agenda

    def _begin_rows(self) -> None:
        """Make what rows that come one by one need besides."""
        self.keeps_all = False
        """Whether also of short windows something is kept."""
        self._is_kept_ahead = False
        """Whether something may be kept of windows whose results are not out."""
        self._folds = self._row_folds()
        numbers = [each.number for each in self.members] + [each.number for each in self.accumulators]
        self._computed_schema = Schema.record([f"a{number}" for number in numbers])

    def _row_folds(self) -> RowFolds | None:
        """Return what is kept of windows; None where single rows are left to columns."""
        extrema = [each for each in self.members if isinstance(each, ExtremumAggregate)]
        n_states = sum(isinstance(each, StateAggregate) for each in self.members)
        if self.gate.final or self.gate.by_end or self.gate.until != INFINITY or len(extrema) < n_states:
            return None
        if self.rows.rows.payloads is not None or len(extrema) < len(self.members):
            return None
        return RowFolds(self.frame.table, extrema, self.accumulators, self.arguments)

    @functools.cached_property
    def _given(self) -> Program:
        exprs = [expr for agg in self.aggregates if not agg.counts_rows for expr in _read(agg)]
        return Program([Project(Make(Schema.tuple(len(exprs)), tuple(exprs)))])

    @functools.cached_property
    def _projected(self) -> Program:
        return Program([Project(self.node.projection, self.key_table)])

    def few(self, batch: Few, cti: int) -> Batch | None:
        folds = None if self.ending else self._folds
        given = None if folds is None else self._given_of(batch, folds)
        if folds is None or given is None:
            return None
        code_of, watermark = self.frame.table.codes.of_one, max(self.watermark, cti)
        rows = []
        for (_, _, le, re_old, re), group in zip(batch.changes, batch.groups or _NO_GROUP, strict=False):
            if re_old != le or re <= le:
                return None
            rows.append((code_of(group), le, re))
            watermark = max(watermark, le)
        if not self.frame.takes(rows, watermark, self.rows):
            return None
        self.watermark, self._is_kept_ahead = watermark, True
        self.frame.is_grouped = self.is_grouped
        steps = RowSteps(folds)
        for id, row, each in zip(batch.row_ids(), rows, given, strict=True):
            place = self.rows.add_one(id, *row, each.arguments)
            steps.add(self.frame.take(*row, place, self.rows), each)
        self._note_due(steps)
        out = self._differences(steps, folds)
        out = self._recomputed(steps) if out is None else out
        self.swept.drop(np.array(steps.gone, dtype=np.intp))
        return out

    def _given_of(self, batch: Few, folds: RowFolds) -> list[Given] | None:
        """Return what aggregates are given of each row; None where columns have to say."""
        try:
            found = self._given.of(batch.schema)(batch.values, None)
        except Exception:
            return None
        given = [] if found is None else [each for values in found[0] if (each := folds.given(values)) is not None]
        return given if len(given) == len(batch.changes) else None

    def _note_due(self, steps: RowSteps) -> None:
        """Note also the windows that the watermark has reached."""
        table = self.frame.table
        for time, slot in self.timers.pop_each(self.watermark):
            is_there = table.le.item(slot) == time and table.rows.item(slot) and slot not in steps.gone
            if is_there and not table.results.is_out.item(slot):
                steps.touched[slot] = True

    def _differences(self, steps: RowSteps, folds: RowFolds) -> Batch | None:
        """Return what differs from the results that are out; None, and nothing is done, where members have to tell."""
        table, projected = self.frame.table, self._projected.of(self._computed_schema)
        results = table.results
        if not results.takes(self._projected.schema):
            return None
        hidden: list[tuple[int, int]] = []
        shown: list[int] = []
        computed: list[int] = []
        try:
            for slot, is_summed in steps.touched.items():
                was_out, le = results.is_out.item(slot), table.le.item(slot)
                if le > self.watermark and not was_out:
                    hidden.append((le, slot))
                    continue
                shown.append(slot)
                if is_summed or not was_out:
                    computed.append(slot)
            groups = [self._group_of(slot) for slot in computed]
            passed = projected([folds.values(slot) for slot in computed], groups)
        except Exception:
            return None
        if passed is None:
            return None
        self.udm_calls += len(self.aggregates) * len(computed)
        for entry in hidden:
            self.timers.add_one(*entry)
        return self._exchanged(steps, shown, dict(zip(computed, passed[0], strict=True)))

    def _exchanged(self, steps: RowSteps, shown: Sequence[int], now_of: dict[int, Values]) -> Batch:
        """Put results in the place of those that are out, and return what changes."""
        results, ends = self.frame.table.results, self.frame.table.re
        gone: list[Result] = []
        come: list[Result] = []
        for slot in steps.gone:
            was = results.values(slot)
            if was is not None:
                gone.append(self._change(slot, results.retract(slot), results.re.item(slot), None, was))
        for slot in shown:
            re_old, re, now = results.re.item(slot), ends.item(slot), now_of.get(slot)
            was = None if now is None else results.swap(slot, now)
            if now is None or was is now:
                still = results.values(slot)
                if re != re_old and still is not None:
                    come.append(self._change(slot, results.version(slot), re_old, re, still))
            else:
                if was is not None:
                    gone.append(self._change(slot, results.retract(slot), re_old, None, was))
                come.append(self._change(slot, results.version(slot), None, re, now))
            results.re[slot] = re
        origin = WindowIds(self.label, self.key_table)
        return few_of(gone + come, self._projected.schema, self.is_grouped, origin)

    def _change(self, slot: int, version: int, re_old: int | None, re: int | None, values: Values) -> Result:
        """Return how a result changes, None: it is not there."""
        start, group = self.frame.table.le.item(slot), self._group_of(slot)
        le, id = start, (start,) if self.key_table is None else (start, *self.key_table.leaves_of(group))
        if self.node.output is Output.POINT_AT_END:
            le = self.frame.table.re.item(slot)
            re_old, re = (None if end is None else le + CHRONON for end in (re_old, re))
        return (id, version, le, le if re_old is None else re_old, le if re is None else re), values, group

    def _group_of(self, slot: int) -> int:
        table = self.frame.table
        return int(table.codes.groups(table.code[slot]))

    def _recomputed(self, steps: RowSteps) -> Batch:
        """Return what differs from the results that are out, of which those that may be others are computed from the members."""
        slots = np.fromiter(steps.touched, dtype=np.intp, count=len(steps.touched))
        summed = np.fromiter(steps.touched.values(), dtype=np.bool_, count=len(steps.touched))
        self.frame.split = NO_SPLIT
        self.changes.begin(None, None)
        self.frame.table.forget_states(slots)
        self.keeps_all = True
        out = self._emit(Touched(slots, summed, np.array(steps.gone, dtype=np.intp)))
        self.keeps_all = False
        return out

    def _forget_kept_ahead(self) -> None:
        """Before columns come: what is kept of a window is as its result that is out, or is dropped."""
        if self._is_kept_ahead:
            self.frame.table.forget_states(flatnonzero(~self.frame.table.results.is_out))
            self._is_kept_ahead = False


class RowSteps:
    """What single rows change of windows, one after the other; what is kept of windows follows."""

    def __init__(self, folds: RowFolds) -> None:
        self._folds = folds
        self.touched: dict[int, bool] = {}
        """The windows that are not as before, and whether their members are others."""
        self.gone: list[int] = []

    def add(self, step: RowStep, given: Given) -> None:
        """Follow a step, in which a row comes."""
        folds, touched = self._folds, self.touched
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
            self.gone.append(slot)
        folds.add(step.entered, given)
        for slot in step.entered:
            touched[slot] = True


def _read(agg: BoundAgg) -> list[Expr]:
    """Return what the arrangement holds of a row for an aggregate: its argument, and whether its `where` has chosen the row."""
    if agg.where is None:
        return [agg.given]
    chosen = Choose(((agg.where, Constant(True)),), Constant(False))
    return [Choose(((agg.where, agg.given),), Constant(None)), chosen]
