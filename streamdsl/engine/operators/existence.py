"""Anti-join and semi-join: each left row for the time that no, or some, matching right row lives, as maximal pieces."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from streamdsl.engine.batch import Batch
from streamdsl.engine.index import EventRow, PieceChange, Pieces
from streamdsl.engine.operator import MatchKey
from streamdsl.engine.operators.sides import TwoSidedOperator
from streamdsl.engine.store import SlotChange
from streamdsl.plan.node import AntiJoin, SemiJoin
from streamdsl.temporal.lifetime import Lifetime, merge, subtract


@dataclass(slots=True)
class Patch:
    """A left row, its lifetime before, and the stretch of time in which its pieces may have changed."""

    row: EventRow
    key: MatchKey
    lo: int
    hi: int


class ExistenceOperator(TwoSidedOperator):
    """A left row's `arguments` are its `Pieces` that are out; a change redoes only the stretch that it touches."""

    def __init__(self, label: str, node: AntiJoin | SemiJoin) -> None:
        super().__init__(label, node.matching)
        self._fragmented: dict[int, EventRow] = {}

    @staticmethod
    @abstractmethod
    def pieces(stretch: Lifetime, matches: Iterable[Lifetime]) -> list[Lifetime]:
        """Return the pieces of a stretch of a left row's lifetime, given the lifetimes of the right rows that match in it."""

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        left, right = batches
        patches: dict[tuple[Hashable, int], Patch] = {}
        for change in self.left.changes(left):
            if change.row.arguments is None:
                change.row.arguments = Pieces()
            ends = (change.re_old, change.re_new)
            _extend(patches, change.row, change.key, min(ends), max(ends))
        for change in self.right.changes(right):
            lo, hi = min(change.re_old, change.re_new), max(change.re_old, change.re_new)
            for row in self.left.overlapping(change.key, lo, hi):
                _extend(patches, row, change.key, max(lo, row.le), min(hi, row.re))
        out = self.left.store.batch(self._changes(list(patches.values())), self.is_grouped)
        self.left.release()
        self.right.release()
        return out

    def _changes(self, patches: list[Patch]) -> Iterator[SlotChange]:
        for patch, matches in zip(patches, self._matching(patches), strict=True):
            row = patch.row
            yield from (
                SlotChange((row.id, piece[0]), *piece, row.payload, patch.key[0]) for piece in self._repair(patch, matches)
            )
            if len(row.arguments) > 1:
                self._fragmented[id(row)] = row

    def _matching(self, patches: list[Patch]) -> list[list[Lifetime]]:
        """Return, for each patch, the lifetimes of the right rows that match in its stretch."""
        found = [
            (n, patch.row, right)
            for n, patch in enumerate(patches)
            for right in self.right.overlapping(patch.key, patch.lo, patch.hi)
        ]
        matching = self.matches([row for _, row, _ in found], [right for _, _, right in found])
        lives: list[list[Lifetime]] = [[] for _ in patches]
        for (n, _, right), match in zip(found, matching.tolist(), strict=True):
            if match:
                lives[n].append(Lifetime(right.le, right.re))
        return lives

    def _repair(self, patch: Patch, matches: Iterable[Lifetime]) -> list[PieceChange]:
        """Work out the pieces in the patch's stretch anew."""
        stretch = Lifetime(patch.lo, min(patch.hi, patch.row.re))
        changes: list[PieceChange] = patch.row.arguments.redo(patch.lo, patch.hi, self.pieces(stretch, matches))
        return changes

    def forget(self, cti: int) -> None:
        """Drop rows as any join does, and the pieces of long-lived rows that can no longer change."""
        for slot, row in list(self._fragmented.items()):
            row.arguments.forget(cti)
            if len(row.arguments) <= 1 or row.re < cti:
                del self._fragmented[slot]
        super().forget(cti)


class AntiJoinOperator(ExistenceOperator):
    """What is left of a row without its matches."""

    kind = "anti_join (indexed)"

    @staticmethod
    def pieces(stretch: Lifetime, matches: Iterable[Lifetime]) -> list[Lifetime]:
        return subtract(stretch, matches)


class SemiJoinOperator(ExistenceOperator):
    """What of a row its matches cover."""

    kind = "semi_join (indexed)"

    @staticmethod
    def pieces(stretch: Lifetime, matches: Iterable[Lifetime]) -> list[Lifetime]:
        return merge(match.intersect(stretch) for match in matches)


def _extend(patches: dict[tuple[Hashable, int], Patch], row: EventRow, key: MatchKey, lo: int, hi: int) -> None:
    known = patches.get((row.id, row.payload))
    if known is None:
        patches[row.id, row.payload] = Patch(row, key, lo, hi)
    else:
        known.lo, known.hi = min(known.lo, lo), max(known.hi, hi)
