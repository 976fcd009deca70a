"""Temporal join: every matching pair for the time that both live."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.ids import PairIds
from streamdsl.engine.operator import Operator, inputs_of
from streamdsl.engine.operators.cross import CrossJoinGuard
from streamdsl.engine.sorted import KeyNumbers, Layout, Met, SortedSide
from streamdsl.engine.sorted.columns import materialised
from streamdsl.errors import UserCodeError
from streamdsl.expr import Inputs, RowError, evaluate, project, truth
from streamdsl.expr.nodes import Expr, Life, Make, Whole
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Column, Table
from streamdsl.plan.node import Join

PAIR = Make(Schema.tuple(2), (Whole(0), Whole(1)))


class JoinOperator(Operator):
    """A change of a row changes its pairs. Each pair is found once, though both rows may change: from the left row if it does."""

    kind = "join (sorted runs)"

    def __init__(self, label: str, node: Join) -> None:
        super().__init__(label)
        self.keys_of = (node.matching.left_key, node.matching.right_key)
        self.where = node.matching.where
        self.projection = node.projection or PAIR
        self.reads_starts = any(isinstance(part, Life) for part in self.projection.walk())
        self.guard = CrossJoinGuard(label, node)
        self.numbers = KeyNumbers()
        layout = Layout()
        self.sides = (SortedSide(layout), SortedSide(layout))

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        for side, batch, key in zip(self.sides, batches, self.keys_of, strict=True):
            if len(batch):
                side.take(batch, partial(self._numbers, key))
        out = self._batch(list(self._pairs()))
        for side in self.sides:
            side.settle()
        return out

    def _numbers(self, key: Expr | None, batch: Batch) -> Column:
        """Return the numbers of the rows' keys."""
        if key is None:
            return np.zeros(len(batch), dtype=np.int64) if batch.keys is None else batch.keys
        keys = self.evaluate(key, inputs_of(batch), batch.ids)
        if self.numbers.are_own and not self.numbers.can_be_own(keys, batch.keys):
            self.numbers.look_up()
            for side in self.sides:
                side.renumber(lambda known: self.numbers.of(known, None))
        return self.numbers.of(keys, batch.keys)

    def _pairs(self) -> Iterator[Met]:
        """Yield the pairs that change, some at a time."""
        left, right = self.sides
        self.guard.met(len(left.changed) + len(right.changed), 0)
        for pairs in left.partners(right):
            yield self._matching(pairs)
        for pairs in right.partners(left):
            yield self._matching(pairs.take(left.untouched(pairs.others)).swapped())

    def _matching(self, pairs: Met) -> Met:
        """Return which of these pairs match."""
        self.guard.met(0, len(pairs.le))
        return pairs if self.where is None else pairs.take(np.flatnonzero(self._matches(self.where, pairs)))

    def _matches(self, where: Expr, pairs: Met) -> Column:
        try:
            return truth(evaluate(where, self._inputs(pairs, starts=False)))
        except RowError as error:
            raise self._pair_error(error, pairs) from error.cause

    def _inputs(self, pairs: Met, starts: bool) -> Inputs:
        """Return pairs of rows as what expressions are evaluated over."""
        sides = list(zip(self.sides, (pairs.mine, pairs.others), strict=True))
        tables = tuple(side.rows.table(slots) for side, slots in sides)
        return Inputs(tables, len(pairs.le), starts=tuple(side.rows.le.take(slots) for side, slots in sides) if starts else ())

    def _batch(self, found: list[Met]) -> Batch:
        """Return the changes of pairs, retractions before insertions."""
        if not any(len(pairs.le) for pairs in found):
            return EMPTY
        pairs = found[0] if len(found) == 1 else Met(*map(np.concatenate, zip(*found, strict=True)))
        comes = pairs.re_old == pairs.le
        if not comes.all():
            pairs = pairs.take(np.concatenate([np.flatnonzero(~comes), np.flatnonzero(comes)]))
        left, right = (side.rows for side in self.sides)
        groups = None if left.groups is None else left.groups.take(pairs.mine)
        ids = PairIds(left.ids(pairs.mine), right.ids(pairs.others))
        return Batch(ids, pairs.le, pairs.re_old, pairs.re_new, self._projected(pairs), groups)

    def _projected(self, pairs: Met) -> Table:
        try:
            return materialised(project(self.projection, self._inputs(pairs, self.reads_starts)))
        except RowError as error:
            raise self._pair_error(error, pairs) from error.cause

    def _pair_error(self, error: RowError, pairs: Met) -> UserCodeError:
        left, right = (
            side.rows.ids(slots[[error.row]])[0] for side, slots in zip(self.sides, (pairs.mine, pairs.others), strict=True)
        )
        return UserCodeError(error.cause, operator=self.label, event=(left, right))

    def forget(self, cti: int) -> None:
        for side in self.sides:
            side.forget(cti)
        self.numbers.forget(side.rows.numbers.values for side in self.sides)

    def held_groups(self) -> Iterable[int | None]:
        return chain.from_iterable(side.groups() for side in self.sides)

    def state(self) -> dict[str, int]:
        left, right = self.sides
        held = left.nbytes + right.nbytes + self.numbers.nbytes
        return {"windows": 0, "events": left.n_events + right.n_events, "state_bytes": held}
