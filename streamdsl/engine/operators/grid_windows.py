"""The composed window operator over a grid. A row may be in any number of windows, most of which have not begun."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.data_driven.timeline import RowChange, Touched
from streamdsl.engine.frames.frame import ChangedRows
from streamdsl.engine.frames.grid import GridFrame
from streamdsl.engine.frontiers import quiet_until
from streamdsl.engine.operator import EmitPolicy
from streamdsl.engine.operators.framed_windows import FramedWindowOperator
from streamdsl.expr.table import Rows
from streamdsl.plan.node import WindowAggregate, WindowApply
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks
from streamdsl.windows import Grid, Output


class GridWindowOperator(FramedWindowOperator):
    """Any aggregates over the windows of a grid."""

    frame: GridFrame

    def __init__(self, label: str, node: WindowAggregate | WindowApply, emit_policy: EmitPolicy) -> None:
        super().__init__(label, node, emit_policy)
        self.rows.marks_new = True

    def _take(self, batch: Batch) -> Batch:
        if (
            self.emit_policy.final and len(batch) and self.frame.clock < INFINITY
        ):  # then all windows open at once: charge the budget first
            self.budget.open(len(batch) + self.rows.n_marked)
            self.frame.reserve(ChangedRows(self._codes(batch), batch.le, batch.re_old, batch.re_new), self.frame.clock)
        return super()._take(batch)

    def _takes(self, rows: Sequence[RowChange], high_water: int) -> bool:
        # By end, rows wait with their windows, whose members are all read at the end.
        return not self.emit_policy.by_end and super()._takes(rows, high_water)

    def _with_due(self, touched: Touched) -> Touched:
        opened = self.frame.open(self.high_water, self.rows)
        if not len(opened.slots):
            return touched
        slots, summed = np.concatenate([touched.slots, opened.slots]), np.concatenate([touched.summed, opened.summed])
        return Touched(slots, summed, touched.gone)

    def _hidden(self) -> Rows:
        return np.empty(0, dtype=np.intp)

    def held_ends(self) -> list[int]:
        if not self.emit_policy.final:
            return []
        _, numbers = self.frame.waiting(self.frame.clock, self.rows).spread()
        ends: list[int] = self.frame.grid.ends_of(numbers).tolist()
        return ends

    def _sizes(self, cti: int) -> Ticks:
        if not self.emit_policy.final:
            return super()._sizes(cti)
        return np.ones(int(self.frame.waiting(self.frame.clock, self.rows).lengths.sum()), dtype=np.int64)

    def held_groups(self) -> Iterator[int]:
        held = self.frame.held_codes(min(self.input_ctis, default=MIN_TIME), self.rows)
        return iter(self.codes.groups(held).tolist())

    @property
    def emits_at_window_end(self) -> bool:
        node = self.node
        return self.emit_policy.final and node.output is Output.ALIGN and not node.sees_ends

    @property
    def grid(self) -> Grid:
        """The grid of the windows."""
        return self.frame.grid

    def quiet_until(self, cti: int) -> int:
        """Return the CTI below which no insertions cause an emission or advance the output CTI; MIN_TIME if there is none."""
        return quiet_until(self.frame.grid, cti) if self.emits_at_window_end else MIN_TIME
