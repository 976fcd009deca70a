"""Fast bulk operations on sequences of Python values: distinct values, and typed arrays."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

_CHUNK: Final = 4096
"""The number of values per `struct.pack_into`, which takes half the time of `np.fromiter`."""
_CODES: Final = {int: "q", float: "d", bool: "?"}
_DTYPES: Final = {int: np.int64, float: np.float64, bool: np.bool_}


def distinct(values: Iterable[T]) -> set[T]:
    """Return the set of values; if all are equal, in half the time of `set`.

    >>> distinct(map(type, [1, 2, 3])), distinct(map(len, ["a", "bc"])) == {1, 2}
    ({<class 'int'>}, True)
    """
    listed = list(values)
    return set(listed[:1]) if listed and listed.count(listed[0]) == len(listed) else set(listed)


def typed_array(values: Sequence[Any], kind: type) -> NDArray[Any] | None:
    """Return values of the type `kind` as a typed array; None for other types than int, float and bool, and beyond int64.

    >>> typed_array([1, 2], int).tolist(), typed_array([2**63], int), typed_array(["a"], str)
    ([1, 2], None, None)
    """
    if kind not in _CODES:
        return None
    column: NDArray[Any] = np.empty(len(values), dtype=_DTYPES[kind])
    try:
        for first in range(0, len(values), _CHUNK):
            some = values[first : first + _CHUNK]
            struct.pack_into(f"{len(some)}{_CODES[kind]}", column.data, first * column.itemsize, *some)
    except struct.error:
        return None
    return column
