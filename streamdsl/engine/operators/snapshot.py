"""The snapshot window operator: aggregates that can be taken back, between all endpoints of a group, in columns.

A changed row is not remembered itself: it adds to the windows that it is in, and its ends are counted. What differs from the
results that are out goes on.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.columnar.accumulators import result_columns
from streamdsl.engine.few import Few
from streamdsl.engine.frontiers import Frontier, before, of_windows
from streamdsl.engine.operator import Gate
from streamdsl.engine.operators.swept import Entered, SweptOperator
from streamdsl.engine.swept.endpoints import Changed
from streamdsl.engine.swept.given import Given
from streamdsl.engine.swept.timeline import RowChange, Timeline
from streamdsl.expr.scalars import Values
from streamdsl.expr.table import Rows, Table
from streamdsl.plan.node import WindowAggregate
from streamdsl.temporal.time import INFINITY, Ticks


class SnapshotOperator(SweptOperator):
    """Count, sum and avg over snapshot windows."""

    def __init__(self, label: str, node: WindowAggregate, gate: Gate) -> None:
        super().__init__(label, node, gate)
        self.swept: Timeline = Timeline(self.gate.by_end)
        self.results = self.swept.boundaries.results
        self.hidden: list[tuple[int, int]] = []

    def _take(self, batch: Batch) -> Batch:
        if self.ending and self.swept.is_empty and len(batch):
            return self._pass(batch)
        touched = self.swept.take(self._changed(batch) if len(batch) else None, self.watermark)
        out = self._emit(touched)
        self.swept.drop(touched.gone)
        return out

    def _pass(self, batch: Batch) -> Batch:
        """Return the results of rows that are all there ever is, as in a run: nothing need be kept."""
        spans = self.swept.spans(self._changed(batch), self._last_end)
        groups = self.swept.codes.groups(spans.codes)
        payloads = self._payloads(spans.le, spans.re, groups, lambda: result_columns(self.accumulators, spans.lanes))
        return self._batch(groups, spans.le, spans.le, spans.re, payloads, np.zeros(len(spans.le), dtype=np.int64))

    def _results(self, slots: Rows) -> Table:
        groups, le, re = self._windows(slots)
        lanes = self.swept.boundaries.lanes.take(slots)
        return self._payloads(le, re, groups, lambda: result_columns(self.accumulators, lanes))

    def _changed(self, batch: Batch) -> Changed:
        return Changed.of(batch, self._codes(batch), self._terms(batch))

    # Row by row

    def _takes(self, rows: Sequence[RowChange], watermark: int) -> bool:
        return self.swept.takes(rows)

    def _take_rows(self, batch: Few, rows: Sequence[RowChange], given: Sequence[Given]) -> Entered:
        return Entered(*self.swept.take_rows(rows, given, self.watermark))

    def _values(self, slot: int) -> Values:
        lanes, rows = self.swept.boundaries.lanes, self.swept.boundaries.rows.item(slot)
        return tuple([each.result(lanes, slot, rows) for each in self.accumulators])

    def _hide_one(self, slot: int) -> None:
        if self.swept.boundaries.le.item(slot) <= self.watermark:  # else it is on the agenda
            self._hide(np.array([slot]))

    # Time

    def output_cti(self, ctis: list[int]) -> int:
        # In a bounded run a window that may grow beyond the bound is then not there.
        return ctis[0] if self.gate.until == INFINITY else self.swept.first_start(ctis[0])

    def _closed(self, cti: int) -> int:
        """A window that ends at the CTI may still end elsewhere."""
        return before(cti)

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return of_windows(self.node.output, before(inputs[0].cti))

    def _sizes(self, cti: int) -> Ticks:
        return self.swept.sizes(cti)

    def _hide(self, slots: Rows) -> None:
        if not self.gate.by_end:
            return
        for entry in zip(self.swept.boundaries.le[slots].tolist(), slots.tolist(), strict=True):
            heapq.heappush(self.hidden, entry)
        if len(self.hidden) > self.swept.boundaries.capacity:
            self.hidden = sorted(entry for entry in set(self.hidden) if self._is_hidden(*entry))

    def held_back(self) -> int:
        while self.hidden and not self._is_at_end:
            le, slot = self.hidden[0]
            if self._is_hidden(le, slot):
                return le
            heapq.heappop(self.hidden)
        return INFINITY

    def held_ends(self) -> list[int]:
        if not self.gate.final:
            return []
        slots = [slot for le, slot in self.hidden if self._is_hidden(le, slot)]
        ends: list[int] = self.swept.boundaries.re[slots].tolist()
        return ends

    def _is_hidden(self, le: int, slot: int) -> bool:
        """Say whether a slot is still that of a window that waits for its end; a closed one ends beyond the bound of the run."""
        boundaries = self.swept.boundaries
        waits = boundaries.rows[slot] > 0 and not boundaries.results.is_out[slot]
        return bool(boundaries.le[slot] == le and waits and boundaries.re[slot] >= self.input_ctis[0])

    def _n_events(self, cti: int) -> int:
        return 0
