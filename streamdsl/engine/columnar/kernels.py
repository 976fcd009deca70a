"""Kernels: loops over rows that numba compiles, where it is installed (the extra `fast`) and rows are many.

Each gives exactly what numpy's columns give, which are there without numba and for few rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.expr.table import Rows
from streamdsl.temporal.time import Ticks

MANY: Final = 2**14
"""So many rows are worth a compiled loop."""

DigitAdder: TypeAlias = Callable[[NDArray[np.float64], Rows, tuple[Ticks, ...], NDArray[np.float64], NDArray[np.float64]], None]


@cache
def digit_adder() -> DigitAdder | None:
    """Return `add_digits`, compiled; None without numba."""
    if find_spec("numba") is None:
        return None
    compiled: Any = import_module("numba").njit(cache=True, nogil=True)(add_digits)
    return compiled  # type: ignore[no-any-return]


def add_digits(
    values: NDArray[np.float64],
    index: Rows,
    lanes: Sequence[Ticks],
    downs: NDArray[np.float64],
    ups: NDArray[np.float64],
) -> None:
    """Cut each float into digits, highest first, and add them to the lanes at its index; `downs` and `ups` scale the digits.

    >>> lanes = [np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)]
    >>> add_digits(np.array([3.75]), np.array([0]), lanes, np.array([1.0, 2.0**32]), np.array([1.0, 2.0**-32]))
    >>> [lane.tolist() for lane in lanes]
    [[3], [3221225472]]
    """
    last = len(lanes) - 1
    for row in range(len(values)):
        rest, place = values[row], index[row]
        for weight in range(last):
            digit = np.int64(rest * downs[weight])
            lanes[weight][place] += digit
            rest -= digit * ups[weight]
        lanes[last][place] += np.int64(rest * downs[last])
