"""clip_by: each left row is ended at the first matching right LE strictly after its own LE."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.index import EventRow
from streamdsl.engine.operator import MatchKey
from streamdsl.engine.operators.sides import TwoSidedOperator
from streamdsl.expr.table import object_column
from streamdsl.plan.node import ClipBy
from streamdsl.temporal.time import INFINITY


class ClipByOperator(TwoSidedOperator):
    """A left row's `arguments` is its clip, the first matching right LE; right rows count as points at their LE."""

    kind = "clip_by (indexed)"

    def __init__(self, label: str, node: ClipBy) -> None:
        super().__init__(label, node.matching)

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        left, right = batches
        before: dict[tuple[Hashable, int], tuple[EventRow, MatchKey, int]] = {}
        stale: dict[tuple[Hashable, int], tuple[EventRow, MatchKey]] = {}
        for change in self.left.changes(left):
            row, key = change.row, change.key
            if row.arguments is None:
                row.arguments = INFINITY
            before[row.id, row.payload] = (row, key, max(row.le, min(change.re_old, row.arguments)))
            if change.re_new > max(row.le, change.re_old) and change.re_old <= row.arguments:
                stale[row.id, row.payload] = (row, key)
        for change in self.right.changes(_as_points(right)):
            at = change.row.le
            for row in self.left.overlapping(change.key, at, at + 1):
                if row.le < at <= row.arguments:
                    before.setdefault((row.id, row.payload), (row, change.key, min(row.re, row.arguments)))
                    stale[row.id, row.payload] = (row, change.key)
        self._clip([entry for slot, entry in stale.items() if before[slot][0].re > before[slot][0].le])
        out = self._batch(list(before.values()), self.is_grouped)
        self.left.release()
        self.right.release()
        return out

    def _clip(self, stale: list[tuple[EventRow, MatchKey]]) -> None:
        """Look for the clip of each of these rows anew."""
        found = [
            (row, right)
            for row, key in stale
            for right in self.right.overlapping(key, row.le + 1, row.re)
            if row.le < right.le < row.re
        ]
        matching = self.matches([row for row, _ in found], [right for _, right in found]).tolist()
        for row, _ in stale:
            row.arguments = INFINITY
        for (row, right), match in zip(found, matching, strict=True):
            if match:
                row.arguments = min(row.arguments, right.le)

    def _batch(self, changed: list[tuple[EventRow, MatchKey, int]], keyed: bool) -> Batch:
        ends = [(row, key, old, max(row.le, min(row.re, row.arguments))) for row, key, old in changed]
        ends = sorted((end for end in ends if end[2] != end[3]), key=lambda end: end[2] == end[0].le)
        if not ends:
            return EMPTY
        return Batch(
            object_column([row.id for row, *_ in ends]),
            np.array([row.le for row, *_ in ends], dtype=np.int64),
            np.array([old for *_, old, _ in ends], dtype=np.int64),
            np.array([new for *_, new in ends], dtype=np.int64),
            self.left.store.take([row.payload for row, *_ in ends]),
            np.array([key[0] for _, key, _, _ in ends], dtype=np.int64) if keyed else None,
        )


def _as_points(batch: Batch) -> Batch:
    """Return the rows as points: only coming and going matters."""
    le = batch.le
    old = np.where(batch.re_old > le, le + 1, le)
    new = np.where(batch.re_new > le, le + 1, le)
    return batch.with_lifetimes(le, old, new)
