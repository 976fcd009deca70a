"""to_edges: each row lives until the next strictly later LE of its key."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.operators.clip_by import ClippingOperator
from streamdsl.plan.node import Matching, ToEdges
from streamdsl.temporal.time import INFINITY


class ToEdgesOperator(ClippingOperator):
    """A self-join: each row is unending, and is clipped by the next one. A row's RE is the end that has been emitted."""

    kind = "to_edges (sorted runs)"
    n_sides: ClassVar[int] = 1

    def __init__(self, label: str, node: ToEdges) -> None:
        super().__init__(label, Matching(node.key, node.key))
        self._key = node.key

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        if not len(batch):
            return EMPTY
        side, rows = self.left, self.left.rows
        side.take(_unending(batch), partial(self.numbers_of, self._key))
        changed, concerned = side.changed, self.concerned()
        there = changed[rows.re.take(changed) > rows.le.take(changed)]
        best, _, _ = self.note(np.concatenate([there, concerned]) if len(concerned) else there)
        rows.re.put(there, best[: len(there)])
        side.end(concerned, best[len(there) :])
        out = self.clipped(side.changed, rows.was.take(side.changed), rows.re.take(side.changed))
        self.end_step()
        return out

    def state(self) -> dict[str, int]:
        return {"windows": 0, "events": self.left.n_events}


def _unending(batch: Batch) -> Batch:
    """Return the rows as if they were unending: only insertion and retraction matter."""
    le = batch.le
    return batch.with_lifetimes(le, np.where(batch.re_old > le, INFINITY, le), np.where(batch.re_new > le, INFINITY, le))
