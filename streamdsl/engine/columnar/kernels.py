"""Kernels for sums of floats: compiled loops that give exactly what numpy gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamdsl.expr.kernel import Kernel
from streamdsl.expr.table import Rows
from streamdsl.temporal.time import Ticks


def add_digits(
    values: NDArray[np.float64],
    index: Rows,
    columns: Sequence[Ticks],
    downs: NDArray[np.float64],
    ups: NDArray[np.float64],
) -> None:
    """Split each float into digits, highest first, and add them to the columns at its index; `downs` and `ups` scale the digits.

    >>> columns = [np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)]
    >>> add_digits(np.array([3.75]), np.array([0]), columns, np.array([1.0, 2.0**32]), np.array([1.0, 2.0**-32]))
    >>> [column.tolist() for column in columns]
    [[3], [3221225472]]
    """
    last = len(columns) - 1
    for row in range(len(values)):
        rest, place = values[row], index[row]
        for weight in range(last):
            digit = np.int64(rest * downs[weight])
            columns[weight][place] += digit
            rest -= digit * ups[weight]
        columns[last][place] += np.int64(rest * downs[last])


def sum_digits(
    columns: Sequence[Ticks],
    scales: NDArray[np.float64],
    total: NDArray[np.float64],
    error: NDArray[np.float64],
    doubt: NDArray[np.float64],
) -> None:
    """Add up the scaled digits at each position, with the rounding errors (Knuth's two-sum), and a bound of what these lost.

    >>> total, error, doubt = np.empty(1), np.empty(1), np.empty(1)
    >>> sum_digits([np.array([2**40]), np.array([1])], np.array([2.0**32, 2.0**-32]), total, error, doubt)
    >>> total.item() == 2.0**72, error.item() == 2.0**-32, doubt.item()
    (True, True, 0.0)
    """
    for place in range(len(total)):
        high = low = lost = 0.0
        for weight in range(len(columns)):
            value = columns[weight][place] * scales[weight]
            added = high + value
            part = added - high
            rest = (high - (added - part)) + (value - part)
            high = added
            added = low + rest
            part = added - low
            lost += abs((low - (added - part)) + (rest - part))
            low = added
        total[place], error[place], doubt[place] = high, low, lost


DIGIT_ADDER: Final = Kernel(add_digits)
DIGIT_SUMMER: Final = Kernel(sum_digits)
