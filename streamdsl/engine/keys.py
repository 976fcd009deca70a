"""Group keys: one object per group, so that equal keys are the same object and dictionaries of groups are fast."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any
from weakref import WeakValueDictionary


class GroupKey:
    """The key of a group: what it looks like, and its path (with the keys of the groups around it), hashable."""

    __slots__ = ("__weakref__", "parent", "path", "shown")

    def __init__(self, path: Hashable, shown: Any, parent: GroupKey | None) -> None:
        self.path = path
        self.shown = shown
        self.parent = parent

    def __repr__(self) -> str:
        return f"GroupKey({self.shown!r})"


class KeyTable:
    """The groups that something still refers to; a group that nothing remembers is forgotten by itself.

    >>> table = KeyTable()
    >>> kept = table.intern("a", "a", None)
    >>> table.intern("a", "a", None) is kept
    True
    """

    def __init__(self) -> None:
        self._keys: WeakValueDictionary[tuple[Any, Hashable], GroupKey] = WeakValueDictionary()

    def intern(self, hashed: Hashable, shown: Any, parent: GroupKey | None) -> GroupKey:
        """Return the group's one key object."""
        known = self._keys.get((parent, hashed))
        if known is None:
            path = (parent.path, hashed) if parent else hashed
            known = GroupKey(path, shown, parent)
            self._keys[parent, hashed] = known
        return known
