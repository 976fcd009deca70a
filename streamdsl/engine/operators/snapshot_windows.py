"""The snapshot window operator: aggregates that support retraction, between all endpoints of a group, in columns.

A changed row itself is not kept: it is added to the totals of the windows that it is in, and its endpoints are counted. Only
differences from the emitted results are emitted.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.columnar.accumulators import result_columns
from streamdsl.engine.data_driven.boundaries import Boundaries
from streamdsl.engine.data_driven.endpoints import SignedRows
from streamdsl.engine.data_driven.row_arguments import RowArguments
from streamdsl.engine.data_driven.timeline import RowChange, SnapshotTimeline
from streamdsl.engine.frontiers import Frontier, before, of_windows
from streamdsl.engine.operator import EmitPolicy
from streamdsl.engine.operators.data_driven_windows import DataDrivenOperator, TouchedWindows
from streamdsl.engine.row_batch import RowBatch
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.plan.node import WindowAggregate
from streamdsl.temporal.time import INFINITY, Ticks


class SnapshotOperator(DataDrivenOperator):
    """Count, sum and avg over snapshot windows."""

    table: Boundaries

    def __init__(self, label: str, node: WindowAggregate, emit_policy: EmitPolicy) -> None:
        super().__init__(label, node, emit_policy)
        self.timeline = SnapshotTimeline(self.emit_policy.by_end)
        self.table, self.codes = self.timeline.boundaries, self.timeline.codes
        self.results, self.totals = self.table.results, self.table.totals
        self.hidden: list[tuple[int, int]] = []

    def _take(self, batch: Batch) -> Batch:
        if self.ending and self.timeline.is_empty and len(batch):
            return self._pass(batch)
        touched = self.timeline.take(self._changed(batch) if len(batch) else None, self.high_water)
        out = self._emit(touched)
        self.timeline.drop(touched.gone)
        return out

    def _summed_up(self) -> Rows:
        # Later windows keep their difference from the one before.
        return flatnonzero((self.table.rows > 0) & (self.table.le <= self.high_water))

    def _drop_windows(self, slots: Rows) -> None:
        self.timeline.drop(slots)

    def _forget(self, cti: int) -> None:
        self.timeline.forget(cti)

    def _pass(self, batch: Batch) -> Batch:
        """Return the results of a bounded run, all of whose rows are given: no state is kept."""
        spans = self.timeline.spans(self._changed(batch), self._last_end)
        groups = self.codes.groups(spans.codes)
        payloads = self._payloads(spans.le, spans.re, groups, lambda: result_columns(self.accumulators, spans.totals))
        return self._batch(groups, spans.le, spans.le, spans.re, payloads, np.zeros(len(spans.le), dtype=np.int64))

    def _changed(self, batch: Batch) -> SignedRows:
        return SignedRows.of(batch, self._codes(batch), self._terms(batch))

    # Row by row

    def _takes(self, rows: Sequence[RowChange], high_water: int) -> bool:
        return self.timeline.takes(rows)

    def _take_rows(self, batch: RowBatch, rows: Sequence[RowChange], arguments: Sequence[RowArguments]) -> TouchedWindows:
        return TouchedWindows(*self.timeline.take_rows(rows, arguments, self.high_water))

    def _hide_one(self, slot: int) -> None:
        if self.table.le.item(slot) <= self.high_water:  # else it has a timer
            self._hide(np.array([slot]))

    # Time

    def output_cti(self, ctis: list[int]) -> int:
        # In a bounded run an open window may still grow beyond the bound, and then has no result.
        return ctis[0] if self.emit_policy.until == INFINITY else self.timeline.first_start(ctis[0])

    def _closed(self, cti: int) -> int:
        """A window that ends at the CTI may still end elsewhere."""
        return before(cti)

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return of_windows(self.node.output, before(inputs[0].cti))

    def _sizes(self, cti: int) -> Ticks:
        return self.timeline.sizes(cti)

    def _hide(self, slots: Rows) -> None:
        if not self.emit_policy.by_end:
            return
        for entry in zip(self.table.le[slots].tolist(), slots.tolist(), strict=True):
            heapq.heappush(self.hidden, entry)
        if len(self.hidden) > self.table.capacity:
            self.hidden = sorted(entry for entry in set(self.hidden) if self._is_hidden(*entry))

    def held_back(self) -> int:
        while self.hidden and not self._is_at_end:
            le, slot = self.hidden[0]
            if self._is_hidden(le, slot):
                return le
            heapq.heappop(self.hidden)
        return INFINITY

    def held_ends(self) -> list[int]:
        if not self.emit_policy.final:
            return []
        slots = [slot for le, slot in self.hidden if self._is_hidden(le, slot)]
        ends: list[int] = self.table.re[slots].tolist()
        return ends

    def _is_hidden(self, le: int, slot: int) -> bool:
        """Say whether a slot still has a window that shows later.

        One that is closed and hidden ends after the end of a bounded run.
        """
        table = self.table
        waits = table.rows[slot] > 0 and not self.results.is_emitted[slot]
        return bool(table.le[slot] == le and waits and table.re[slot] >= self.input_ctis[0])

    def _n_events(self, cti: int) -> int:
        return 0
