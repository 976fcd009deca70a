"""The columnar window operator: the windows of a grid with aggregates that support retraction.

A changed row is added to the totals of the windows that it enters, and subtracted from those that it leaves; the row itself is
not kept. Windows that are open have their totals in *cells*, later ones are *pending window deltas*. Only differences from the
emitted results are emitted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.columnar.accumulators import ACCUMULATORS, result_columns
from streamdsl.engine.columnar.cells import Cells
from streamdsl.engine.columnar.grid_numbers import ENDLESS, GridNumbers
from streamdsl.engine.columnar.pending import Pending
from streamdsl.engine.columnar.pending_deltas import Opened, PendingWindowDeltas
from streamdsl.engine.columnar.slice_sums import combine_windows
from streamdsl.engine.columnar.terms import ROWS
from streamdsl.engine.data_driven.row_arguments import RowArguments
from streamdsl.engine.data_driven.timeline import MOST, Touched
from streamdsl.engine.frontiers import Frontier, grid_cti, of_windows, quiet_until
from streamdsl.engine.operator import EmitPolicy
from streamdsl.engine.operators.driver import NO_GROUP, WindowActions, WindowDriver
from streamdsl.engine.row_batch import RowBatch
from streamdsl.engine.window_budget import Arrivals, WindowBudget
from streamdsl.expr.table import Rows, every, flatnonzero
from streamdsl.plan.node import WindowAggregate, WindowApply
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks
from streamdsl.udm.invoke import stamp
from streamdsl.windows import Grid, Output, Snapshot, unending

_FEW: Final = 4
"""A row in up to this many windows enters all that have begun; of a row in more, those that may not show yet stay pending."""

Touches: TypeAlias = dict[int, tuple[int, int, int]]
"""The cells that single rows have changed, by slot: window number, group, and number of rows."""


class ColumnarWindowOperator(WindowDriver):
    """Count, sum and avg over the windows of a grid."""

    def __init__(self, label: str, node: WindowAggregate, emit_policy: EmitPolicy) -> None:
        super().__init__(label, node, emit_policy)
        assert isinstance(node.windows, Grid)
        self.grid = node.windows
        self.numbers = GridNumbers(node.windows, emit_policy)
        self.pending_deltas = PendingWindowDeltas()
        self.budget = WindowBudget(label, f"{node.windows.describe(node.unit)} windows", emit_policy.most)
        self.cells = Cells()
        self.results, self.totals = self.cells.results, self.cells.totals
        self.takes_rows = not emit_policy.final
        self._shown = MIN_TIME
        self._first = self._closes = MIN_TIME
        self._keeps_begun = self.grid.most_per_point <= _FEW
        self._unending: dict[Hashable, int] = {}
        self._latest = MIN_TIME

    def _windows(self, slots: Rows) -> tuple[Ticks, Ticks, Ticks]:
        numbers = self.cells.number[slots]
        return self.cells.group[slots], self.grid.starts_of(numbers), self.grid.ends_of(numbers)

    def _summed_up(self) -> Rows:
        return self.cells.until(INFINITY)

    def _drop_windows(self, slots: Rows) -> None:
        self.cells.empty(slots)

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        self.budget.open(len(batch) + len(self.pending_deltas))
        pending = self._arrived(batch, ctis[0])
        if self.high_water == INFINITY and self._unending:
            raise unending(self.grid, min(self._unending, key=self._unending.__getitem__))
        last, _ = self._reached(self.high_water)
        passed = EMPTY
        if self.pending_deltas.is_empty and all(part.signs is None for part in pending):
            pending, passed = self._pass(pending, ctis[0])
        early, late = self._split(pending, last)
        for part in late:
            self.pending_deltas.add(part)
        touched = [self._open(found) for found in self.pending_deltas.open(last, self.budget)]
        touched += map(self._add, early)
        due = self._shown_of(self.cells.each_once(touched), ctis[0])
        is_empty = self.cells.totals.counts(ROWS)[due] == 0
        alive, dead = (due[~is_empty], due[is_empty]) if is_empty.any() else (due, due[:0])
        out = self._emit(Touched(alive, np.ones(len(alive), dtype=np.bool_), dead))
        if len(dead):
            self._drop_windows(dead)
        return Batch.concat([out, passed])

    # Row by row

    def _enter(self, batch: RowBatch, arguments: Sequence[RowArguments], cti: int) -> WindowActions | None:
        numbers = self.numbers
        entries: list[tuple[range, int, int, RowArguments]] = []
        n_windows = 0
        first = self._first if cti < self._closes else self.grid.first_ending_after(cti)
        high_water = cti if cti > self.high_water else self.high_water
        for (_, _, le, re_old, re_new), group, each in zip(batch.changes, batch.groups or NO_GROUP, arguments, strict=False):
            windows = numbers.entered(le, re_old, re_new)
            if windows is None or (windows and windows.start < first) or (n_windows := n_windows + len(windows)) > MOST:
                return None
            if le > high_water:
                high_water = le
            entries.append((windows, 1 if re_new > re_old else -1, group, each))
        last, shown = self._reached(high_water)
        # By end, the windows that the high water has passed are found in columns.
        if (shown != self._shown and self.emit_policy.by_end) or not self.pending_deltas.opens_nothing(last):
            return None
        self.high_water, self._shown = high_water, shown
        touched: Touches = {}
        for entry in entries:
            self._enter_one(*entry, last, touched)
        return self._actions_of(touched)

    def _enter_one(self, windows: range, sign: int, group: int, arguments: RowArguments, last: int, touched: Touches) -> None:
        """Add a row to windows (`sign` is 1) or subtract it (-1):

        in their cells, or in the pending deltas after the last open one.
        """
        cells, totals = self.cells, self.cells.totals
        totals.count_reals(arguments.reals)
        if windows.stop > last + 1:
            self.pending_deltas.add_one(
                range(max(windows.start, last + 1), windows.stop), group, arguments.parts, sign, arguments.reals
            )
            windows = range(windows.start, min(windows.stop, last + 1))
        if windows and windows[-1] > self._latest:
            self._latest = windows[-1]
            self._period(self._latest)
        for number in windows:
            slot = cells.find_one(number, group)
            touched[slot] = number, group, totals.add_row(arguments.parts, slot, sign)

    def _actions_of(self, touched: Touches) -> WindowActions:
        """Return what to do about the cells that have changed."""
        start, end = self.grid.start, self.grid.end
        due = WindowActions([], [], [], [], [])
        for slot, (number, group, rows) in touched.items():
            window = slot, start(number), end(number), group
            if not rows:
                due.gone.append(slot)
                if self.results.is_emitted.item(slot):
                    due.retracted.append(window)
            elif number <= self._shown:
                due.computed.append(window)
        return due

    # Columns

    def _reached(self, high_water: int) -> tuple[int, int]:
        """Return the number of the last window that has cells (later ones are pending), and of the last that may show."""
        begun = self.numbers.last_begun(high_water)
        if not self.emit_policy.by_end:
            return begun, begun
        shown = self.numbers.last_open(high_water)
        return begun if self._keeps_begun else shown, shown

    def _shown_of(self, touched: Rows, cti: int) -> Rows:
        """Return the cells whose results are needed:

        those that have changed and may show, or with `final` those that the CTI closes.
        """
        if self.emit_policy.final:
            self._drop_empty(touched)
            return self.cells.until(self.grid.first_ending_after(cti) - 1)
        before, self._shown = self._shown, self.numbers.last_open(self.high_water)
        if not self.emit_policy.by_end:
            return touched
        may_show = self.cells.number[touched] <= self._shown
        if not every(may_show):
            self._drop_empty(touched[~may_show])
            touched = touched[may_show]
        if self._shown == before:
            return touched
        return self.cells.each_once([touched, self.cells.between(before + 1, self._shown)])

    def _drop_empty(self, cells: Rows) -> None:
        """Drop cells without rows whose results were never emitted."""
        self.cells.drop(cells[self.cells.totals.counts(ROWS)[cells] == 0])

    def held_ends(self) -> list[int]:
        slots = self.cells.slots() if self.emit_policy.final else np.arange(0)
        ends: list[int] = self.grid.ends_of(self.cells.number[slots]).tolist()
        return ends

    def _pass(self, pending: list[Pending], cti: int) -> tuple[list[Pending], Batch]:
        """Compute new windows that the CTI closes at once, without cells; return the rest of the rows, and the results."""
        last = self.cells.last()
        first = MIN_TIME if last is None else last + 1
        stop = min(self.grid.first_ending_after(cti), self.numbers.stop)
        through = [part for part in (part.clipped(first, stop) for part in pending) if part]
        if not through:
            return pending, EMPTY
        self._period(max(part.stop for part in through) - 1)
        found = combine_windows(through, self.budget)
        le, re, groups = self.grid.starts_of(found.numbers), self.grid.ends_of(found.numbers), found.groups
        payloads = self._payloads(le, re, groups, lambda: result_columns(self.accumulators, found.totals))
        out = self._batch(groups, le, le, re, payloads, np.zeros(len(le), dtype=np.int64))
        rest = (part.clipped(*stretch) for part in pending for stretch in ((MIN_TIME, first), (stop, ENDLESS)))
        return [part for part in rest if part], out

    def _pending(self, batch: Batch) -> Pending:
        windows, terms = self.numbers.ranges(batch), self._terms(batch)
        terms = terms if windows.signs is None else terms.times(windows.signs)
        pending = Pending(self._groups(batch), windows.lo, windows.hi, terms, *windows[2:])
        return pending if windows.each or every(there := pending.lo < pending.hi) else pending.take(flatnonzero(there))

    def _groups(self, batch: Batch) -> Ticks:
        return np.zeros(len(batch), dtype=np.int64) if batch.keys is None else batch.keys

    def _arrived(self, batch: Batch, cti: int) -> list[Pending]:
        """Yield the changed rows, slice by slice, and raise the high water with each."""
        self.high_water = INFINITY if self.ending else max(self.high_water, cti)
        arrived = []
        for part in batch.slices():
            self.high_water = max(self.high_water, part.high_water)
            changed = part.changed()
            pending = self._pending(changed) if len(changed) else None
            if pending:
                arrived.append(pending)
                if pending.stop == ENDLESS and self.emit_policy.until == INFINITY:
                    self._note_unending(changed)
        return arrived

    def _note_unending(self, batch: Batch) -> None:
        """Keep the ids of rows without end: an error at the end of time must name one."""
        for row in flatnonzero((batch.re_old == INFINITY) | (batch.re_new == INFINITY)).tolist():
            if batch.re_new[row] == INFINITY:
                self._unending[batch.ids[row]] = int(batch.le[row])
            else:
                self._unending.pop(batch.ids[row], None)

    def _split(self, pending: Iterable[Pending], last: int) -> tuple[list[Pending], list[Pending]]:
        """Split rows into what they add to open windows, and to pending ones."""
        early, late = [], []
        for part in pending:
            # Retractions must reach the pending deltas before the windows that open now take these over.
            limit = min(last + 1, INFINITY)
            stop = limit if part.signs is None else np.where(part.signs > 0, limit, self.pending_deltas.next)
            late.append(part.clipped(stop, ENDLESS))
            early.append(part.clipped(MIN_TIME, stop) if late[-1] else part)
        return [part for part in early if part], [part for part in late if part]

    def _open(self, opened: Opened) -> Rows:
        """Create the cells of windows that open, and return them."""
        self._period(int(opened.numbers[-1]))
        slots = self.cells.find(opened.numbers, opened.groups)
        self.cells.totals.merge(slots, opened.totals)
        return slots

    def _add(self, part: Pending) -> Rows:
        """Add rows to the open windows, and return their cells."""
        last = part.stop - 1
        if last > self._latest:
            self._period(last)
            self._latest = last
        if part.is_single:
            slots = self.cells.find(part.lo, part.groups)
            self.cells.totals.add(slots, part.terms)
            return slots
        found = combine_windows([part], self.budget)
        slots = self.cells.find(found.numbers, found.groups)
        self.cells.totals.merge(slots, found.totals)
        return slots

    def _period(self, number: int) -> Lifetime:
        """Return the period of a window. Raises `TimeOverflow` if it, or its results, end beyond the range of times."""
        window = self.grid.window(number)
        stamp(window, self.node.output)
        return window

    def _are_shown(self, slots: Rows, was_out: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.ones(len(slots), dtype=np.bool_)

    # Time

    def held_groups(self) -> Iterable[int | None]:
        waiting = (table.group[table.slots()].tolist() for table in (self.pending_deltas.deltas, self.pending_deltas.running))
        return chain(self.cells.held_groups(), *waiting)

    def max_new_windows(self, arrivals: Arrivals) -> float:
        opened = None if self.pending_deltas.is_empty else min(self.high_water, self.grid.start(self.pending_deltas.next))
        groups, held = (
            (arrivals.rows, len(self.pending_deltas.running) + len(self.pending_deltas.deltas)) if self.is_grouped else (1, 1)
        )
        return arrivals.beyond(opened, self.grid.longest, self.grid.least_hop, groups, held)

    def forget(self, cti: int) -> None:
        if cti < self._closes:
            return
        self._first = self.grid.first_ending_after(cti)
        self._closes = self.grid.end(self._first)
        closed = self.cells.pop_until(self._first - 1)
        if len(closed):
            self.cells.release(closed)

    def output_cti(self, ctis: list[int]) -> int:
        (cti,) = ctis
        if cti < self._closes and self.node.output is Output.ALIGN:  # no window has ended since the last CTI
            opened = self.grid.start(self._first)
            return cti if cti < opened else opened
        return grid_cti(self.grid, self.node.output, cti, cti)

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return of_windows(self.node.output, inputs[0].cti)

    @property
    def emits_at_window_end(self) -> bool:
        return self.emit_policy.final and self.node.output is Output.ALIGN

    def quiet_until(self, cti: int) -> int:
        """Return the CTI below which no insertions cause an emission or advance the output CTI; MIN_TIME if there is none."""
        return quiet_until(self.grid, cti) if self.emits_at_window_end else MIN_TIME

    def state(self) -> dict[str, int]:
        n_open = len(self.cells)
        if self.emit_policy.by_end:
            n_open = int(np.count_nonzero(self.cells.number[self.cells.slots()] <= self._shown))
        return {"windows": n_open, "events": len(self.pending_deltas)}


def adds_up(node: WindowAggregate | WindowApply) -> bool:
    """Say whether the results follow from totals, so that no rows need to be kept."""
    are_sums = isinstance(node, WindowAggregate) and all(type(agg.function) in ACCUMULATORS for agg in node.aggregates)
    return are_sums and isinstance(node.windows, (Grid, Snapshot))
