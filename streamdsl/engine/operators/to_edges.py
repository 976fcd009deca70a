"""to_edges: each row lives until the next strictly later LE of its key."""

from __future__ import annotations

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.operators.clip_by import ClippingOperator, just_before
from streamdsl.plan.node import Matching, ToEdges
from streamdsl.temporal.time import INFINITY


class ToEdgesOperator(ClippingOperator):
    """The rows are on both sides: each lasts for ever, and is clipped by the others. A left row's RE is the end that is out."""

    kind = "to_edges (sorted runs)"

    def __init__(self, label: str, node: ToEdges) -> None:
        super().__init__(label, Matching(node.key, node.key))

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        self.take([_unending(batch), just_before(batch)])
        side, rows = self.left, self.left.rows
        changed, concerned = side.changed, self.concerned()
        there = changed[rows.re.take(changed) > rows.le.take(changed)]
        self.note(np.concatenate([there, concerned]))
        rows.re.put(there, self.clips(there))
        side.end(concerned, self.clips(concerned))
        out = self.clipped(side.changed, rows.was.take(side.changed), rows.re.take(side.changed))
        self.settle()
        return out

    def state(self) -> dict[str, int]:
        return {"windows": 0, "events": self.left.n_events}


def _unending(batch: Batch) -> Batch:
    """Return the rows as if they lasted for ever: only coming and going matters."""
    le = batch.le
    return batch.with_lifetimes(le, np.where(batch.re_old > le, INFINITY, le), np.where(batch.re_new > le, INFINITY, le))
