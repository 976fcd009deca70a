"""The driver of window operators: it computes the results of changed windows, and emits where they differ from the emitted ones.

The same state is updated in two ways: by batches in columns (`change`), and by single rows (`change_rows`).
"""

from __future__ import annotations

import functools
import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.columnar.accumulator_columns import AccumulatorColumns
from streamdsl.engine.columnar.accumulators import ACCUMULATORS, result_columns
from streamdsl.engine.columnar.terms import ROWS, Part, Terms
from streamdsl.engine.columnar.versioned import VersionedResults
from streamdsl.engine.columnar.window_ids import WindowIds
from streamdsl.engine.data_driven.row_arguments import NOTHING, ArgumentSlots, RowArguments, argument_exprs
from streamdsl.engine.data_driven.timeline import Touched
from streamdsl.engine.ids import VersionedIds
from streamdsl.engine.operator import EmitPolicy, Kept, Operator, inputs_of
from streamdsl.engine.row_batch import Result, RowBatch, results_batch
from streamdsl.expr.deferred import AnyColumn, with_parts
from streamdsl.expr.evaluate import Inputs, RowError, project
from streamdsl.expr.nodes import Key, Make
from streamdsl.expr.row_program import ProjectStep, RowProgram, Values
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Rows, Table, flatnonzero
from streamdsl.plan.node import WindowAggregate, WindowApply
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import CHRONON, MIN_TIME, Ticks, add_time
from streamdsl.windows import Output

NO_GROUP: Final = itertools.repeat(0)
"""The group numbers of rows that are in no group."""

Window: TypeAlias = tuple[int, int, int, int]
"""A window: its slot, its start, its end, and the number of its group."""


class WindowActions(NamedTuple):
    """What to do about the windows that single rows have changed."""

    computed: list[Window]
    """Windows that may show and whose members have changed: their results are computed."""
    moved: list[Window]
    """Windows with an emitted result whose end may have changed, and nothing else."""
    retracted: list[Window]
    """Windows with an emitted result that must be retracted."""
    hidden: list[int]
    """Windows that may not show yet."""
    gone: list[int]
    """Windows that have no rows left."""


class WindowDriver(Operator):
    """Windows in slots, with the result that has been emitted for each.

    A subclass keeps the windows, and says which of them a batch (`change`) or single rows (`_enter`) have changed. `_emit` and
    `_differences` compare results with the emitted ones, number their versions, and record what is then emitted.
    """

    kind = "window (columnar)"
    takes_emit_policy = True
    results: VersionedResults
    """The emitted results, by slot."""
    totals: AccumulatorColumns
    """What accumulators have summed up, by slot."""
    takes_rows = True
    """Whether the row path may be used at all."""
    accumulators_suffice = True
    """Whether the results follow from the accumulators of a window, without its members."""

    def __init__(self, label: str, node: WindowAggregate | WindowApply, emit_policy: EmitPolicy) -> None:
        super().__init__(label)
        self.node = node
        self.emit_policy = emit_policy
        self.aggregates = node.aggregates
        kinds = [(i, ACCUMULATORS.get(type(agg.function))) for i, agg in enumerate(self.aggregates)]  # type: ignore[arg-type]
        self.accumulators = [kind(i) for i, kind in kinds if kind is not None]
        self.high_water = MIN_TIME
        self.arguments = ArgumentSlots(self.aggregates)
        self._projection = node.projection
        self._reads_key = any(isinstance(part, Key) for part in self._projection.walk())
        self._is_at_end = node.output is Output.POINT_AT_END
        self._origin = WindowIds(label, None)
        summed = [each.number for each in self.accumulators]
        others = [number for number in range(len(self.aggregates)) if number not in summed]
        self._computed_schema = Schema.record([f"a{number}" for number in (*others, *summed)])

    @abstractmethod
    def _windows(self, slots: Rows) -> tuple[Ticks, Ticks, Ticks]:
        """Return the groups, starts and ends of windows."""

    @abstractmethod
    def _drop_windows(self, slots: Rows) -> None:
        """Drop windows that have no rows left."""

    @abstractmethod
    def _summed_up(self) -> Rows:
        """Return the windows that have totals of their own."""

    def kept(self) -> Iterator[Kept]:
        slots = self._summed_up()
        for slot, group, le, re in zip(slots.tolist(), *(each.tolist() for each in self._windows(slots)), strict=True):
            for each in self.accumulators:
                name = self.aggregates[each.number].described
                yield Kept(group if self.is_grouped else None, Lifetime(le, re), name, each.kept(self.totals, slot))

    # Columns

    def _results(self, slots: Rows) -> Table:
        """Compute the results of windows, as payloads."""
        groups, le, re = self._windows(slots)
        totals = self.totals.take(slots)
        return self._payloads(le, re, groups, lambda: result_columns(self.accumulators, totals))

    @abstractmethod
    def _are_shown(self, slots: Rows, was_out: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Say which windows show their results, and remember those that show later."""

    def _emit(self, touched: Touched) -> Batch:
        """Emit the difference between the results of the touched windows and the emitted ones."""
        if not len(touched.slots) and not len(touched.gone):
            return EMPTY
        slots, results = touched.slots, self.results
        gone = touched.gone[results.is_emitted[touched.gone]]
        was_out = results.is_emitted[slots]
        shown = self._are_shown(slots, was_out)
        if not was_out.any():
            new = slots if shown.all() else slots[shown]
            return self._send(gone, new[:0], new, self._results(new))
        computed = flatnonzero(shown & (touched.summed | ~was_out))
        payloads = self._results(slots[computed])
        differs = flatnonzero(~results.are(slots[computed], payloads))
        is_new = np.zeros(len(slots), dtype=np.bool_)
        is_new[computed[differs]] = True
        stays = slots[was_out & shown & ~is_new]
        moved = stays[results.re[stays] != self._windows(stays)[2]]
        gone = np.concatenate([gone, slots[was_out & (is_new | ~shown)]])
        new, payloads = slots[computed[differs]], payloads.take(differs)
        if self._is_at_end and len(moved):  # a point cannot be moved: it is retracted, and another one inserted
            new, payloads = np.concatenate([new, moved]), Table.concat([payloads, results.payloads(moved)])
            gone, moved = np.concatenate([gone, moved]), moved[:0]
        return self._send(gone, moved, new, payloads)

    def _send(self, gone: Rows, moved: Rows, new: Rows, payloads: Table) -> Batch:
        """Emit retractions, moved ends and new results, and record what is then emitted."""
        results = self.results
        if not len(gone) and not len(moved):
            return self._send_new(new, payloads)
        slots = np.concatenate([gone, moved, new])
        groups, le, re = self._windows(slots)
        n_gone, n_old = len(gone), len(gone) + len(moved)
        old = slots[:n_old]
        re_old = np.concatenate([results.re[old], le[n_old:]])
        re_new = np.concatenate([le[:n_gone], re[n_gone:]])
        table = Table.concat([results.payloads(old), payloads])
        versions = np.concatenate([results.retracted(gone), results.versions(slots[n_gone:])])
        results.clear(gone)
        results.re[moved] = re[n_gone:n_old]
        results.put_until(new, re[n_old:], payloads)
        return self._batch(groups, le, re_old, re_new, table, versions)

    def _send_new(self, new: Rows, payloads: Table) -> Batch:
        if not len(new):
            return EMPTY
        groups, le, re = self._windows(new)
        self.results.put_until(new, re, payloads)
        return self._batch(groups, le, le, re, payloads, self.results.versions(new))

    def _payloads(self, le: Ticks, re: Ticks, groups: Ticks, compute: Callable[[], Mapping[str, AnyColumn]]) -> Table:
        """Return the results of windows, projected. Raises `UserCodeError` naming the window."""
        self.udm_calls += len(self.aggregates) * len(le)
        keys = self.key_table.shown(groups) if self.key_table is not None and self._reads_key else None
        try:
            columns = compute()
            table = Table(Schema.record(list(columns)), with_parts(columns), len(le))
            return project(self._projection, Inputs((table,), len(le), keys=keys))
        except RowError as error:
            window = Lifetime(int(le[error.row]), int(re[error.row]))
            raise self.user_error(error, window=window) from error.cause

    def _terms(self, batch: Batch) -> Terms:
        """Return what each row adds to the totals of the windows that it is in."""
        terms = Terms(len(batch), [Part(ROWS, None, None, 1)])
        reading = [accumulator for accumulator in self.accumulators if accumulator.number in self.arguments.places]
        inputs = inputs_of(batch) if reading else None
        for accumulator in reading:
            assert inputs is not None
            agg = self.aggregates[accumulator.number]
            column, chosen = self.argument(agg.given, agg.where, batch, inputs)
            accumulator.add_terms(column, chosen, terms)
        return terms

    def _batch(self, groups: Ticks, le: Ticks, re_old: Ticks, re_new: Ticks, table: Table, versions: Ticks) -> Batch:
        """Return a batch of result changes, given the starts of the windows and their ends before and after."""
        ids = VersionedIds(self._ids(le, groups), versions)
        if self._is_at_end:  # of the two ends one is the window's end, the other its start: an insertion or a retraction
            end = np.maximum(re_old, re_new)
            add_time(int(end.max(initial=MIN_TIME)), CHRONON)
            re_old, re_new = (end if re is le else np.where(re > le, end + CHRONON, end) for re in (re_old, re_new))
            le = end
        return Batch(ids, le, re_old, re_new, table, groups if self.is_grouped else None)

    def _ids(self, le: Ticks, groups: Ticks) -> WindowIds:
        return WindowIds(self.label, self.key_table, le, *(self.key_table.leaves(groups) if self.key_table is not None else []))

    # Row by row

    @functools.cached_property
    def _argument_program(self) -> RowProgram:
        exprs = argument_exprs(self.aggregates)
        return RowProgram([ProjectStep(Make(Schema.tuple(len(exprs)), exprs))])

    @functools.cached_property
    def _projected(self) -> RowProgram:
        return RowProgram([ProjectStep(self._projection, self.key_table)])

    @abstractmethod
    def _enter(self, batch: RowBatch, arguments: Sequence[RowArguments], cti: int) -> WindowActions | None:
        """Add rows to the state, and raise the high water; None, with no effect, if the columnar path must run."""

    def _values(self, slot: int) -> Values:
        """Return the aggregates of a window from its accumulators.

        Raises `ArithmeticError` if the columnar path must compute them.
        """
        rows = self.totals.at(ROWS, slot)
        return tuple([each.result(self.totals, slot, rows) for each in self.accumulators])

    def _hide_one(self, slot: int) -> None:
        """Remember a window that may not show yet."""

    def change_rows(self, batch: RowBatch, cti: int) -> Batch | None:
        if self.ending or not self.takes_rows:
            return None
        arguments = self._row_arguments(batch)
        actions = None if arguments is None else self._enter(batch, arguments, cti)
        if actions is None:
            return None
        if self._origin.keys is not self.key_table:
            self._origin = WindowIds(self.label, self.key_table)
        out = self._differences(actions) if self.accumulators_suffice else None
        if out is None:
            out = self._in_columns(actions)
        if actions.gone:
            self._drop_windows(np.array(actions.gone))
        return out

    def _row_arguments(self, batch: RowBatch) -> Sequence[RowArguments] | None:
        """Evaluate the aggregates' arguments for each row; None if the columnar path must."""
        if not self.arguments.size:
            return [NOTHING] * len(batch.changes)
        try:
            found = self._argument_program.function_for(batch.schema)(batch.values, None)
        except Exception:
            return None
        if found is None:
            return None
        arguments = []
        for values in found[0]:
            each = self.arguments.of_row(values, self.accumulators)
            if each is None:
                return None
            arguments.append(each)
        return arguments

    def _differences(self, actions: WindowActions) -> Batch | None:
        """Emit the difference to the emitted results, row by row; None, with no effect, if the columnar path must run."""
        computed, projected = actions.computed, self._projected.function_for(self._computed_schema)
        try:
            passed = projected([self._values(slot) for slot, _, _, _ in computed], [group for _, _, _, group in computed])
        except Exception:
            return None
        sends = computed or actions.moved or actions.retracted
        if passed is None or (sends and not self.results.takes(self._projected.schema)):
            return None
        self.udm_calls += len(self.aggregates) * len(computed)
        changes: list[Result] = []
        for slot in actions.hidden:
            self._hide_one(slot)
        for window in actions.retracted:
            self._retract_result(window, changes)
        for window in actions.moved:
            self._move(window, changes)
        for window, now in zip(computed, passed[0], strict=True):
            self._replace_result(window, now, changes)
        return results_batch(changes, self._projected.schema, self.is_grouped, self._origin)

    def _replace_result(self, window: Window, now: Values, changes: list[Result]) -> None:
        """Replace the emitted result of a window by the one that it has now, and append the changes."""
        slot, _, re, _ = window
        results = self.results
        was = results.swap(slot, now)
        if was is now:
            self._move(window, changes)
            return
        self._replace(window, was, now, results.swap_end(slot, re), changes)

    def _replace(self, window: Window, was: Values | None, now: Values, re_old: int, changes: list[Result]) -> None:
        """Append the changes that replace a result, if there is one, by another.

        Its window ended at `re_old` when it was emitted.
        """
        slot, start, re, group = window
        id, results = self._id_of(start, group), self.results
        if was is None:
            version = results.version(slot)
        else:
            version = results.retract(slot)
            changes.append(((id, version, *self._retracted_lifetime(start, re_old)), was, group))
            version += 1
        le = start
        if self._is_at_end:
            le, re = re, add_time(re, CHRONON)
        changes.append(((id, version, le, le, re), now, group))

    def _retracted_lifetime(self, le: int, re: int) -> tuple[int, int, int]:
        """Return `(le, re_old, re_new)` of the retraction of a result whose window ended at `re` when it was emitted."""
        return (re, re + CHRONON, re) if self._is_at_end else (le, re, le)

    def _move(self, window: Window, changes: list[Result]) -> None:
        """Move the end of an emitted result to the end that its window has now."""
        slot, start, re, group = window
        results = self.results
        re_old = results.swap_end(slot, re)
        values = results.values(slot) if re_old != re else None
        if values is None:
            return
        if self._is_at_end:
            self._replace(window, values, values, re_old, changes)
        else:
            changes.append(((self._id_of(start, group), results.version(slot), start, re_old, re), values, group))

    def _retract_result(self, window: Window, changes: list[Result]) -> None:
        """Retract the emitted result of a window."""
        slot, start, re, group = window
        values = self.results.values(slot)
        assert values is not None, "it is out"
        times = self._retracted_lifetime(start, self.results.swap_end(slot, re))
        changes.append(((self._id_of(start, group), self.results.retract(slot), *times), values, group))
        self.results.clear(np.array([slot]))

    def _id_of(self, start: int, group: int) -> tuple[object, ...]:
        return (start,) if self.key_table is None else (start, *self.key_table.leaves_of(group))

    def _in_columns(self, actions: WindowActions) -> Batch:
        """Do what `_differences` does on the columnar path: the rows are in the state already."""
        summed = {slot: True for slot, _, _, _ in actions.computed}
        summed |= {slot: False for slot, _, _, _ in actions.moved}
        summed |= dict.fromkeys([*actions.hidden, *[slot for slot, _, _, _ in actions.retracted]], True)
        for slot in actions.gone:
            summed.pop(slot, None)
        slots = np.fromiter(summed, dtype=np.intp, count=len(summed))
        are_summed = np.fromiter(summed.values(), dtype=np.bool_, count=len(summed))
        return self._emit(Touched(slots, are_summed, np.array(actions.gone, dtype=np.intp)))
