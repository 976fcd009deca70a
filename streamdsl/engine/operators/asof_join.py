"""As-of join: each left row with the matching right rows that start nearest to its own start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.frontiers import Frontier, of_same_ends
from streamdsl.engine.ids import PairIds
from streamdsl.engine.operators.asof_state import AsofState
from streamdsl.engine.operators.join import PAIR
from streamdsl.engine.operators.nearest import NO_ROWS, distinct_rows
from streamdsl.engine.operators.nearness import NOTHING
from streamdsl.engine.sorted.columns import materialised
from streamdsl.engine.sorting import sorted_integers
from streamdsl.expr import Inputs, RowError, project, without_row
from streamdsl.expr.table import Rows, Table, flatnonzero
from streamdsl.plan.node import AsofJoin
from streamdsl.temporal.time import Ticks


class Matches(NamedTuple):
    """Slots of left rows, and of the right rows that they are with, -1 where they are alone."""

    lefts: Rows
    rights: Rows

    def take(self, rows: Rows) -> Matches:
        """Return these."""
        return Matches(self.lefts[rows], self.rights[rows])

    def and_also(self, others: Matches) -> Matches:
        """Return both."""
        return Matches(*map(np.concatenate, zip(self, others, strict=True)))

    def in_both(self, others: Matches) -> tuple[Rows, Rows]:
        """Return which of these are among the others, and which of those they are.

        >>> Matches(np.array([4, 4]), np.array([-1, 7])).in_both(Matches(np.array([9, 4]), np.array([7, 7])))
        (array([1]), array([1]))
        """
        lefts, rights = self.and_also(others)
        order, codes = sorted_integers(lefts * (int(rights.max(initial=0)) + 2) + rights)
        same = flatnonzero(codes[1:] == codes[:-1])
        return order[same], order[same + 1] - len(self.lefts)


class AsofJoinOperator(AsofState):
    """A right row that comes or goes changes the left rows to which none is nearer; a left row's end changes its own rows."""

    kind = "asof_join (sorted runs)"

    def __init__(self, label: str, node: AsofJoin) -> None:
        super().__init__(label, node)
        self.pair = node.projection or PAIR
        self.alone = without_row(self.pair, 1)

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return of_same_ends(inputs[0], self.cti)

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        self.take(batches)
        changed, rows = self.left.changed, self.left.rows
        is_new = rows.was.take(changed) == rows.le.take(changed)
        came, known, concerned = changed[flatnonzero(is_new)], changed[flatnonzero(~is_new)], self.concerned()
        before = self._noted(distinct_rows(np.concatenate([known, concerned])))
        now = self._found(np.concatenate([concerned, came]))
        out = self._batch(before, now, concerned) if len(before.lefts) or len(now.lefts) else EMPTY
        self.await_settling(came)
        self.settle()
        return out

    def _noted(self, lefts: Rows) -> Matches:
        """Return the matches of left rows before this step."""
        if not len(lefts):
            return Matches(NO_ROWS, NO_ROWS)
        at, rights = self.with_noted(lefts)
        kept = self.matching(lefts[at], rights)
        return self._with_alone(lefts, self.left.rows.notes.take(lefts), Matches(lefts[at[kept]], rights[kept]))

    def _with_alone(self, lefts: Rows, notes: Ticks, matches: Matches) -> Matches:
        alone = lefts[flatnonzero(notes == NOTHING)] if self.node.outer else NO_ROWS
        return matches.and_also(Matches(alone, np.full(len(alone), -1))) if len(alone) else matches

    def _found(self, lefts: Rows) -> Matches:
        """Find the matches of left rows anew, and note when they start."""
        if not len(lefts):
            return Matches(NO_ROWS, NO_ROWS)
        best, at, rights = self.note(lefts)
        return self._with_alone(lefts, best, Matches(lefts[at], rights))

    def _batch(self, before: Matches, now: Matches, concerned: Rows) -> Batch:
        """Return the changes of rows, retractions before insertions; what is before and now only gets another end."""
        rows = self.left.rows
        if not len(before.lefts):
            return Batch.concat(self._parts(now, rows.le.take(now.lefts), rows.re.take(now.lefts)))
        was, ends = rows.was.take(before.lefts), rows.re.take(before.lefts)
        if len(concerned):
            stays, again = before.in_both(now)
            goes = _is_in(before.lefts, concerned)
            goes[stays] = False
            ends = np.where(goes, rows.le.take(before.lefts), ends)
            now = now.take(_others(again, len(now.lefts)))
        moved = flatnonzero(was != ends)
        gone = self._parts(before.take(moved), was[moved], ends[moved])
        return Batch.concat([*gone, *self._parts(now, rows.le.take(now.lefts), rows.re.take(now.lefts))])

    def _parts(self, matches: Matches, re_old: Ticks, re_new: Ticks) -> Iterator[Batch]:
        """Yield the changes of left rows with right rows, and of those that are alone."""
        alone = matches.rights < 0
        n_alone = int(np.count_nonzero(alone))
        if n_alone in (0, len(alone)):
            if len(alone):
                yield self._part(matches, re_old, re_new, n_alone > 0)
            return
        for part, is_alone in ((flatnonzero(~alone), False), (flatnonzero(alone), True)):
            yield self._part(matches.take(part), re_old[part], re_new[part], is_alone)

    def _part(self, matches: Matches, re_old: Ticks, re_new: Ticks, is_alone: bool) -> Batch:
        left, right = (side.rows for side in self.sides)
        lefts, rights = matches
        others = np.full(len(lefts), None, dtype=object) if is_alone else right.ids(rights)
        groups = None if left.groups is None else left.groups.take(lefts)
        table = self._projected(lefts, None if is_alone else rights)
        return Batch(PairIds(left.ids(lefts), others), left.le.take(lefts), re_old, re_new, table, groups)

    def _projected(self, lefts: Rows, rights: Rows | None) -> Table:
        try:
            if rights is not None:
                return materialised(project(self.pair, self.inputs(lefts, rights)))
            return materialised(project(self.alone, Inputs((self.left.rows.table(lefts),), len(lefts))))
        except RowError as error:
            raise self.pair_error(error, lefts, rights) from error.cause


def _is_in(rows: Rows, some: Rows) -> NDArray[np.bool_]:
    """Say which rows are among some, of which there is one at least, in order."""
    places = np.minimum(np.searchsorted(some, rows), len(some) - 1)
    found: NDArray[np.bool_] = some[places] == rows
    return found


def _others(rows: Rows, size: int) -> Rows:
    """Return all rows but these."""
    others = np.ones(size, dtype=np.bool_)
    others[rows] = False
    return flatnonzero(others)
