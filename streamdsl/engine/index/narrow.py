"""Integer columns that are 32-bit as long as possible."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamdsl.expr.table import Rows, largest, least
from streamdsl.temporal.time import Ticks

_LEAST: Final = -(2**31)
_LARGEST: Final = 2**31 - 1


class NarrowIntegers:
    """Integers by slot, read as `int64`. All are 32-bit until one is put in that does not fit.

    >>> column = NarrowIntegers()
    >>> column.grow(2)
    >>> column[np.array([0])] = np.array([7])
    >>> column[np.array([0, 1])].tolist(), column._values.itemsize
    ([7, 0], 4)
    >>> column[np.array([1])] = np.array([2**40])
    >>> column[np.array([0, 1])].tolist(), column._values.itemsize
    ([7, 1099511627776], 8)
    """

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: NDArray[Any] = np.empty(0, dtype=np.int32)

    def __getitem__(self, slots: Rows) -> Ticks:
        return self._values[slots].astype(np.int64)

    def __setitem__(self, slots: Rows, values: Ticks) -> None:
        if self._values.dtype == np.int32 and len(values) and (least(values) < _LEAST or largest(values) > _LARGEST):
            self._values = self._values.astype(np.int64)
        self._values[slots] = values

    @property
    def values(self) -> NDArray[Any]:
        """All of them, as they are kept."""
        return self._values

    def item(self, slot: int) -> int:
        """Return one of them."""
        found: int = self._values.item(slot)
        return found

    def put(self, slot: int, value: int) -> None:
        """Set one of them."""
        if self._values.dtype == np.int32 and not _LEAST <= value <= _LARGEST:
            self._values = self._values.astype(np.int64)
        self._values[slot] = value

    def are(self, slots: Rows, values: Ticks) -> NDArray[np.bool_]:
        """Say at which slots these values are."""
        found: NDArray[np.bool_] = self._values[slots] == values
        return found

    def grow(self, size: int) -> None:
        """Make room for `size` of them, zeros at first."""
        self._values = np.concatenate([self._values, np.zeros(size - len(self._values), dtype=self._values.dtype)])
