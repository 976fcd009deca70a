"""The columnar window operator: hopping and tumbling windows with aggregates that can be taken back, in columns.

A changed row adds to the windows that it enters, or takes out of those that it leaves: it is not remembered itself. Windows that
are open have their sums in *cells*, later ones in the *delta ring*. What differs from the results that are out goes on.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import repeat
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.columnar.accumulators import ACCUMULATORS, Accumulator, result_columns
from streamdsl.engine.columnar.cells import Cells
from streamdsl.engine.columnar.combine import combine_deltas, combine_windows
from streamdsl.engine.columnar.lanes import ROWS, Part, Terms, distinct
from streamdsl.engine.columnar.numbers import GridNumbers
from streamdsl.engine.columnar.ring import DeltaRing, Opened
from streamdsl.engine.ids import DeferredIds, Ids
from streamdsl.engine.keys import group_codes
from streamdsl.engine.operator import Gate, Operator, inputs_of
from streamdsl.engine.windows.grid import grid_cti
from streamdsl.expr import Inputs, RowError, project
from streamdsl.expr.nodes import Key, Life
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Column, Rows, Table
from streamdsl.plan.node import WindowAggregate, WindowApply
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import CHRONON, INFINITY, MIN_TIME, Ticks
from streamdsl.udm.aggregates import BoundAgg
from streamdsl.udm.invoke import stamp
from streamdsl.windows import Hopping, Output, Snapshot, unending

SLICE: Final = 2**16
"""Rows that are taken at once: more fall out of the cache."""


class Pending(NamedTuple):
    """A slice of changed rows: their groups, what they add to the windows `[lo, hi)`, and where those to wait begin."""

    codes: Rows
    lo: Ticks
    hi: Ticks
    limit: Ticks | int
    terms: Terms


class WindowIds(DeferredIds):
    """The ids of windows' results: `(operator, start, 0)`, in groups `(operator, key, start, 0)`."""

    __slots__ = ("label",)

    def __init__(self, label: str, starts: Column, *groups: Column) -> None:
        super().__init__(starts, *groups)
        self.label = label

    def with_columns(self, *columns: Column) -> WindowIds:
        """Return the ids of other results."""
        return WindowIds(self.label, *columns)

    def is_like(self, other: object) -> bool:
        """Say whether other ids are of results of the same operator."""
        return isinstance(other, WindowIds) and (other.label, len(other.columns)) == (self.label, len(self.columns))

    def spelled(self) -> Iterator[Hashable]:
        """Return the ids."""
        starts, *groups = self.columns
        paths = [map(attrgetter("path"), column.tolist()) for column in groups]
        return zip(repeat(self.label), *paths, starts.tolist(), repeat(0), strict=False)


class ColumnarWindowOperator(Operator):
    """Count, sum and avg over hopping and tumbling windows."""

    kind = "window (columnar)"
    takes_gate = True

    def __init__(self, label: str, node: WindowAggregate, gate: Gate) -> None:
        super().__init__(label)
        assert isinstance(node.windows, Hopping)
        self.node = node
        self.windows = node.windows
        self.numbers = GridNumbers(node.windows, gate)
        self.accumulators = [ACCUMULATORS[type(agg.function)](i) for i, agg in enumerate(node.aggregates)]  # type: ignore[index]
        self.watermark = MIN_TIME
        self.ring = DeltaRing()
        self.cells = Cells()
        self._unending: dict[Hashable, int] = {}
        self._keyed = False
        self._reads_key = any(isinstance(part, Key) for part in node.projection.walk())

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        self._keyed = self._keyed or batch.keys is not None
        self.watermark = INFINITY if self.ending else max(self.watermark, batch.watermark, ctis[0])
        opened = self.numbers.last_open(self.watermark)
        batch = _changed(batch)
        codes, groups = group_codes(batch.keys, batch.codes, len(batch))
        pending = [self._pending(part, part_codes, opened) for part, part_codes in _slices(batch, codes)]
        self._note_unending(batch)
        for part in pending:
            self._wait(part, groups)
        touched = [self._show(found) for found in self.ring.open(opened)]
        touched += [self._enter(part, groups) for part in pending]
        return self._emit(distinct(touched))

    def _pending(self, batch: Batch, codes: Rows, opened: int) -> Pending:
        lo, hi, signs = self.numbers.ranges(batch)
        terms = Terms(len(batch), [Part(ROWS, None, np.ones(len(batch), dtype=np.int64), 1)])
        inputs = inputs_of(batch)
        for accumulator, agg in zip(self.accumulators, self.node.aggregates, strict=True):
            self._add_terms(accumulator, agg, batch, inputs, terms)
        later = min(opened + 1, INFINITY)
        if signs is None:
            return Pending(codes, lo, hi, later, terms)
        # What is taken out must go from the ring before the windows that open now take it over from there.
        return Pending(codes, lo, hi, np.where(signs > 0, later, self.ring.next), terms.times(signs))

    def _add_terms(self, accumulator: Accumulator, agg: BoundAgg, batch: Batch, inputs: Inputs, terms: Terms) -> None:
        column, chosen = self.argument(agg.given, agg.where, batch, inputs)
        accumulator.add_terms(column, chosen, terms)

    def _note_unending(self, batch: Batch) -> None:
        """Keep the ids of rows without end: at the end of time they must be named."""
        if self.numbers.gate.until != INFINITY:
            return
        for row in np.flatnonzero((batch.re_old == INFINITY) | (batch.re_new == INFINITY)).tolist():
            if batch.re_new[row] == INFINITY:
                self._unending[batch.ids[row]] = int(batch.le[row])
            else:
                self._unending.pop(batch.ids[row], None)
        if self.watermark == INFINITY and self._unending:
            raise unending(self.windows, min(self._unending, key=self._unending.__getitem__))

    def _wait(self, part: Pending, groups: Column) -> None:
        """Put into the ring what is not open yet."""
        late = np.maximum(part.lo, part.limit)
        if (late < part.hi).any():
            self.ring.add(combine_deltas(part.codes, late, part.hi, part.terms), groups)

    def _show(self, opened: Opened) -> Rows:
        """Make the cells of windows that open, and return them."""
        self._period(int(opened.numbers[-1]))
        slots = self.cells.make(opened.numbers, opened.groups)
        self.cells.lanes.merge(slots, opened.lanes, opened.positions)
        return slots

    def _enter(self, part: Pending, groups: Column) -> Rows:
        """Change the open windows, and return their cells."""
        found = combine_windows(part.codes, part.lo, np.minimum(part.hi, part.limit), part.terms)
        if len(found.numbers):
            self._period(int(found.numbers.max()))
        slots = self.cells.find(found.numbers, groups[found.codes])
        self.cells.lanes.merge(slots, found.lanes, found.positions)
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
        is_empty = cells.lanes.counts(ROWS)[touched] == 0
        alive, dead = touched[~is_empty], touched[is_empty]
        results = self._results(alive)
        changed = np.flatnonzero(~cells.are_out(alive, results))
        fresh, results = alive[changed], results.take(changed)
        moved = np.concatenate([fresh, dead])
        gone = np.flatnonzero(cells.is_out[moved])
        out = self._changes(moved, gone, len(fresh), Table.concat([cells.results(moved[gone]), results]))
        cells.put(fresh, results)
        cells.drop(dead)
        return out

    def _results(self, slots: Rows) -> Table:
        """Return the payloads that windows have now. Raises `UserCodeError` naming the window."""
        self.udm_calls += len(self.accumulators) * len(slots)
        keys = _shown(self.cells.group[slots]) if self._reads_key else None
        try:
            columns = result_columns(self.accumulators, self.cells.lanes.take(slots))
            table = Table(Schema.record(list(columns)), columns, len(slots))
            return project(self.node.projection, Inputs((table,), len(slots), keys=keys))
        except RowError as error:
            window = self._period(int(self.cells.number[slots[error.row]]))
            raise self.user_error(error, window=window) from error.cause

    def _changes(self, slots: Rows, gone: Rows, n_fresh: int, table: Table) -> Batch:
        """Return the retractions of the results of some cells, and the insertions of those of the first `n_fresh` cells."""
        rows = np.concatenate([gone, np.arange(n_fresh)])
        is_gone = np.arange(len(rows)) < len(gone)
        starts = self.numbers.starts(self.cells.number[slots])
        ends = starts + self.windows.size
        lives = (ends, ends + CHRONON) if self.node.output is Output.POINT_AT_END else (starts, ends)
        le, re = (times[rows] for times in lives)
        ids = self._ids(starts, self.cells.group[slots])[rows]
        keys = self.cells.group[slots[rows]] if self._keyed else None
        return Batch(ids, le, np.where(is_gone, re, le), np.where(is_gone, le, re), table, keys)

    def _ids(self, starts: Ticks, groups: Column) -> Ids:
        return WindowIds(self.label, starts, *([groups] if self._keyed else []))

    def forget(self, cti: int) -> None:
        self.cells.release(self.cells.pop_until(self.numbers.grid.first_ending_after(cti) - 1))

    def output_cti(self, ctis: list[int]) -> int:
        return grid_cti(self.windows, self.node.output, ctis[0], ctis[0])

    def state(self) -> dict[str, int]:
        return {"windows": len(self.cells), "events": len(self.ring), "state_bytes": self.cells.nbytes + self.ring.nbytes}


def _changed(batch: Batch) -> Batch:
    rows = np.flatnonzero(batch.re_old != batch.re_new)
    return batch if len(rows) == len(batch) else batch.take(rows)


def _slices(batch: Batch, codes: Rows) -> Iterator[tuple[Batch, Rows]]:
    if len(batch) <= SLICE:
        yield batch, codes
        return
    for start in range(0, len(batch), SLICE):
        rows = np.arange(start, min(start + SLICE, len(batch)))
        yield batch.take(rows), codes[rows]


def _shown(groups: Column) -> Column:
    return np.fromiter((group.shown if group else None for group in groups.tolist()), dtype=object, count=len(groups))


def why_not_columnar(node: WindowAggregate | WindowApply) -> str | None:
    """Say why the columnar operators cannot run a node, None if one can."""
    if not isinstance(node, WindowAggregate):
        return "it runs an operator, not aggregates"
    if not isinstance(node.windows, (Hopping, Snapshot)):
        return f"its windows are {node.windows.describe()}, not hopping, tumbling or snapshots"
    if isinstance(node.windows, Snapshot) and node.output is not Output.ALIGN:
        return "the results of its snapshots are points at their ends"
    for agg in node.aggregates:
        if type(agg.function) not in ACCUMULATORS:
            return f"{agg.function.label} is not one of {', '.join(sorted(kind.__name__.lower() for kind in ACCUMULATORS))}"
        if any(isinstance(part, Life) for expr in (agg.argument, agg.where) if expr is not None for part in expr.walk()):
            return "an aggregate reads lifetimes"
    return None
