"""Kernels: loops over rows that numba compiles, where it is installed (the extra `fast`) and rows are many.

Each gives exactly what numpy's columns give, which are there without numba and for few rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.expr.coding import compiled
from streamdsl.expr.table import Rows
from streamdsl.temporal.time import Ticks

DigitAdder: TypeAlias = Callable[[NDArray[np.float64], Rows, tuple[Ticks, ...], NDArray[np.float64], NDArray[np.float64]], None]


DigitSummer: TypeAlias = Callable[
    [tuple[Ticks, ...], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]], None
]


@cache
def digit_adder() -> DigitAdder | None:
    """Return `add_digits`, compiled; None without numba."""
    return compiled(add_digits)  # type: ignore[no-any-return]


@cache
def digit_summer() -> DigitSummer | None:
    """Return `sum_digits`, compiled; None without numba."""
    return compiled(sum_digits)  # type: ignore[no-any-return]


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


def sum_digits(
    lanes: Sequence[Ticks],
    scales: NDArray[np.float64],
    total: NDArray[np.float64],
    error: NDArray[np.float64],
    doubt: NDArray[np.float64],
) -> None:
    """Add up the scaled digits at each position, what rounding lost (Knuth's sum of two), and how much of that was lost.

    >>> total, error, doubt = np.empty(1), np.empty(1), np.empty(1)
    >>> sum_digits([np.array([2**40]), np.array([1])], np.array([2.0**32, 2.0**-32]), total, error, doubt)
    >>> total.item() == 2.0**72, error.item() == 2.0**-32, doubt.item()
    (True, True, 0.0)
    """
    for place in range(len(total)):
        high = low = lost = 0.0
        for weight in range(len(lanes)):
            value = lanes[weight][place] * scales[weight]
            added = high + value
            part = added - high
            rest = (high - (added - part)) + (value - part)
            high = added
            added = low + rest
            part = added - low
            lost += abs((low - (added - part)) + (rest - part))
            low = added
        total[place], error[place], doubt[place] = high, low, lost
