"""The base of operators that give each left row the matching right rows which start nearest to its own start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.operators.matching import MatchingOperator
from streamdsl.engine.operators.nearness import NOTHING, Reach
from streamdsl.engine.pairs import distinct_values
from streamdsl.engine.sorted import GallopingSearch, PointRows, Probe, StoredRows
from streamdsl.engine.sorted.side import both_of
from streamdsl.engine.sorting import order_by
from streamdsl.expr.table import Column, Rows, flatnonzero
from streamdsl.plan.asof import Nearness
from streamdsl.plan.node import Matching
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks

NO_ROWS = np.empty(0, dtype=np.intp)


class NearestOperator(MatchingOperator):
    """Both sides are found by LE. A left row notes the LE of its matches, `NOTHING` if there are none."""

    rows_class: ClassVar[type[StoredRows]] = PointRows

    def __init__(self, label: str, matching: Matching, near: Nearness, strictly: bool = False) -> None:
        super().__init__(label, matching)
        self.reach = Reach(near, strictly)
        self.left.rows.keep_notes(NOTHING)

    def take(self, batches: Sequence[Batch]) -> None:
        left, right = batches
        super().take([left, _as_points(right) if len(right) else right])

    def concerned(self) -> Rows:
        """Return the left rows for which a changed right row is as near as their matches."""
        slots, rights = self.right.changed, self.right.rows
        if not len(slots) or not len(self.left.rows):
            return NO_ROWS
        numbers, le, previous, following = _between(rights.numbers.take(slots), rights.le.take(slots))
        found = []
        if self.reach.looks_back:
            found += self._as_near(self.reach.touched_after(numbers, le, following), le, is_forward=True)
        if self.reach.looks_forward:
            found += self._as_near(self.reach.touched_before(numbers, le, previous), le, is_forward=False)
        return distinct_values(found[0] if len(found) == 1 else np.concatenate([NO_ROWS, *found]))

    def _as_near(self, probe: Probe, starts: Ticks, is_forward: bool) -> list[Rows]:
        """Search away from the starts. What is nearer to one left row is nearer to all beyond, unless it need not match these."""
        rows = self.left.rows

        def look(at: Rows, slots: Rows) -> tuple[Rows, Rows]:
            le = rows.le.take(slots)
            there = rows.was.take(slots) > le
            there &= rows.re.take(slots) > le
            there &= probe.lo[at] <= le
            there &= le < probe.hi[at]
            there &= self.left.has_key(probe, at, rows, slots)
            is_near = self.reach.is_as_near(le, starts[at], rows.notes.take(slots))
            return flatnonzero(there & is_near), NO_ROWS if self.where is not None else flatnonzero(there & ~is_near)

        return [slots for _, slots in GallopingSearch(self.left.index, probe, is_forward, look, True).found()]

    def note(self, lefts: Rows) -> tuple[Ticks, Rows, Rows]:
        """Search for the matches of left rows again; note and return the LE of these, and return the pairs."""
        rows = self.left.rows
        numbers, le = rows.numbers.take(lefts), rows.le.take(lefts)
        best, at, rights = np.full(len(lefts), NOTHING), NO_ROWS, NO_ROWS
        if self.reach.looks_back:
            best, at, rights = self._nearest(lefts, self.reach.before(numbers, le), is_forward=False)
        if self.reach.looks_forward:
            nearer, later, others = self._nearest(lefts, self.reach.after(numbers, le, best), is_forward=True)
            if self.reach.looks_back:
                kept = flatnonzero(nearer[at] == NOTHING)
                at, rights = np.concatenate([at[kept], later]), np.concatenate([rights[kept], others])
                best = np.where(nearer == NOTHING, best, nearer)
            else:
                best, at, rights = nearer, later, others
        rows.notes.put(lefts, best)
        return best, at, rights

    def _nearest(self, lefts: Rows, probe: Probe, is_forward: bool) -> tuple[Ticks, Rows, Rows]:
        """Return the LE of each row's matches in a period, and the pairs."""
        rights = self.right.rows

        def look(at: Rows, slots: Rows) -> tuple[Rows, Rows]:
            le = rights.le.take(slots)
            fits = (rights.re.take(slots) > le) & (probe.lo[at] <= le) & (le < probe.hi[at])
            kept = flatnonzero(fits & self.right.has_key(probe, at, rights, slots))
            if self.where is not None:
                kept = kept[self.matching(lefts[at[kept]], slots[kept])]
            return kept, kept

        at, slots = both_of(list(GallopingSearch(self.right.index, probe, is_forward, look, self.where is None).found()))
        le, best = rights.le.take(slots), np.full(len(lefts), NOTHING)
        if not len(slots):
            return best, at, slots
        if is_forward:
            np.minimum.at(best, at, le)
        else:
            best[at] = MIN_TIME
            np.maximum.at(best, at, le)
        kept = flatnonzero(le == best[at])
        return best, at[kept], slots[kept]


def _as_points(batch: Batch) -> Batch:
    """Return the rows as points: only insertion and retraction matter."""
    le = batch.le
    return batch.with_lifetimes(le, le + (batch.re_old > le), le + (batch.re_new > le))


def _between(numbers: Column, le: Ticks) -> tuple[Column, Ticks, Ticks, Ticks]:
    """Return the distinct starts of each key, with the first time after the one before, and the one that follows."""
    if len(le) == 1:
        return numbers, le, np.array([MIN_TIME]), np.array([INFINITY])
    order = order_by([numbers, le])
    if order is not None:
        numbers, le = numbers[order], le[order]
        kept = np.append(0, flatnonzero((numbers[1:] != numbers[:-1]) | (le[1:] != le[:-1])) + 1)
        numbers, le = numbers[kept], le[kept]
    previous, following = np.full(len(le), MIN_TIME), np.full(len(le), INFINITY)
    same = flatnonzero(numbers[1:] == numbers[:-1])
    previous[same + 1] = le[same] + 1
    following[same] = le[same + 1]
    return numbers, le, previous, following
