"""Anti-join and semi-join: each left row for the time that no, or some, matching right row lives, as maximal pieces."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.ids import PairIds
from streamdsl.engine.index import PieceChange, Pieces
from streamdsl.engine.operators.matching import MatchingOperator
from streamdsl.engine.sorted import Asked
from streamdsl.engine.sorted.columns import materialised
from streamdsl.engine.sorted.periods import Patches, Periods
from streamdsl.expr.table import Column, flatnonzero
from streamdsl.plan.node import AntiJoin, SemiJoin
from streamdsl.temporal.lifetime import Lifetime


class ExistenceOperator(MatchingOperator):
    """A left row's note is its `Pieces` that are out, None if it never had any; a change redoes the stretch that it touches."""

    def __init__(self, label: str, node: AntiJoin | SemiJoin) -> None:
        super().__init__(label, node.matching)
        self.left.rows.keep_notes()
        self._fragmented: dict[Pieces, None] = {}

    @staticmethod
    @abstractmethod
    def pieces(stretches: Patches, covered: Periods) -> Periods:
        """Return the pieces of stretches of left rows' lifetimes, given the periods of them that right rows cover."""

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        self.take(batches)
        patches = self._patches()
        out = self._batch(patches) if len(patches.owners) else EMPTY
        self.settle()
        return out

    def _patches(self) -> Patches:
        """Return the stretches of left rows' lifetimes, before or now, in which something has changed."""
        rows, slots = self.left.rows, self.left.changed
        was, re = rows.was.take(slots), rows.re.take(slots)
        changed = Patches(slots, np.minimum(was, re), np.maximum(was, re))
        if not len(self.right.changed):
            return changed.by_owner()
        rights, slots = self.right.rows, self.right.changed
        was, re = rights.was.take(slots), rights.re.take(slots)
        asked = Asked(rights.numbers.take(slots), np.minimum(was, re), np.maximum(was, re))
        at, met = self.left.living(asked)
        beside = Patches(met, np.maximum(asked.lo[at], rows.le.take(met)), np.minimum(asked.hi[at], rows.re.take(met)))
        return changed.and_also(beside).by_owner()

    def _covered(self, stretches: Patches) -> Periods:
        """Return the periods of each stretch in which matching right rows live."""
        asked = Asked(self.left.rows.numbers.take(stretches.owners), stretches.lo, stretches.hi)
        at, rights = self.right.living(asked)
        kept = self.matching(stretches.owners[at], rights)
        at, rights = at[kept], rights[kept]
        rows = self.right.rows
        le, re = np.maximum(rows.le.take(rights), asked.lo[at]), np.minimum(rows.re.take(rights), asked.hi[at])
        return Periods(at, le, re).merged()

    def _batch(self, patches: Patches) -> Batch:
        """Return the changes of pieces, retractions before insertions."""
        rows = self.left.rows
        stretches = Patches(patches.owners, patches.lo, np.minimum(patches.hi, rows.re.take(patches.owners)))
        there = flatnonzero(stretches.lo < stretches.hi)
        now = self.pieces(stretches.take(there), self._covered(stretches.take(there)))
        changes = list(self._repaired(patches, Periods(there[now.at], now.le, now.re)))
        if not changes:
            return EMPTY
        changes.sort(key=lambda change: change[2] == change[1])
        slots, le, re_old, re_new = np.array(changes, dtype=np.int64).T.copy()
        groups = None if rows.groups is None else rows.groups.take(slots)
        return Batch(PairIds(rows.ids(slots), le), le, re_old, re_new, materialised(rows.table(slots)), groups)

    def _repaired(self, patches: Patches, now: Periods) -> Iterator[tuple[int, int, int, int]]:
        """Put the pieces of the patches into their places, and yield what changes: slot, LE, and the RE before and now."""
        notes = self.left.rows.notes.take(patches.owners)
        bounds = np.searchsorted(now.at, np.arange(len(notes) + 1)).tolist()
        les, res = now.le.tolist(), now.re.tolist()
        for n, (slot, lo, hi) in enumerate(zip(*(column.tolist() for column in patches), strict=True)):
            mine = slice(bounds[n], bounds[n + 1])
            for piece in self._redone(notes, n, lo, hi, les[mine], res[mine]):
                yield (slot, *piece)
        self.left.rows.notes.put(patches.owners, notes)

    def _redone(self, notes: Column, n: int, lo: int, hi: int, les: list[int], res: list[int]) -> list[PieceChange]:
        known = notes[n]
        if known is None and not les:
            return []
        if known is None:
            known = notes[n] = Pieces(les, res)
            changes = list(zip(les, les, res, strict=True))
        else:
            changes = known.redo(lo, hi, map(Lifetime, les, res))
        if len(known) > 1:
            self._fragmented[known] = None
        return changes

    def forget(self, cti: int) -> None:
        """Drop rows as any join does, and the pieces of long-lived rows that can no longer change."""
        for pieces in list(self._fragmented):
            pieces.forget(cti)
            if len(pieces) <= 1:
                del self._fragmented[pieces]
        super().forget(cti)


class AntiJoinOperator(ExistenceOperator):
    """What is left of a row without its matches."""

    kind = "anti_join (sorted runs)"

    @staticmethod
    def pieces(stretches: Patches, covered: Periods) -> Periods:
        return covered.gaps(stretches)


class SemiJoinOperator(ExistenceOperator):
    """What of a row its matches cover."""

    kind = "semi_join (sorted runs)"

    @staticmethod
    def pieces(stretches: Patches, covered: Periods) -> Periods:
        return covered
