"""The session window operator: aggregates that can be taken back, over the sessions of a group, in columns.

New rows make sessions, or let them grow and merge. One that loses a row is made anew of those that are left, from a log.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamdsl.engine.batch import Batch
from streamdsl.engine.frontiers import Frontier
from streamdsl.engine.operator import Gate
from streamdsl.engine.operators.swept import SweptOperator
from streamdsl.engine.swept.sessions import SessionTable
from streamdsl.expr.table import Rows
from streamdsl.plan.node import WindowAggregate
from streamdsl.temporal.time import Ticks
from streamdsl.windows import Session


class SessionOperator(SweptOperator):
    """Count, sum and avg over sessions that are not cut."""

    def __init__(self, label: str, node: WindowAggregate, gate: Gate) -> None:
        super().__init__(label, node, gate)
        assert isinstance(node.windows, Session)
        self.swept: SessionTable = SessionTable(node.windows, self.gate.by_end)

    def _take(self, batch: Batch) -> Batch:
        touched = self.swept.take(batch, self._codes(batch), self._terms(batch), self.watermark, self.ending)
        out = self._emit(touched)
        self.swept.drop(touched.gone)
        return out

    def _hide(self, slots: Rows) -> None:
        super()._hide(slots)
        self.swept.wait(slots)

    def output_cti(self, ctis: list[int]) -> int:
        return self.swept.first_start(ctis[0])

    def _closed(self, cti: int) -> int:
        return cti

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return inputs[0].cti

    def _sizes(self, cti: int) -> Ticks:
        return self.swept.boundaries.rows[self.swept.open_slots(cti)]

    def _n_events(self, cti: int) -> int:
        return self.swept.n_events(cti)
