"""Small numbers for the groups that an operator holds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

import numpy as np

from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.temporal.time import Ticks


class GroupCodes:
    """A code for each group, from 0 on; codes that are let go are used again.

    >>> codes = GroupCodes()
    >>> codes.of(np.array([5, 9, 5])).tolist(), codes.groups(np.array([1])).tolist(), len(codes)
    ([0, 1, 0], [9], 2)
    """

    def __init__(self) -> None:
        self._codes: dict[int, int] = {}
        self._groups: Ticks = np.empty(0, dtype=np.int64)
        self._free: list[int] = []

    def __len__(self) -> int:
        """Return a number that all codes are below."""
        return len(self._codes) + len(self._free)

    def of(self, groups: Ticks) -> Rows:
        """Return the code of each group, a new one if it has none."""
        values = groups.tolist()
        codes = np.fromiter(map(self._codes.get, values, repeat(-1)), dtype=np.intp, count=len(values))
        for at in flatnonzero(codes < 0).tolist():
            codes[at] = self._codes.setdefault(values[at], -1)
            if codes[at] < 0:
                codes[at] = self._codes[values[at]] = self._free.pop() if self._free else len(self._codes) - 1
        self._note(codes, groups)
        return codes

    def of_one(self, group: int) -> int:
        """Return what `of` does, for a single group."""
        code = self._codes.get(group)
        return int(self.of(np.array([group]))[0]) if code is None else code

    def _note(self, codes: Rows, groups: Ticks) -> None:
        if len(self) > len(self._groups):
            longer = np.empty(2 * len(self), dtype=np.int64)
            longer[: len(self._groups)] = self._groups
            self._groups = longer
        self._groups[codes] = groups

    def __iter__(self) -> Iterator[int]:
        """Yield the groups that have a code."""
        return iter(self._codes)

    def groups(self, codes: Rows) -> Ticks:
        """Return the group of each code."""
        return self._groups[codes]

    def group(self, code: int) -> int:
        """Return the group of a single code."""
        return self._groups.item(code)

    def keep(self, codes: Rows) -> None:
        """Let all codes go but these."""
        kept = np.zeros(len(self), dtype=np.bool_)
        kept[codes] = True
        gone = [(group, code) for group, code in self._codes.items() if not kept[code]]
        for group, code in gone:
            del self._codes[group]
            self._free.append(code)
