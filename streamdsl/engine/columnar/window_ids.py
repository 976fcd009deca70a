"""The ids of windows' results."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from streamdsl.engine.ids import DeferredIds, VersionedIds
from streamdsl.engine.keys import KeyTable
from streamdsl.expr.deferred import AnyColumn
from streamdsl.expr.table import column_of


class WindowIds(DeferredIds):
    """The ids of windows' results: `(operator, start, 0)`, in groups `(operator, key, start, 0)`."""

    __slots__ = ("keys", "label")

    def __init__(self, label: str, keys: KeyTable | None, *columns: AnyColumn) -> None:
        super().__init__(*columns)
        self.label = label
        self.keys = keys

    @property
    def parts(self) -> tuple[AnyColumn, list[AnyColumn], AnyColumn | None]:
        """The windows' starts, the leaves of their groups' keys, and, where a window has several results, the number of each."""
        starts, *leaves = self.columns
        return starts, leaves, None

    def with_columns(self, *columns: AnyColumn) -> WindowIds:
        """Return the ids of other results."""
        return WindowIds(self.label, self.keys, *columns)

    def spelled_one(self, parts: tuple[Any, ...]) -> Hashable:
        """Return the id of a single result, given its window's start and the leaves of its group's key."""
        if self.keys is None:
            return (self.label, parts[0], 0)
        return (self.label, self.keys.spell_one(parts[1:]), parts[0], 0)

    def from_rows(self, ids: Sequence[Any], versions: Sequence[int]) -> DeferredIds:
        """Return the ids of few results, given the parts of each, in columns."""
        return VersionedIds(self.with_columns(*map(column_of, zip(*ids, strict=True))), np.array(versions, dtype=np.int64))

    def is_like(self, other: object) -> bool:
        """Say whether other ids are of results of the same operator."""
        return isinstance(other, WindowIds) and (other.label, other.keys) == (self.label, self.keys)

    def spelled(self) -> Iterator[Hashable]:
        """Return the ids."""
        starts, *leaves = self.columns
        paths = [self.keys.spell(leaves)] if self.keys is not None else []
        return zip(repeat(self.label), *paths, starts.tolist(), repeat(0), strict=False)


class PieceIds(WindowIds):
    """The ids of pieces of time that are called as windows are; how often one has come back is not known."""

    __slots__ = ()

    def from_rows(self, ids: Sequence[Any], versions: Sequence[int]) -> DeferredIds:
        """Return the ids of few pieces, given the parts of each, in columns."""
        return self.with_columns(*map(column_of, zip(*ids, strict=True)))
