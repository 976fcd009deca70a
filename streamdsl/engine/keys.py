"""Group keys: one object per group, so that equal keys are the same object and dictionaries of groups are fast."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from streamdsl.expr.table import Column, Rows, object_column
from streamdsl.temporal.payload import payload_key


class GroupKey:
    """The key of a group: what it looks like, and its path (with the keys of the groups around it), hashable."""

    __slots__ = ("__weakref__", "parent", "path", "shown")

    def __init__(self, path: Hashable, shown: Any, parent: GroupKey | None) -> None:
        self.path = path
        self.shown = shown
        self.parent = parent

    def __repr__(self) -> str:
        return f"GroupKey({self.shown!r})"


class _Reference(ref[GroupKey]):
    """A weak reference that remembers where it is kept: C code makes it, other than `weakref.KeyedRef`."""

    __slots__ = ("at",)
    at: tuple[GroupKey | None, Hashable]


class KeyTable:
    """The groups that something still refers to; a group that nothing remembers is forgotten by itself.

    >>> table = KeyTable()
    >>> kept = table.intern("a", "a", None)
    >>> table.intern("a", "a", None) is kept
    True
    """

    def __init__(self) -> None:
        self._keys: dict[GroupKey | None, dict[Hashable, _Reference]] = {None: {}}

    def intern(self, hashed: Hashable, shown: Any, parent: GroupKey | None) -> GroupKey:
        """Return the group's one key object."""
        inside = self._keys.get(parent)
        found = None if inside is None else inside.get(hashed)
        known = None if found is None else found()
        if known is None:
            known = GroupKey((parent.path, hashed) if parent else hashed, shown, parent)
            self._remember(known, hashed)
        return known

    def _remember(self, key: GroupKey, hashed: Hashable) -> None:
        reference = _Reference(key, self._forget)
        reference.at = (key.parent, hashed)
        self._keys.setdefault(key.parent, {})[hashed] = reference

    def _forget(self, gone: _Reference) -> None:
        parent, hashed = gone.at
        inside = self._keys.get(parent, {})
        if inside.get(hashed) is gone:
            del inside[hashed]
            if not inside and parent is not None:
                del self._keys[parent]

    def __len__(self) -> int:
        return sum(map(len, self._keys.values()))

    def __getstate__(self) -> list[GroupKey]:
        found = (reference() for inside in self._keys.values() for reference in inside.values())
        return [key for key in found if key is not None]

    def __setstate__(self, keys: list[GroupKey]) -> None:
        self._keys = {None: {}}
        for key in keys:
            self._remember(key, key.path[1] if key.parent else key.path)  # type: ignore[index]


def factorise(column: Column) -> Rows:
    """Return a small number for every value, equal where the values are; each number up to the largest is some row's.

    >>> codes = factorise(np.array([7, 5, 7]))
    >>> bool(codes[0] == codes[2] != codes[1])
    True
    """
    if column.dtype.kind in "bi":
        return _ranks(column.astype(np.int64, copy=False))
    values = column.tolist()
    if not set(map(type, values)) <= {str, int, bool, type(None)}:
        values = list(map(payload_key, values))
    return hashed_codes(values)


def hashed_codes(values: Sequence[Hashable]) -> Rows:
    """Return a number for every value, in order of first appearance."""
    numbers: defaultdict[Hashable, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return np.fromiter(map(numbers.__getitem__, values), dtype=np.intp, count=len(values))


def _ranks(values: Column) -> Rows:
    """Return the ranks of integers, from 0."""
    if not len(values):
        return values.astype(np.intp)
    low, high = int(values.min()), int(values.max())
    if high - low > 4 * len(values) + 1024:
        ordered = np.sort(values)
        known = ordered[np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))]
        return np.searchsorted(known, values)
    used = np.zeros(high - low + 1, dtype=np.intp)
    used[values - low] = 1
    ranks: Rows = (np.cumsum(used) - 1)[values - low]
    return ranks


def first_rows(codes: Rows) -> Rows:
    """Return the first row of each number; of one that no row has, row 0."""
    if not len(codes):
        return codes
    first = np.zeros(int(codes.max()) + 1, dtype=np.intp)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first


def group_codes(keys: Column | None, codes: Rows | None, size: int) -> tuple[Rows, Column]:
    """Return a small number for each of `size` rows, equal where the groups are, and the group of each number.

    >>> codes, groups = group_codes(None, None, 2)
    >>> codes.tolist(), groups.tolist()
    ([0, 0], [None])
    """
    if keys is None:
        return np.zeros(size, dtype=np.intp), object_column([None])
    if codes is None:
        codes = hashed_codes(keys.tolist())
    return codes, keys[first_rows(codes)]
