"""The state of an as-of join:

left rows until they have ended and their match is final, right rows while a left row may match them.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.operators.nearest import NearestOperator
from streamdsl.engine.operators.nearness import NOTHING
from streamdsl.engine.sorted import Probe
from streamdsl.engine.sorting import order_by
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.plan.node import AsofJoin
from streamdsl.temporal.time import INFINITY, MIN_TIME


class AsofState(NearestOperator):
    """The left rows whose match is not final yet, in order of LE."""

    def __init__(self, label: str, node: AsofJoin) -> None:
        super().__init__(label, node.matching, node.near)
        self.node = node
        self._waiting: list[tuple[int, int]] = []
        self._moves = 0
        self._cti = MIN_TIME

    def enqueue(self, lefts: Rows) -> None:
        """Add left rows: if matches may start later, the output CTI waits for them."""
        if self.reach.looks_forward:
            for entry in zip(self.left.rows.le.take(lefts).tolist(), lefts.tolist(), strict=True):
                heappush(self._waiting, entry)

    def enqueue_one(self, le: int, slot: int) -> None:
        """Add a single left row."""
        if self.reach.looks_forward:
            heappush(self._waiting, (le, slot))

    def with_noted(self, lefts: Rows) -> tuple[Rows, Rows]:
        """Return the left rows with a match, each with every right row that starts at its LE and was there before the step."""
        rows, rights = self.left.rows, self.right.rows
        notes = rows.notes.take(lefts)
        noting = flatnonzero(notes != NOTHING)
        notes = notes[noting]
        probe = Probe(rows.numbers.take(lefts[noting]), notes, notes + 1)
        found = [(noting[:0], noting[:0])]
        for at, slots in self.right.index.candidates(probe) if len(noting) else ():
            le = rights.le.take(slots)
            kept = flatnonzero((rights.was.take(slots) > le) & (le == notes[at]) & self.right.has_key(probe, at, rights, slots))
            found.append((noting[at[kept]], slots[kept]))
        at, slots = map(np.concatenate, zip(*found, strict=True))
        return at, slots

    def forget(self, cti: int) -> None:
        self._cti = max(cti, self._cti)
        if sum(side.earn_cleanup_credit() for side in self.sides) >= sum(side.cleanup_cost() for side in self.sides):
            for side, needed in zip(self.sides, self._needed(), strict=True):
                side.sweep(needed)
        self.forget_numbers()

    def _needed(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Say which rows of each side a later change may need."""
        rows = self.left.rows
        open_rows = self._unsettled()
        lefts = rows.re.values >= max(self._cti, MIN_TIME + 1)
        lefts[open_rows] = True
        bound = min([self._cti, *rows.le.take(open_rows).tolist()])
        rights = self._within_reach(bound)
        rights[self.with_noted(flatnonzero(lefts))[1]] = True
        return lefts, rights

    def _unsettled(self) -> Rows:
        rows = self.left.rows
        le = rows.le.values
        return flatnonzero((rows.re.values > le) & self.reach.may_improve(le, rows.notes.values, self._cti))

    def _within_reach(self, bound: int) -> NDArray[np.bool_]:
        """Say which right rows may match left rows from the bound on: they are within the tolerance, and no other is nearer."""
        rights = self.right.rows
        le = rights.le.values
        there = rights.re.values > le
        reached: NDArray[np.bool_] = there & (le >= bound)
        if self.reach.looks_back:
            before = flatnonzero(there & (le < bound) & (le >= self.reach.first(bound)))
            reached[before if self.where is not None else self._last_of_keys(before)] = True
        return reached

    def _last_of_keys(self, slots: Rows) -> Rows:
        """Return the last right rows of each key by LE."""
        numbers, le = self.right.rows.numbers.take(slots), self.right.rows.le.take(slots)
        order = order_by([numbers, le])
        if order is not None:
            slots, numbers, le = slots[order], numbers[order], le[order]
        stops = np.append(flatnonzero(numbers[1:] != numbers[:-1]) + 1, len(slots))
        last = np.repeat(le[stops - 1], np.diff(stops, prepend=0)) if len(slots) else le
        return slots[flatnonzero(le == last)]

    def output_cti(self, ctis: list[int]) -> int:
        return min([*ctis, self._first_pending()]) if self.reach.looks_forward else min(ctis)

    def _first_pending(self) -> int:
        """Return the LE of the first left row whose match is not final, and remove those before it from the queue."""
        rows = self.left.rows
        if self._moves != self.left.moves:
            self._moves = self.left.moves
            slots = self._unsettled()
            self._waiting = sorted(zip(rows.le.take(slots).tolist(), slots.tolist(), strict=True))
        count = 1
        while self._waiting:
            entries = [heappop(self._waiting) for _ in range(min(count, len(self._waiting)))]
            le, slots = np.array(entries, dtype=np.int64).T
            there = (rows.re.take(slots) > le) & self.reach.may_improve(le.copy(), rows.notes.take(slots), self._cti)
            if there.any():
                for at in flatnonzero(there).tolist():
                    heappush(self._waiting, entries[at])
                return self._waiting[0][0]
            count *= 2
        return INFINITY

    def state(self) -> dict[str, int]:
        events = sum(int(np.count_nonzero(needed)) for needed in self._needed())
        return {**super().state(), "events": events}
