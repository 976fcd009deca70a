"""The columnar window operator: hopping and tumbling windows with aggregates that can be taken back, in columns.

A changed row adds to the windows that it enters, or takes out of those that it leaves: it is not remembered itself. Windows that
are open have their sums in *cells*, later ones in the *delta ring*. What differs from the results that are out goes on.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import Final

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.columnar.accumulators import ACCUMULATORS, Accumulator, result_columns
from streamdsl.engine.columnar.cells import Cells
from streamdsl.engine.columnar.combine import combine_windows
from streamdsl.engine.columnar.lanes import Lanes
from streamdsl.engine.columnar.numbers import ENDLESS, GridNumbers
from streamdsl.engine.columnar.pending import Pending
from streamdsl.engine.columnar.ring import DeltaRing, Opened
from streamdsl.engine.columnar.terms import ROWS, Part, Terms
from streamdsl.engine.columnar.window_ids import WindowIds
from streamdsl.engine.frontiers import Frontier, grid_cti, of_windows
from streamdsl.engine.ids import VersionedIds
from streamdsl.engine.operator import Gate, Operator, inputs_of
from streamdsl.engine.room import Coming, Room
from streamdsl.expr import Inputs, RowError, project
from streamdsl.expr.nodes import Key, Life
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Rows, Table, every, flatnonzero
from streamdsl.plan.node import WindowAggregate, WindowApply
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import CHRONON, INFINITY, MIN_TIME, Ticks
from streamdsl.udm.aggregates import BoundAgg
from streamdsl.udm.invoke import stamp
from streamdsl.windows import Hopping, Output, Snapshot, unending

_ROW: Final = Part(ROWS, None, None, 1)
_FEW: Final = 4
"""A row in so many windows enters all that have begun; one in more waits in the ring for those that may not show yet."""
_EACH: Final = 64
"""So many rows, for each window that a row is in, enter window by window."""
_NONE: Final = np.arange(0)


class ColumnarWindowOperator(Operator):
    """Count, sum and avg over hopping and tumbling windows."""

    kind = "window (columnar)"
    takes_gate = True
    takes_slices = True

    def __init__(self, label: str, node: WindowAggregate, gate: Gate) -> None:
        super().__init__(label)
        assert isinstance(node.windows, Hopping)
        self.node = node
        self.windows = node.windows
        self.numbers = GridNumbers(node.windows, gate)
        self.aggregates = node.aggregates
        kinds = [(i, ACCUMULATORS.get(type(agg.function))) for i, agg in enumerate(self.aggregates)]  # type: ignore[arg-type]
        self.accumulators = [kind(i) for i, kind in kinds if kind is not None]
        self._reading = [accumulator for accumulator in self.accumulators if not self.aggregates[accumulator.number].counts_rows]
        self.watermark = MIN_TIME
        self.ring = DeltaRing()
        self.room = Room(label, f"{node.windows.describe()} windows", gate.most)
        self.cells = Cells()
        self._shown = MIN_TIME
        self._first = self._closes = MIN_TIME
        self._keeps_begun = self.windows.size <= _FEW * self.windows.hop
        self._unending: dict[Hashable, int] = {}
        self._latest = MIN_TIME
        self._computed: Schema | None = None
        self._projection = node.projection
        self._reads_key = any(isinstance(part, Key) for part in self._projection.walk())

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        self.room.open(len(batch) + len(self.ring))
        alone = self._alone(batch, ctis[0]) if len(batch) == 1 and self.ring.is_empty and not self.ending else None
        if alone is not None:
            return self._emit(self._due(self._enter(alone), ctis[0]))
        pending = self._arrived(batch, ctis[0])
        if self.watermark == INFINITY and self._unending:
            raise unending(self.windows, min(self._unending, key=self._unending.__getitem__))
        last = self._last_cell()
        passed = EMPTY
        if self.ring.is_empty and all(part.signs is None for part in pending):
            pending, passed = self._pass(pending, ctis[0])
        early, late = self._split(pending, last)
        for part in late:
            self.ring.add(part)
        touched = [self._open(found) for found in self.ring.open(last, self.room)]
        touched += map(self._enter, early)
        return Batch.concat([self._emit(self._due(self.cells.each_once(touched), ctis[0])), passed])

    def _last_cell(self) -> int:
        """Return the number of the last window that has cells: later ones are in the ring."""
        return self.numbers.last_begun(self.watermark) if self._keeps_begun else self.numbers.last_open(self.watermark)

    def _alone(self, batch: Batch, cti: int) -> Pending | None:
        """Return what a row that comes alone adds to a window that is open and stays so; None, where it is not so simple.

        The ring is empty. A number at a time costs less than columns of one.
        """
        le, re_old, re = batch.le.item(), batch.re_old.item(), batch.re_new.item()
        number = self.numbers.only(le, re) if re_old == le else None
        if number is None or number < self.numbers.grid.first_ending_after(cti):
            return None
        self.watermark = max(self.watermark, le, cti)
        last = self._last_cell()
        if number > last:
            return None
        self.ring.next = max(self.ring.next, last + 1)
        lo = np.array([number])
        return Pending(self._groups(batch), lo, lo + 1, self._terms(batch))

    def _due(self, touched: Rows, cti: int) -> Rows:
        """Return the cells whose results are wanted: those that have changed and may show, or only those that the CTI closes."""
        if self.numbers.gate.final:
            self._drop_empty(touched)
            return self.cells.until(self.numbers.grid.first_ending_after(cti) - 1)
        before, self._shown = self._shown, self.numbers.last_open(self.watermark)
        if not self.numbers.gate.by_end:
            return touched
        may_show = self.cells.number[touched] <= self._shown
        if not every(may_show):
            self._drop_empty(touched[~may_show])
            touched = touched[may_show]
        if self._shown == before:
            return touched
        return self.cells.each_once([touched, self.cells.between(before + 1, self._shown)])

    def _drop_empty(self, cells: Rows) -> None:
        """Let go cells without rows, whose results have never been out."""
        self.cells.drop(cells[self.cells.lanes.counts(ROWS)[cells] == 0])

    def held_ends(self) -> list[int]:
        slots = self.cells.slots() if self.numbers.gate.final else np.arange(0)
        ends: list[int] = (self.numbers.starts(self.cells.number[slots]) + self.windows.size).tolist()
        return ends

    def _pass(self, pending: list[Pending], cti: int) -> tuple[list[Pending], Batch]:
        """Return what is left of rows without the new windows that the CTI closes at once, and the results of these."""
        last = self.cells.last()
        first = MIN_TIME if last is None else last + 1
        stop = min(self.numbers.grid.first_ending_after(cti), self.numbers.stop)
        through = [part for part in (part.clipped(first, stop) for part in pending) if part]
        if not through:
            return pending, EMPTY
        self._period(max(part.stop for part in through) - 1)
        found = combine_windows(through, self.room)
        results = self._results(found.numbers, found.groups, found.lanes)
        out = self._changes(found.numbers, found.groups, _NONE, results, np.zeros(len(found.numbers), dtype=np.int64))
        rest = (part.clipped(*stretch) for part in pending for stretch in ((MIN_TIME, first), (stop, ENDLESS)))
        return [part for part in rest if part], out

    def _pending(self, batch: Batch) -> Pending:
        points = self.numbers.of_points(batch) if len(batch) > 1 else None
        if points is not None:
            lo, each, first, stop = points
            return Pending(self._groups(batch), lo, None, self._terms(batch), None, each, first, stop)
        lo, hi, signs = self.numbers.ranges(batch)
        terms = self._terms(batch)
        terms = terms if signs is None else terms.times(signs)
        pending = Pending(self._groups(batch), lo, hi, terms, signs)
        return pending if every(lo < hi) else pending.take(flatnonzero(lo < hi))

    def _groups(self, batch: Batch) -> Ticks:
        return np.zeros(len(batch), dtype=np.int64) if batch.keys is None else batch.keys

    def _terms(self, batch: Batch) -> Terms:
        """Return what rows add to the windows that they enter."""
        terms = Terms(len(batch), [_ROW])
        if self._reading:
            inputs = inputs_of(batch)
            for accumulator in self._reading:
                self._add_terms(accumulator, self.aggregates[accumulator.number], batch, inputs, terms)
        return terms

    def _add_terms(self, accumulator: Accumulator, agg: BoundAgg, batch: Batch, inputs: Inputs, terms: Terms) -> None:
        column, chosen = self.argument(agg.given, agg.where, batch, inputs)
        accumulator.add_terms(column, chosen, terms)

    def _arrived(self, batch: Batch, cti: int) -> list[Pending]:
        """Return the rows that change, slice by slice, each of which raises the watermark."""
        self.watermark = INFINITY if self.ending else max(self.watermark, cti)
        arrived = []
        for part in batch.slices():
            self.watermark = max(self.watermark, part.watermark)
            changed = part.changed()
            pending = self._pending(changed) if len(changed) else None
            if pending:
                arrived.append(pending)
                if pending.stop == ENDLESS and self.numbers.gate.until == INFINITY:
                    self._note_unending(changed)
        return arrived

    def _note_unending(self, batch: Batch) -> None:
        """Keep the ids of rows without end: at the end of time they must be named."""
        for row in flatnonzero((batch.re_old == INFINITY) | (batch.re_new == INFINITY)).tolist():
            if batch.re_new[row] == INFINITY:
                self._unending[batch.ids[row]] = int(batch.le[row])
            else:
                self._unending.pop(batch.ids[row], None)

    def _split(self, pending: Iterable[Pending], last: int) -> tuple[list[Pending], list[Pending]]:
        """Return what rows add to windows up to the last that is open, and to those that are not."""
        early, late = [], []
        for part in pending:
            # What is taken out must go from the ring before the windows that open now take it over from there.
            limit = min(last + 1, INFINITY)
            stop = limit if part.signs is None else np.where(part.signs > 0, limit, self.ring.next)
            late.append(part.clipped(stop, ENDLESS))
            early.append(part.clipped(MIN_TIME, stop) if late[-1] else part)
        return [part for part in early if part], [part for part in late if part]

    def _open(self, opened: Opened) -> Rows:
        """Make the cells of windows that open, and return them."""
        self._period(int(opened.numbers[-1]))
        slots = self.cells.find(opened.numbers, opened.groups)
        self.cells.lanes.merge(slots, opened.lanes)
        return slots

    def _enter(self, part: Pending) -> Rows:
        """Change the open windows, and return their cells."""
        last = part.stop - 1
        if last > self._latest:
            self._period(last)
            self._latest = last
        if part.is_single:
            slots = self.cells.find(part.lo, part.groups)
            self.cells.lanes.add(slots, part.terms)
            return slots
        if part.each and part.each * _EACH <= len(part.lo):
            return self._enter_alike(part)
        found = combine_windows([part], self.room)
        slots = self.cells.find(found.numbers, found.groups)
        self.cells.lanes.merge(slots, found.lanes)
        return slots

    def _enter_alike(self, part: Pending) -> Rows:
        """Do as `_enter` does with rows that are all in as many windows: their sums are found once for those that begin alike."""
        found = combine_windows([part.firsts], self.room)
        entered = []
        for ahead in range(part.each):
            entered.append(self.cells.find(found.numbers + ahead, found.groups))
            self.cells.lanes.merge(entered[-1], found.lanes)
        slots = self.cells.each_once(entered)
        self.room.take(len(slots))
        return slots

    def _period(self, number: int) -> Lifetime:
        """Return a window. Raises `TimeOverflow` if it, or its results, end beyond the range of times."""
        window = self.numbers.grid.window(number)
        stamp(window, self.node.output)
        return window

    def _emit(self, touched: Rows) -> Batch:
        """Return the difference between the results of the touched cells and those that are out."""
        if not len(touched):
            return EMPTY
        cells = self.cells
        if len(touched) == 1 and cells.lanes.counts(ROWS)[touched].item():
            return self._emit_one(touched)
        is_empty = cells.lanes.counts(ROWS)[touched] == 0
        alive, dead = (touched[~is_empty], touched[is_empty]) if is_empty.any() else (touched, touched[:0])
        results = self._results(cells.number[alive], cells.group[alive], cells.lanes.take(alive))
        is_out = cells.results.are(alive, results)
        if is_out.any():
            changed = flatnonzero(~is_out)
            alive, results = alive[changed], results.take(changed)
        moved = np.concatenate([alive, dead[cells.results.is_out[dead]]]) if len(dead) else alive
        gone = flatnonzero(cells.results.is_out[moved])
        table, versions = results, None
        if len(gone):
            table = Table.concat([cells.results.payloads(moved[gone]), results])
            versions = cells.retracted(moved[gone])
        now = cells.versions(alive)
        versions = now if versions is None else np.concatenate([versions, now])
        out = self._changes(cells.number[moved], cells.group[moved], gone, table, versions)
        cells.results.put(alive, results)
        cells.empty(dead)
        return out

    def _emit_one(self, slot: Rows) -> Batch:
        """Return what `_emit` does for a single cell that has rows: a number at a time costs less than columns of one."""
        number, group, sent = self.cells.number[slot], self.cells.group[slot], self.cells.results
        table = self._results(number, group, self.cells.lanes.take(slot))
        start = self.numbers.grid.start(number.item())
        end = start + self.windows.size
        le, re = (end, end + CHRONON) if self.node.output is Output.POINT_AT_END else (start, end)
        if not sent.is_out.item(slot.item()):
            rows, before, after, versions = 1, [le], [re], self.cells.versions(slot)
            sent.put(slot, table)
        else:
            both = sent.exchange(slot, table)
            if both is None:
                return EMPTY
            version = self.cells.retracted(slot).item()
            rows, before, after, table, versions = 2, [re, le], [le, re], both, np.array([version, version + 1])
        groups = group.repeat(rows)
        ids = VersionedIds(self._ids(np.array([start] * rows), groups), versions)
        return Batch(ids, np.array([le] * rows), np.array(before), np.array(after), table, groups if self.is_grouped else None)

    def _results(self, numbers: Ticks, groups: Ticks, lanes: Lanes) -> Table:
        """Return the payloads that windows, with these cells if they have some, have now. Raises `UserCodeError` naming one."""
        self.udm_calls += len(self.aggregates) * len(numbers)
        keys = self.key_table.shown(groups) if self.key_table is not None and self._reads_key else None
        try:
            columns = result_columns(self.accumulators, lanes)
            self._computed = self._computed or Schema.record(list(columns))
            table = Table(self._computed, columns, len(numbers))
            return project(self._projection, Inputs((table,), len(numbers), keys=keys))
        except RowError as error:
            window = self._period(int(numbers[error.row]))
            raise self.user_error(error, window=window) from error.cause

    def _changes(self, numbers: Ticks, groups: Ticks, gone: Rows, table: Table, versions: Ticks) -> Batch:
        """Return the retractions of the results of `gone` windows, then the insertions of those of the first windows."""
        starts = self.numbers.starts(numbers)
        ends = starts + self.windows.size
        le, re = (ends, ends + CHRONON) if self.node.output is Output.POINT_AT_END else (starts, ends)
        before, after = le, re
        if len(gone):
            n = table.size - len(gone)  # windows that have lost all rows only go
            starts, groups = (np.concatenate([each[gone], each[:n]]) for each in (starts, groups))
            before, after = np.concatenate([re[gone], le[:n]]), np.concatenate([le[gone], re[:n]])
            le = starts if le is not ends else np.concatenate([le[gone], le[:n]])
        ids = VersionedIds(self._ids(starts, groups), versions)
        return Batch(ids, le, before, after, table, groups if self.is_grouped else None)

    def _ids(self, starts: Ticks, groups: Ticks) -> WindowIds:
        leaves = [] if self.key_table is None else self.key_table.leaves(groups)
        return WindowIds(self.label, self.key_table, starts, *leaves)

    def held_groups(self) -> Iterable[int | None]:
        waiting = (table.group[table.slots()].tolist() for table in (self.ring.deltas, self.ring.running))
        return chain(self.cells.held_groups(), *waiting)

    def could_make(self, coming: Coming) -> float:
        opened = None if self.ring.is_empty else min(self.watermark, self.windows.start(self.ring.next))
        groups, held = (coming.rows, len(self.ring.running) + len(self.ring.deltas)) if self.is_grouped else (1, 1)
        return coming.beyond(opened, self.windows.size, self.windows.hop, groups, held)

    def forget(self, cti: int) -> None:
        if cti < self._closes:
            return
        self._first = self.windows.first_ending_after(cti)
        self._closes = self.windows.start(self._first) + self.windows.size
        closed = self.cells.pop_until(self._first - 1)
        if len(closed):
            self.cells.release(closed)

    def output_cti(self, ctis: list[int]) -> int:
        (cti,) = ctis
        if cti < self._closes and self.node.output is Output.ALIGN:  # no window has ended since the last CTI
            opened = self._closes - self.windows.size
            return cti if cti < opened else opened
        return grid_cti(self.windows, self.node.output, cti, cti)

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return of_windows(self.node.output, inputs[0].cti)

    @property
    def shows_at_ends(self) -> bool:
        return self.numbers.gate.final and self.node.output is Output.ALIGN

    @property
    def grid(self) -> Hopping:
        """Its windows."""
        return self.windows

    def quiet_until(self, cti: int) -> int:
        """Return the CTI below which it sends nothing and its own CTI stays, whatever insertions come; MIN_TIME if none."""
        le = self.windows.start(self.windows.first_ending_after(cti))
        return le + self.windows.size if self.shows_at_ends and le <= cti <= INFINITY - self.windows.size else MIN_TIME

    def state(self) -> dict[str, int]:
        n_open = len(self.cells)
        if self.numbers.gate.by_end:
            n_open = int(np.count_nonzero(self.cells.number[self.cells.slots()] <= self._shown))
        return {"windows": n_open, "events": len(self.ring)}


def why_not_columnar(node: WindowAggregate | WindowApply) -> str | None:
    """Say why the columnar operators cannot run a node, None if one can."""
    if not isinstance(node, WindowAggregate):
        return "it runs an operator, not aggregates"
    if not isinstance(node.windows, (Hopping, Snapshot)):
        return f"its windows are {node.windows.describe()}, not hopping, tumbling or snapshots"
    if not isinstance(node.windows, Hopping) and node.output is not Output.ALIGN:
        return "its results are points at the ends of windows that may move"
    for agg in node.aggregates:
        if type(agg.function) not in ACCUMULATORS:
            return f"{agg.function.label} is not one of {', '.join(sorted(kind.__name__.lower() for kind in ACCUMULATORS))}"
        if any(isinstance(part, Life) for expr in (agg.argument, agg.where) if expr is not None for part in expr.walk()):
            return "an aggregate reads lifetimes"
    return None
