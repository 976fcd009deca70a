"""The ids of windows' results."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import repeat

from streamdsl.engine.ids import DeferredIds
from streamdsl.engine.keys import KeyTable
from streamdsl.expr.table import Column


class WindowIds(DeferredIds):
    """The ids of windows' results: `(operator, start, 0)`, in groups `(operator, key, start, 0)`."""

    __slots__ = ("keys", "label")

    def __init__(self, label: str, keys: KeyTable | None, starts: Column, *leaves: Column) -> None:
        super().__init__(starts, *leaves)
        self.label = label
        self.keys = keys

    def with_columns(self, *columns: Column) -> WindowIds:
        """Return the ids of other results."""
        return WindowIds(self.label, self.keys, *columns)

    def is_like(self, other: object) -> bool:
        """Say whether other ids are of results of the same operator."""
        return isinstance(other, WindowIds) and (other.label, other.keys) == (self.label, self.keys)

    def spelled(self) -> Iterator[Hashable]:
        """Return the ids."""
        starts, *leaves = self.columns
        paths = [self.keys.spell(leaves)] if self.keys is not None else []
        return zip(repeat(self.label), *paths, starts.tolist(), repeat(0), strict=False)
