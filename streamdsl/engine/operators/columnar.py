"""The columnar window operator: hopping and tumbling windows with aggregates that can be taken back, in columns.

A changed row adds to the windows that it enters, or takes out of those that it leaves: it is not remembered itself. Windows that
are open have their sums in *cells*, later ones in the *delta ring*. What differs from the results that are out goes on.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.columnar.accumulators import ACCUMULATORS, Accumulator, CountAccumulator, result_columns
from streamdsl.engine.columnar.cells import Cells
from streamdsl.engine.columnar.combine import Combined, combine_deltas, combine_windows
from streamdsl.engine.columnar.lanes import ROWS, Lanes, Part, Terms, distinct
from streamdsl.engine.columnar.numbers import GridNumbers, Ranges
from streamdsl.engine.columnar.ring import DeltaRing
from streamdsl.engine.keys import grouping
from streamdsl.engine.operator import Gate, Operator, inputs_of
from streamdsl.engine.windows.grid import grid_cti
from streamdsl.expr import Inputs, RowError, project, truth
from streamdsl.expr.nodes import Key, Life, Whole
from streamdsl.expr.schema import Schema, Shape
from streamdsl.expr.table import Column, Rows, Table, concat_columns
from streamdsl.plan.node import WindowAggregate, WindowApply
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks
from streamdsl.udm.aggregates import BoundAgg
from streamdsl.windows import Hopping, Output, unending

SLICE: Final = 2**14
"""Rows that are taken at once: more fall out of the cache."""


class Pending(NamedTuple):
    """A slice of changed rows: their groups, what they add, and to which windows."""

    codes: Rows
    ranges: Ranges
    terms: Terms


class ColumnarWindowOperator(Operator):
    """Count, sum and avg over hopping and tumbling windows."""

    kind = "window (columnar)"

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
        codes, groups = grouping(batch)
        pending = [self._pending(batch.take(rows), codes[rows]) for rows in _slices(len(batch))]
        self._note_unending(batch)
        for part in pending:
            self._wait(part, groups, opened)
        touched = [self._fill(found.numbers, found.groups, found.lanes, found.positions) for found in self.ring.open(opened)]
        touched += [self._enter(part, groups, opened) for part in pending]
        return self._emit(distinct(touched))

    def _pending(self, batch: Batch, codes: Rows) -> Pending:
        ranges = self.numbers.ranges(batch)
        terms = Terms(len(batch), [Part(ROWS, None, np.ones(len(batch), dtype=np.int64), 1)])
        inputs = inputs_of(batch)
        for accumulator, agg in zip(self.accumulators, self.node.aggregates, strict=True):
            self._add_terms(accumulator, agg, batch, inputs, terms)
        return Pending(codes, ranges, terms if ranges.signs is None else terms.times(ranges.signs))

    def _add_terms(self, accumulator: Accumulator, agg: BoundAgg, batch: Batch, inputs: Inputs, terms: Terms) -> None:
        argument = agg.argument or Whole()
        is_row = isinstance(argument, Whole) and batch.table.schema.shape in (Shape.RECORD, Shape.TUPLE, Shape.CLASS)
        if isinstance(accumulator, CountAccumulator) and is_row:
            column: Column = batch.le
        else:
            column = self.evaluate(argument, inputs, batch.ids)
        chosen = None
        if agg.where is not None:
            chosen = self._truth(self.evaluate(agg.where, inputs, batch.ids), batch.ids)
        accumulator.add_terms(column, chosen, terms)

    def _truth(self, column: Column, ids: Column) -> Any:
        try:
            return truth(column)
        except RowError as error:
            raise self.user_error(error, ids) from error.cause

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
            raise unending(self.windows, min(self._unending, key=lambda id: self._unending[id]))

    def _wait(self, part: Pending, groups: Column, opened: int) -> None:
        """Put into the ring what is not open yet. What is taken out must go before the windows that open now have taken it over."""
        lo, hi, signs = part.ranges
        limit = self._limits(signs, opened)
        late = np.maximum(lo, limit)
        if (late < hi).any():
            self.ring.add(combine_deltas(part.codes, late, hi, part.terms), groups)

    def _enter(self, part: Pending, groups: Column, opened: int) -> Rows:
        """Change the open windows, and return their cells."""
        lo, hi, signs = part.ranges
        found = combine_windows(part.codes, lo, np.minimum(hi, self._limits(signs, opened)), part.terms)
        return self._fill(found.numbers, groups[found.codes], found.lanes, found.positions)

    def _limits(self, signs: Ticks | None, opened: int) -> Ticks | int:
        ...
