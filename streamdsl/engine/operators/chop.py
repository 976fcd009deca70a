"""Chop: each row in pieces, cut where the cells of a grid begin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from streamdsl.engine.batch import Batch
from streamdsl.engine.columnar.numbers import GridNumbers
from streamdsl.engine.index import EventIndex, EventRow
from streamdsl.engine.operator import Gate, Operator
from streamdsl.engine.room import Coming, Room
from streamdsl.engine.store import PayloadStore, SlotChange
from streamdsl.expr.table import flatnonzero
from streamdsl.plan.node import Chop
from streamdsl.temporal import INFINITY, MIN_TIME, Lifetime
from streamdsl.windows import unending


class Moved(NamedTuple):
    """A row whose RE has changed."""

    row: EventRow
    group: int | None
    re_old: int
    re_new: int


class ChopOperator(Operator):
    """The rows that may still be cut. The pieces of a cell come out when the watermark reaches it, as windows do."""

    kind = "chop (indexed)"
    takes_gate = True

    def __init__(self, label: str, node: Chop, gate: Gate) -> None:
        super().__init__(label)
        self.gate = gate
        self.numbers = GridNumbers(node.cells, gate)
        self.cells = self.numbers.grid
        self.rows = EventIndex()
        self.room = Room(label, "pieces", gate.most)
        self.store = PayloadStore()
        self.watermark = MIN_TIME
        self.opened = self.numbers.last_open(MIN_TIME)

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        self.room.open(len(batch) + len(self.rows))
        moved = list(self._moved(batch))
        changes = [change for move in moved for change in self._cut(move)]
        self.watermark = INFINITY if self.ending else max(self.watermark, batch.watermark, ctis[0])
        changes += self._open(self.numbers.last_open(self.watermark))
        out = self.store.batch(changes, self.is_grouped)
        self.store.free([move.row.payload for move in moved if move.re_new == move.row.le])
        return out

    def _moved(self, batch: Batch) -> Iterator[Moved]:
        batch = batch.changed()
        slots = iter(self.store.put(batch.table.take(flatnonzero(batch.re_old == batch.le))))
        columns = (batch.ids.tolist(), batch.le.tolist(), batch.re_old.tolist(), batch.re_new.tolist(), batch.group_keys())
        for id, le, re_old, re_new, group in zip(*columns, strict=True):
            row = self.rows.remove(id, le) if re_old > le else EventRow(id, le, re_new, next(slots), group)
            row.re = re_new
            if re_new > le:
                self.rows.add(row)
            yield Moved(row, group, re_old, re_new)

    def _cut(self, move: Moved) -> Iterator[SlotChange]:
        """Yield the changes of the pieces that are out, or were: those from the earlier of both ends on."""
        row = move.row
        first = self.cells.first_ending_after(max(row.le, min(move.re_old, move.re_new) - 1))
        last = min(self.opened, self.cells.last_starting_before(max(move.re_old, move.re_new)))
        self.room.take(max(0, last - first + 1))
        for number in range(first, last + 1):
            cell = self.cells.window(number)
            le = max(cell.le, row.le)
            old, new = (max(le, min(re, cell.re)) for re in (move.re_old, move.re_new))
            yield SlotChange((row.id, number), le, old, new, row.payload, move.group)

    def _open(self, opened: int) -> Iterator[SlotChange]:
        """Yield the pieces in the cells that open."""
        if opened <= self.opened:
            return
        lo, hi = max(MIN_TIME, self.cells.start(self.opened + 1)), min(INFINITY, self.cells.start(opened + 1))
        rows = self.rows.overlapping(lo, hi)
        endless = next((row.id for row in rows if row.re == INFINITY), None)
        if opened == self.numbers.last_open(INFINITY) and self.gate.until == INFINITY and endless is not None:
            raise unending(self.cells, endless)
        for row in rows:
            first = max(self.opened + 1, self.cells.first_ending_after(row.le))
            last = min(opened, self.cells.last_starting_before(row.re))
            self.room.take(max(0, last - first + 1))
            for number in range(first, last + 1):
                piece = self.cells.window(number).intersect(Lifetime(row.le, row.re))
                yield SlotChange((row.id, number), piece.le, piece.le, piece.re, row.payload, row.arguments)
        self.opened = opened

    def could_make(self, coming: Coming) -> float:
        size, n = self.cells.size, len(self.rows)
        return coming.beyond(self.watermark if n else None, size, size, coming.rows, n)

    def forget(self, cti: int) -> None:
        """Drop the rows that can neither change nor wait for a cell to open."""
        bound = min(cti, self.cells.start(self.opened + 1) + 1)
        self.store.free([row.payload for row in self.rows.forget(max(bound, MIN_TIME))])

    def held_back(self) -> int:
        if not self.gate.by_end:
            return INFINITY
        lo = max(MIN_TIME, self.cells.start(self.opened + 1))
        waiting = self.rows.overlapping(lo, min(INFINITY, lo + self.cells.size))
        return min((max(row.le, lo) for row in waiting), default=INFINITY)

    def held_groups(self) -> Iterable[int | None]:
        return (row.arguments for row in self.rows)

    def state(self) -> dict[str, int]:
        return {"windows": 0, "events": len(self.rows)}
