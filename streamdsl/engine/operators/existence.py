"""Anti-join and semi-join: each left row while no, or some, matching right row lives, as maximal pieces."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.ids import PairIds
from streamdsl.engine.operators.matching import MatchingOperator
from streamdsl.engine.sorted import Probe, SortedSide, SortKeyEncoding
from streamdsl.engine.sorted.periods import Patches, Periods
from streamdsl.engine.sorted.pieces import piece_changes
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Table, flatnonzero
from streamdsl.plan.node import AntiJoin, SemiJoin

_NEW: Final = -1
"""The serial number of a left row before it gets one."""
_NO_FIELDS: Final = Schema.tuple(0)


class ExistenceOperator(MatchingOperator):
    """Each left row has a serial number, by which its emitted pieces are found.

    A change recomputes only the stretch that it touches.
    """

    def __init__(self, label: str, node: AntiJoin | SemiJoin) -> None:
        super().__init__(label, node.matching)
        self.left.rows.keep_notes(_NEW)
        self.out = SortedSide(SortKeyEncoding())
        self._serial = 0

    @staticmethod
    @abstractmethod
    def pieces(stretches: Patches, covered: Periods) -> Periods:
        """Return the pieces of stretches of left rows' lifetimes, given the periods of them that right rows cover."""

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        self.take(batches)
        slots = self.left.changed
        new = slots[self.left.rows.notes.take(slots) == _NEW]
        if len(new):
            self.left.rows.notes.put(new, np.arange(self._serial, self._serial + len(new)))
            self._serial += len(new)
        patches = self._patches()
        out = self._batch(patches) if len(patches.owners) else EMPTY
        self.end_step()
        self.out.end_step()
        return out

    def _patches(self) -> Patches:
        """Return the stretches of left rows in which something has changed."""
        rows, slots = self.left.rows, self.left.changed
        was, re = rows.was.take(slots), rows.re.take(slots)
        changed = Patches(slots, np.minimum(was, re), np.maximum(was, re))
        if not len(self.right.changed):
            return changed.by_owner()
        rights, slots = self.right.rows, self.right.changed
        was, re = rights.was.take(slots), rights.re.take(slots)
        probe = Probe(rights.numbers.take(slots), np.minimum(was, re), np.maximum(was, re))
        at, met = self.left.living(probe)
        beside = Patches(met, np.maximum(probe.lo[at], rows.le.take(met)), np.minimum(probe.hi[at], rows.re.take(met)))
        return changed.and_also(beside).by_owner()

    def _covered(self, stretches: Patches) -> Periods:
        """Return the periods of each stretch in which matching right rows live."""
        probe = Probe(self.left.rows.numbers.take(stretches.owners), stretches.lo, stretches.hi)
        at, rights = self.right.living(probe)
        kept = self.matching(stretches.owners[at], rights)
        at, rights = at[kept], rights[kept]
        rows = self.right.rows
        le, re = np.maximum(rows.le.take(rights), probe.lo[at]), np.minimum(rows.re.take(rights), probe.hi[at])
        return Periods(at, le, re).merged()

    def _batch(self, patches: Patches) -> Batch:
        """Recompute the pieces of some stretches, and return their changes, retractions before insertions."""
        rows, pieces = self.left.rows, self.out.rows
        stretches = Patches(patches.owners, patches.lo, np.minimum(patches.hi, rows.re.take(patches.owners)))
        there = flatnonzero(stretches.lo < stretches.hi)
        now = self.pieces(stretches.take(there), self._covered(stretches.take(there)))
        serials = rows.notes.take(patches.owners)
        at, moved, ends, come = piece_changes(self.out, serials, patches, Periods(there[now.at], now.le, now.re))
        le, was = pieces.le.take(moved), pieces.re.take(moved)
        self.out.end(moved, ends)
        if len(come.at):
            blank = Table(_NO_FIELDS, {}, len(come.at))
            self.out.put(Batch(come.le, come.le, come.le, come.re, blank), serials[come.at])
        if not len(moved) and not len(come.at):
            return EMPTY
        slots = patches.owners[np.concatenate([at, come.at])]
        le, was, re = map(np.concatenate, ([le, come.le], [was, come.le], [ends, come.re]))
        return rows.batch(PairIds(rows.ids(slots), le), slots, le, was, re)

    def forget(self, cti: int) -> None:
        self.out.forget(cti)
        super().forget(cti)


class AntiJoinOperator(ExistenceOperator):
    """Emits what is left of a row without its matches."""

    kind = "anti_join (sorted runs)"

    @staticmethod
    def pieces(stretches: Patches, covered: Periods) -> Periods:
        return covered.gaps(stretches)


class SemiJoinOperator(ExistenceOperator):
    """Emits what of a row its matches cover."""

    kind = "semi_join (sorted runs)"

    @staticmethod
    def pieces(stretches: Patches, covered: Periods) -> Periods:
        return covered
