"""Numbers of keys, equal where the keys are: integers are their own, others are looked up."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from streamdsl.expr.table import Column
from streamdsl.temporal.payload import payload_key


class _Numbers(dict[Hashable, int]):
    """Gives each new key the next number."""

    def __init__(self) -> None:
        super().__init__()
        self.next = 0

    def __missing__(self, key: Hashable) -> int:
        number = self[key] = self.next
        self.next += 1
        return number

    def __reduce__(self) -> tuple[object, ...]:
        return (_Numbers, (), {"next": self.next}, None, iter(self.items()))


class KeyNumbers:
    """The numbers of the keys of several inputs.

    >>> numbers = KeyNumbers()
    >>> numbers.of(np.array([7, 8]), None).tolist(), numbers.are_own
    ([7, 8], True)
    """

    def __init__(self) -> None:
        self._known: _Numbers | None = None
        self._swept = 0

    @property
    def are_own(self) -> bool:
        """Whether every key is its own number."""
        return self._known is None

    @property
    def nbytes(self) -> int:
        """About the memory of what is looked up."""
        return 0 if self._known is None else 150 * len(self._known)

    def can_be_own(self, keys: Column, groups: Column | None) -> bool:
        """Say whether these keys are their own numbers."""
        return groups is None and keys.dtype.kind in "bi"

    def look_up(self) -> None:
        """From now on keys are looked up; numbers that have been given must be asked for again."""
        self._known = _Numbers()

    def of(self, keys: Column, groups: Column | None) -> Column:
        """Return the numbers of keys, in their groups."""
        if self._known is None:
            return keys.astype(np.int64, copy=False)
        values: Iterable[Hashable] = keys.tolist() if keys.dtype.kind in "bi" else _hashable(keys.tolist())
        if groups is not None:
            values = zip(groups.tolist(), values, strict=True)
        return np.fromiter(map(self._known.__getitem__, values), dtype=np.int64, count=len(keys))

    def forget(self, held: Iterable[Column]) -> None:
        """Forget keys whose numbers nothing holds, when they may be half of all."""
        if self._known is None or len(self._known) < 2 * self._swept + 1024:
            return
        live = set(itertools.chain.from_iterable(column.tolist() for column in held))
        for key in [key for key, number in self._known.items() if number not in live]:
            del self._known[key]
        self._swept = len(self._known)


def _hashable(values: Sequence[object]) -> Iterable[Hashable]:
    if set(map(type, values)) <= {str, int, bool, type(None)}:
        return values
    return map(payload_key, values)
