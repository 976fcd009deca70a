"""Temporal join: every matching pair for the time that both live."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.index import EventRow
from streamdsl.engine.operators.cross import CrossJoinGuard
from streamdsl.engine.operators.sides import Side, SideChange, TwoSidedOperator
from streamdsl.errors import UserCodeError
from streamdsl.expr import RowError, project
from streamdsl.expr.nodes import Life, Make, Whole
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import object_column
from streamdsl.plan.node import Join

PAIR = Make(Schema.tuple(2), (Whole(0), Whole(1)))


class Pair(NamedTuple):
    """A pair of rows, and the end of their common time before and after."""

    left: EventRow
    right: EventRow
    le: int
    re_old: int
    re_new: int
    key: object


class JoinOperator(TwoSidedOperator):
    """Changes of the left meet the right as it was, changes of the right the left as it is; each pair's changes are netted."""

    kind = "join (indexed)"

    def __init__(self, label: str, node: Join) -> None:
        super().__init__(label, node.matching)
        self.projection = node.projection or PAIR
        self.reads_starts = any(isinstance(part, Life) for part in self.projection.walk())
        self.guard = CrossJoinGuard(label, node)

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        left, right = batches
        pairs = [pair for pair in self._left_pairs(left) + self._right_pairs(right) if pair.re_old != pair.re_new]
        kept = np.flatnonzero(self.matches([pair.left for pair in pairs], [pair.right for pair in pairs]))
        out = self._batch(_net([pairs[i] for i in kept]), self.is_grouped)
        self.left.release()
        self.right.release()
        return out

    def _left_pairs(self, batch: Batch) -> list[Pair]:
        return [
            _pair(change.row, partner, change.re_old, partner.re, change.re_new, partner.re, change.key[0])
            for change in self.left.changes(batch)
            for partner in self._partners(self.right, change)
        ]

    def _right_pairs(self, batch: Batch) -> list[Pair]:
        return [
            _pair(partner, change.row, partner.re, change.re_old, partner.re, change.re_new, change.key[0])
            for change in self.right.changes(batch)
            for partner in self._partners(self.left, change)
        ]

    def _partners(self, side: Side, change: SideChange) -> list[EventRow]:
        """Return the rows of a side that a row of the other has met, or meets."""
        partners = side.overlapping(change.key, change.row.le, max(change.re_old, change.re_new))
        self.guard.met(len(partners))
        return partners

    def _batch(self, pairs: list[Pair], keyed: bool) -> Batch:
        if not pairs:
            return EMPTY
        pairs.sort(key=lambda pair: pair.re_old == pair.le)
        try:
            table = project(self.projection, self.pairs([pair.left for pair in pairs], [pair.right for pair in pairs]))
        except RowError as error:
            event = (pairs[error.row].left.id, pairs[error.row].right.id)
            raise UserCodeError(error.cause, operator=self.label, event=event) from error.cause
        return Batch(
            object_column([(pair.left.id, pair.right.id) for pair in pairs]),
            np.array([pair.le for pair in pairs], dtype=np.int64),
            np.array([pair.re_old for pair in pairs], dtype=np.int64),
            np.array([pair.re_new for pair in pairs], dtype=np.int64),
            table,
            np.array([pair.key for pair in pairs], dtype=np.int64) if keyed else None,
        )


def _pair(left: EventRow, right: EventRow, left_old: int, right_old: int, left_new: int, right_new: int, key: object) -> Pair:
    le = max(left.le, right.le)
    return Pair(left, right, le, max(le, min(left_old, right_old)), max(le, min(left_new, right_new)), key)


def _net(pairs: list[Pair]) -> list[Pair]:
    """Join the changes of a pair whose left and right have both changed; leave out what does not change in the end."""
    net: dict[tuple[int, int], Pair] = {}
    for pair in pairs:
        slots = (pair.left.payload, pair.right.payload)
        first = net.get(slots)
        net[slots] = pair if first is None else pair._replace(re_old=first.re_old)
    return [pair for pair in net.values() if pair.re_old != pair.re_new]
