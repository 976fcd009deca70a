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


DigitSummer: TypeAlias = Callable[
    [tuple[Ticks, ...], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]], None
]


IntegerCoder: TypeAlias = Callable[[Ticks, NDArray[np.int32], Ticks, Rows], int]


@cache
def integer_coder() -> IntegerCoder | None:
    """Return `code_integers`, compiled; None without numba."""
    return _compiled(code_integers)  # type: ignore[no-any-return]


@cache
def digit_adder() -> DigitAdder | None:
    """Return `add_digits`, compiled; None without numba."""
    return _compiled(add_digits)  # type: ignore[no-any-return]


@cache
def digit_summer() -> DigitSummer | None:
    """Return `sum_digits`, compiled; None without numba."""
    return _compiled(sum_digits)  # type: ignore[no-any-return]


def _compiled(loop: Callable[..., Any]) -> Any:
    return None if find_spec("numba") is None else import_module("numba").njit(cache=True, nogil=True)(loop)


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


def code_integers(values: Ticks, table: NDArray[np.int32], found: Ticks, codes: Rows) -> int:
    """Write a number for each integer, in order of first appearance, and which integer each number is of; return how many.

    `table` is full of -1, and has room for twice as many places as there are rows: a power of two.

    >>> found, codes = np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.intp)
    >>> code_integers(np.array([70, 50, 70]), np.full(8, -1, dtype=np.int32), found, codes)
    2
    >>> found[:2].tolist(), codes.tolist()
    ([70, 50], [0, 1, 0])
    """
    last, number = len(table) - 1, 0
    for row in range(len(values)):
        value = values[row]
        mixed = (value ^ (value >> 31)) * 0x2545F491
        place = (mixed ^ (mixed >> 29)) & last
        while table[place] >= 0 and found[table[place]] != value:
            place = (place + 1) & last
        if table[place] < 0:
            table[place] = number
            found[number] = value
            number += 1
        codes[row] = table[place]
    return number


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
