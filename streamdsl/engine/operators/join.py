"""Temporal join: every matching pair, while both rows live."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, Final, TypeAlias

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.frontiers import Frontier, of_same_ends
from streamdsl.engine.growing import materialised
from streamdsl.engine.ids import PairIds
from streamdsl.engine.operators.cross import CrossJoinGuard
from streamdsl.engine.operators.matching import MOST, MatchingOperator
from streamdsl.engine.row_batch import PAIRS, Change, RowBatch
from streamdsl.engine.sorted import OverlapPairs
from streamdsl.expr.evaluate import RowError, project
from streamdsl.expr.nodes import Life
from streamdsl.expr.row_program import FilterStep, ProjectStep, RowProgram, Values
from streamdsl.expr.sides import PAIR
from streamdsl.expr.table import Table, flatnonzero
from streamdsl.plan.node import Join

_NO_GROUPS: Final = repeat(None)

Pair: TypeAlias = tuple[tuple[Any, Any], Values, int, int, int, int | None]
"""The id of a pair, the values of both rows, its LE, its RE before and after, and its group."""
ChangedRow: TypeAlias = tuple[Any, Change, Values, int, int | None]
"""The id of a row, its change, its values, the number of its key, and its group."""


class JoinOperator(MatchingOperator):
    """A symmetric join: a changed row probes the other side. If both rows of a pair change, it is found from the left one."""

    kind = "join (sorted runs)"

    def __init__(self, label: str, node: Join) -> None:
        super().__init__(label, node.matching)
        self.projection = node.projection or PAIR
        self.reads_starts = any(isinstance(part, Life) for part in self.projection.walk())
        self.guard = CrossJoinGuard(label, node)
        chosen = () if self.where is None else (FilterStep(self.where),)
        self._program = RowProgram([*chosen, ProjectStep(self.projection)])

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return min([of_same_ends(each, self.cti) for each in inputs])

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        self.take(batches)
        out = self._batch(list(self._pairs()))
        self.end_step()
        return out

    def change_rows_of(self, place: int, batch: RowBatch) -> Batch | None:
        mine = self.sides[place]
        if self._program.is_refused or not mine.rows.takes(batch):
            return None
        numbers = self.key_numbers_of_rows(place, batch)
        if numbers is None:
            return None
        rows = list(zip(batch.row_ids(), batch.changes, batch.values, numbers, batch.groups or _NO_GROUPS, strict=False))
        found = self._probe_rows(place, rows)
        if found is None:
            return None
        out = self._change_pairs(found) if found else EMPTY
        if out is None:
            return None
        self.guard.met(len(rows), len(found))
        for id, (_, _, le, re_old, re_new), values, number, group in rows:
            if re_old == le:
                mine.add_one((id, le, re_new, values, number, group))
            else:
                mine.end_one(mine.slot_of(id), re_new)
        return out

    def _probe_rows(self, place: int, rows: Iterable[ChangedRow]) -> list[Pair] | None:
        """Probe with single rows, and return the pairs that change, retractions first; None if they may be many."""
        mine, other = self.sides[place], self.sides[1 - place]
        gone: list[Pair] = []
        come: list[Pair] = []
        for id, (_, _, le, re_old, re_new), values, number, group in rows:
            met = other.probe_one(number, le, re_old if re_old > re_new else re_new)
            if met is None:
                return None
            if met and re_old != le:
                values = mine.rows.one(mine.slot_of(id))[3]
            for _, (their_id, start, end, theirs, _, _) in met:
                first = start if start > le else le
                was, now = re_old if re_old < end else end, re_new if re_new < end else end
                was, now = was if was > first else first, now if now > first else first
                if was != now:
                    pair = ((id, their_id), values + theirs) if place == 0 else ((their_id, id), theirs + values)
                    (come if was == first else gone).append((*pair, first, was, now, group))
        return gone + come

    def _change_pairs(self, found: list[Pair]) -> Batch | None:
        """Return what `_batch` returns, for few pairs, some of which may not match; None if the columnar path must run."""
        if len(found) > MOST:
            return None
        ids, pairs, le, re_old, re_new, groups = zip(*found, strict=True)
        passed = self.row_values(self._program, pairs, groups)
        if passed is None:
            return None
        values, _, kept = passed
        changes = list(zip(ids, repeat(0), le, re_old, re_new, strict=False))
        if kept is not None:
            if not kept:
                return EMPTY
            changes, groups = [changes[row] for row in kept], tuple([groups[row] for row in kept])
        return RowBatch(changes, values, self._program.schema, None if groups[0] is None else groups, PAIRS)

    def _pairs(self) -> Iterator[OverlapPairs]:
        """Yield the pairs that change, in parts."""
        left, right = self.sides
        self.guard.met(len(left.changed) + len(right.changed), 0)
        for pairs in left.partners(right):
            yield self._that_match(pairs)
        for pairs in right.partners(left):
            yield self._that_match(pairs.take(left.untouched(pairs.others)).swapped())

    def _that_match(self, pairs: OverlapPairs) -> OverlapPairs:
        self.guard.met(0, len(pairs.le))
        return pairs.take(self.matching(pairs.mine, pairs.others))

    def _batch(self, found: list[OverlapPairs]) -> Batch:
        """Return the changes of pairs, retractions before insertions."""
        if not any(len(pairs.le) for pairs in found):
            return EMPTY
        pairs = found[0] if len(found) == 1 else OverlapPairs(*map(np.concatenate, zip(*found, strict=True)))
        comes = pairs.re_old == pairs.le
        if not comes.all():
            pairs = pairs.take(np.concatenate([flatnonzero(~comes), flatnonzero(comes)]))
        left, right = (side.rows for side in self.sides)
        groups = None if left.groups is None else left.groups.take(pairs.mine)
        ids = PairIds(left.ids(pairs.mine), right.ids(pairs.others))
        return Batch(ids, pairs.le, pairs.re_old, pairs.re_new, self._projected(pairs), groups)

    def _projected(self, pairs: OverlapPairs) -> Table:
        try:
            return materialised(project(self.projection, self.inputs(pairs.mine, pairs.others, self.reads_starts)))
        except RowError as error:
            raise self.pair_error(error, pairs.mine, pairs.others) from error.cause
