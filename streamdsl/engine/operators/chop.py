"""Chop: each row is cut into pieces at the boundaries of a grid's cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.columnar.grid_numbers import GridNumbers
from streamdsl.engine.frontiers import Frontier, of_same_ends
from streamdsl.engine.ids import PairIds
from streamdsl.engine.operator import EmitPolicy, Operator
from streamdsl.engine.pairs import spread
from streamdsl.engine.sorted import Probe, SortedSide, SortKeyEncoding
from streamdsl.engine.window_budget import Arrivals, WindowBudget
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.plan.node import Chop
from streamdsl.temporal import INFINITY, MIN_TIME
from streamdsl.temporal.time import Ticks
from streamdsl.windows import unending


class ChopOperator(Operator):
    """The rows that may still be cut. The pieces of a cell are emitted when the high water reaches it, as with windows."""

    kind = "chop (sorted runs)"
    takes_emit_policy = True

    def __init__(self, label: str, node: Chop, emit_policy: EmitPolicy) -> None:
        super().__init__(label)
        self.emit_policy = emit_policy
        self.numbers = GridNumbers(node.cells, emit_policy)
        self.cells = node.cells
        self.rows = SortedSide(SortKeyEncoding())
        self.budget = WindowBudget(label, "pieces", emit_policy.most)
        self.high_water = MIN_TIME
        self.opened = self.numbers.last_open(MIN_TIME)

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        self.budget.open(len(batch) + self.rows.n_events)
        out = []
        if len(batch):
            self.rows.take(batch, lambda rows: np.zeros(len(rows), dtype=np.int64))
            out.append(self._cut())
        self.high_water = INFINITY if self.ending else max(self.high_water, batch.high_water, ctis[0])
        out.append(self._open(self.numbers.last_open(self.high_water)))
        self.rows.end_step()
        return Batch.concat(out)

    def _cut(self) -> Batch:
        """Return the changes of emitted pieces: those from the earlier of both ends on."""
        rows, slots = self.rows.rows, self.rows.changed
        le, was, re = rows.le.take(slots), rows.was.take(slots), rows.re.take(slots)
        first = self._cell_of(np.maximum(le, np.maximum(np.minimum(was, re), MIN_TIME + 1) - 1))
        last = np.minimum(self.opened, self._cell_of(np.maximum(was, re) - 1))
        return self._pieces(slots, was, re, first, last)

    def _open(self, opened: int) -> Batch:
        """Return the pieces in the cells that open."""
        if opened <= self.opened:
            return EMPTY
        slots = self._living(self.cells.start(opened + 1))
        rows = self.rows.rows
        le, re = rows.le.take(slots), rows.re.take(slots)
        endless = flatnonzero(re == INFINITY)
        if opened == self.numbers.last_open(INFINITY) and self.emit_policy.until == INFINITY and len(endless):
            raise unending(self.cells, rows.ids(slots[endless[:1]])[0])
        first = np.maximum(self.opened + 1, self._cell_of(le))
        self.opened = opened
        return self._pieces(slots, le, re, first, np.minimum(opened, self._cell_of(re - 1)))

    def _next(self) -> int:
        """Return where the next cell opens."""
        return max(MIN_TIME, self.cells.start(self.opened + 1))

    def _living(self, until: int) -> Rows:
        """Return the rows that live in cells that are not open yet, before some time."""
        lo, hi = self._next(), min(INFINITY, until)
        return self.rows.living(Probe(*np.array([[0], [lo], [hi]])))[1] if lo < hi else np.empty(0, dtype=np.intp)

    def _cell_of(self, times: Ticks) -> Ticks:
        """Return the number of the cell that each time is in."""
        cells, behind = np.divmod(times, self.cells.size)
        numbers: Ticks = cells - (behind < self.cells.offset)
        return numbers

    def _pieces(self, slots: Rows, was: Ticks, re: Ticks, first: Ticks, last: Ticks) -> Batch:
        """Return the changes in some cells of rows with these ends before and after, retractions before insertions."""
        stop = np.maximum(last + 1, first)
        self.budget.take(int((stop - first).sum(dtype=np.float64)))
        at, numbers = spread(first, stop)
        rows, slots = self.rows.rows, slots[at]
        if not len(numbers):
            return EMPTY
        for outermost in (numbers.min(), numbers.max()):
            self.cells.window(int(outermost))
        starts = self.numbers.grid.starts_of(numbers)
        le, end = np.maximum(starts, rows.le.take(slots)), starts + self.cells.size
        old, new = (np.maximum(le, np.minimum(each[at], end)) for each in (was, re))
        order = np.concatenate([flatnonzero((old != new) & (old > le)), flatnonzero((old != new) & (old == le))])
        if not len(order):
            return EMPTY
        slots, le = slots[order], le[order]
        return rows.batch(PairIds(rows.ids(slots), numbers[order]), slots, le, old[order], new[order])

    def max_new_windows(self, arrivals: Arrivals) -> float:
        size, n = self.cells.size, self.rows.n_events
        return arrivals.beyond(self.high_water if n else None, size, size, arrivals.rows, n)

    def forget(self, cti: int) -> None:
        """Drop the rows that have ended, and whose cells are all open."""
        self.rows.forget(max(MIN_TIME, min(cti, self._next() + 1)))

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return of_same_ends(inputs[0], self.cti)

    def held_back(self) -> int:
        if not self.emit_policy.by_end:
            return INFINITY
        waiting = self._living(self._next() + self.cells.size)
        return max(int(self.rows.rows.le.take(waiting).min(initial=INFINITY)), self._next()) if len(waiting) else INFINITY

    def held_groups(self) -> Iterable[int | None]:
        return self.rows.groups()

    def state(self) -> dict[str, int]:
        return {"windows": 0, "events": self.rows.n_events}
