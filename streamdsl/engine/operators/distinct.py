"""Distinct: each value for the time that some row has it, as maximal pieces."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.index import PieceChange, Pieces
from streamdsl.engine.operator import Operator
from streamdsl.engine.operators.sides import MatchKey, Side
from streamdsl.expr.nodes import Whole
from streamdsl.expr.table import object_column
from streamdsl.plan.node import Distinct
from streamdsl.temporal import Lifetime


class Stretch(NamedTuple):
    """The stretch of time in which a value may have changed, and the slot of a row that has it."""

    lo: int
    hi: int
    slot: int


class DistinctOperator(Operator):
    """Per value the rows that have it, and its pieces that are out; a change redoes only the stretch that it touches."""

    kind = "distinct (indexed)"

    def __init__(self, label: str, node: Distinct) -> None:
        super().__init__(label)
        self.rows = Side(self, Whole())
        self.out: dict[MatchKey, Pieces] = {}

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        stretches: dict[MatchKey, Stretch] = {}
        for row, value, re_old, re_new in self.rows.changes(batch):
            known = stretches.get(value, Stretch(re_old, re_new, row.payload))
            stretches[value] = Stretch(min(known.lo, re_old, re_new), max(known.hi, re_old, re_new), row.payload)
        changes = [(value, stretch.slot, change) for value, stretch in stretches.items() for change in self._redo(value, stretch)]
        out = self._batch(changes, batch.keys is not None) if changes else EMPTY
        self.rows.release()
        return out

    def _redo(self, value: MatchKey, stretch: Stretch) -> list[PieceChange]:
        inside = Lifetime(stretch.lo, stretch.hi)
        rows = self.rows.overlapping(value, *inside)
        return self.out.setdefault(value, Pieces()).redo(*inside, (Lifetime(row.le, row.re).intersect(inside) for row in rows))

    def _batch(self, changes: list[tuple[MatchKey, int, PieceChange]], keyed: bool) -> Batch:
        changes.sort(key=lambda change: change[2][1] == change[2][0])
        values, slots, pieces = zip(*changes, strict=True)
        le, re_old, re_new = (np.array(times, dtype=np.int64) for times in zip(*pieces, strict=True))
        ids = object_column([(self.label, value, piece[0]) for value, piece in zip(values, pieces, strict=True)])
        groups = object_column([value[0] for value in values]) if keyed else None
        return Batch(ids, le, re_old, re_new, self.rows.store.take(slots), groups)

    def forget(self, cti: int) -> None:
        self.rows.forget(cti)
        for value, pieces in list(self.out.items()):
            pieces.forget(cti)
            if not len(pieces):
                del self.out[value]

    def state(self) -> dict[str, int]:
        events = self.rows.n_events
        return {"windows": 0, "events": events, "state_bytes": 300 * events + 100 * len(self.out)}
