"""Temporal join: every matching pair for the time that both live."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.frontiers import Frontier, of_same_ends
from streamdsl.engine.ids import PairIds
from streamdsl.engine.operators.cross import CrossJoinGuard
from streamdsl.engine.operators.matching import MatchingOperator
from streamdsl.engine.sorted import Met
from streamdsl.engine.sorted.columns import materialised
from streamdsl.expr import RowError, project
from streamdsl.expr.nodes import Life, Make, Whole
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Table, flatnonzero
from streamdsl.plan.node import Join

PAIR = Make(Schema.tuple(2), (Whole(0), Whole(1)))


class JoinOperator(MatchingOperator):
    """A change of a row changes its pairs. Each pair is found once, though both rows may change: from the left row if it does."""

    kind = "join (sorted runs)"

    def __init__(self, label: str, node: Join) -> None:
        super().__init__(label, node.matching)
        self.projection = node.projection or PAIR
        self.reads_starts = any(isinstance(part, Life) for part in self.projection.walk())
        self.guard = CrossJoinGuard(label, node)

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return min([of_same_ends(each, self.cti) for each in inputs])

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        self.take(batches)
        out = self._batch(list(self._pairs()))
        self.settle()
        return out

    def _pairs(self) -> Iterator[Met]:
        """Yield the pairs that change, some at a time."""
        left, right = self.sides
        self.guard.met(len(left.changed) + len(right.changed), 0)
        for pairs in left.partners(right):
            yield self._that_match(pairs)
        for pairs in right.partners(left):
            yield self._that_match(pairs.take(left.untouched(pairs.others)).swapped())

    def _that_match(self, pairs: Met) -> Met:
        self.guard.met(0, len(pairs.le))
        return pairs.take(self.matching(pairs.mine, pairs.others))

    def _batch(self, found: list[Met]) -> Batch:
        """Return the changes of pairs, retractions before insertions."""
        if not any(len(pairs.le) for pairs in found):
            return EMPTY
        pairs = found[0] if len(found) == 1 else Met(*map(np.concatenate, zip(*found, strict=True)))
        comes = pairs.re_old == pairs.le
        if not comes.all():
            pairs = pairs.take(np.concatenate([flatnonzero(~comes), flatnonzero(comes)]))
        left, right = (side.rows for side in self.sides)
        groups = None if left.groups is None else left.groups.take(pairs.mine)
        ids = PairIds(left.ids(pairs.mine), right.ids(pairs.others))
        return Batch(ids, pairs.le, pairs.re_old, pairs.re_new, self._projected(pairs), groups)

    def _projected(self, pairs: Met) -> Table:
        try:
            return materialised(project(self.projection, self.inputs(pairs.mine, pairs.others, self.reads_starts)))
        except RowError as error:
            raise self.pair_error(error, pairs.mine, pairs.others) from error.cause
