"""Distinct: each value for the time that some row has it, as maximal pieces."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from streamdsl.engine.batch import Batch
from streamdsl.engine.index import Pieces
from streamdsl.engine.operator import MatchKey, Operator
from streamdsl.engine.operators.sides import Side
from streamdsl.engine.store import SlotChange
from streamdsl.expr.nodes import Whole
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
        changes = [change for value, stretch in stretches.items() for change in self._redo(value, stretch)]
        out = self.rows.store.batch(changes, self.is_grouped)
        self.rows.release()
        return out

    def _redo(self, value: MatchKey, stretch: Stretch) -> list[SlotChange]:
        inside = Lifetime(stretch.lo, stretch.hi)
        lives = (Lifetime(row.le, row.re).intersect(inside) for row in self.rows.overlapping(value, *inside))
        path = self.path(value[0])
        pieces = self.out.setdefault(value, Pieces()).redo(*inside, lives)
        return [SlotChange((self.label, (path, value[1]), piece[0]), *piece, stretch.slot, value[0]) for piece in pieces]

    def forget(self, cti: int) -> None:
        self.rows.forget(cti)
        for value, pieces in list(self.out.items()):
            pieces.forget(cti)
            if not len(pieces):
                del self.out[value]

    def held_groups(self) -> Iterable[int | None]:
        return chain(self.rows.groups(), (group for group, _ in self.out))

    def state(self) -> dict[str, int]:
        events = self.rows.n_events
        return {"windows": 0, "events": events}
