"""Small numbers for the groups that an operator holds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamdsl.engine.index.pair_index import PairIndex
from streamdsl.expr.table import Rows
from streamdsl.temporal.time import Ticks


class GroupCodes:
    """A code for each group, from 0 on. Codes of dropped groups are used again.


    >>> codes = GroupCodes()
    >>> found = codes.of(np.array([5, 9, 5]))
    >>> sorted(set(found.tolist())), codes.groups(found).tolist(), len(codes)
    ([0, 1], [5, 9, 5], 2)
    """

    def __init__(self) -> None:
        self._slots = PairIndex()

    def __len__(self) -> int:
        """Return a number that all codes are below."""
        return self._slots.stop

    @property
    def n_held(self) -> int:
        """How many groups have a code."""
        return len(self._slots)

    def of(self, groups: Ticks) -> Rows:
        """Return the code of each group, a new one if it has none."""
        return self._slots.find(np.zeros_like(groups), groups)

    def of_one(self, group: int) -> int:
        """Return what `of` does, for a single group."""
        return self._slots.find_one(0, group)

    def __iter__(self) -> Iterator[int]:
        """Yield the groups that have a code."""
        return iter(self.groups(self._slots.slots()).tolist())

    def groups(self, codes: Rows) -> Ticks:
        """Return the group of each code."""
        return self._slots.group[codes]

    def group(self, code: int) -> int:
        """Return the group of a single code."""
        return self._slots.group.item(code)

    def keep(self, codes: Rows) -> None:
        """Drop all codes but these."""
        is_gone = np.ones(len(self), dtype=np.bool_)
        is_gone[codes] = False
        held = self._slots.slots()
        self._slots.release(held[is_gone[held]])
