"""clip_by: each left row is ended at the first matching right LE strictly after its own LE."""

from __future__ import annotations

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.operators.nearest import NearestOperator
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.plan.asof import Nearness
from streamdsl.plan.node import ClipBy, Matching
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks


class ClippingOperator(NearestOperator):
    """Left rows that are clipped at the LE of their nearest right row, which each notes: INFINITY if there is none."""

    def __init__(self, label: str, matching: Matching) -> None:
        super().__init__(label, matching, Nearness("forward", INFINITY - MIN_TIME), strictly=True)

    def clipped(self, lefts: Rows, re_old: Ticks, re_new: Ticks) -> Batch:
        """Return the left rows whose ends change, retractions before insertions."""
        rows = self.left.rows
        le, moved = rows.le.take(lefts), flatnonzero(re_old != re_new)
        if not len(moved):
            return EMPTY
        comes = re_old[moved] == le[moved]
        order = np.concatenate([moved[~comes], moved[comes]]) if len(moved) > 1 else moved
        lefts = lefts[order]
        return rows.batch(rows.ids(lefts), lefts, le[order], re_old[order], re_new[order])


class ClipByOperator(ClippingOperator):
    """A change of a right row affects the left rows that are clipped at it or later. Only its LE counts."""

    kind = "clip_by (sorted runs)"

    def __init__(self, label: str, node: ClipBy) -> None:
        super().__init__(label, node.matching)

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        self.take(batches)
        rows, changed, concerned = self.left.rows, self.left.changed, self.concerned()
        lefts = np.concatenate([changed, concerned[~np.isin(concerned, changed)]]) if len(concerned) else changed
        le, clips = rows.le.take(lefts), rows.notes
        before = np.maximum(le, np.minimum(rows.was.take(lefts), clips.take(lefts)))
        came = changed[flatnonzero(rows.was.take(changed) == rows.le.take(changed))]
        self.note(np.concatenate([came, concerned]))
        out = self.clipped(lefts, before, np.maximum(le, np.minimum(rows.re.take(lefts), clips.take(lefts))))
        self.end_step()
        return out
