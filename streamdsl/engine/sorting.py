"""Sorting integers with their positions: the positions stand in the low bits, because values are sorted faster than positions."""

from __future__ import annotations

import numpy as np

from streamdsl.expr.table import Column, Rows


def in_order(numbers: Column) -> tuple[Rows, Column]:
    """Return the order of numbers, equal ones as they stand, and the numbers in that order.

    >>> in_order(np.array([7, 5, 7]))
    (array([1, 0, 2]), array([5, 7, 7]))
    """
    bits = len(numbers).bit_length()
    if numbers.dtype == object or not len(numbers):
        return _slowly(numbers)
    low = int(numbers.min())
    if int(numbers.max()) - low >= 1 << (63 - bits):
        return _slowly(numbers)
    packed = ((numbers - low) << bits) | np.arange(len(numbers))
    packed.sort()
    order = packed & ((1 << bits) - 1)
    packed >>= bits
    packed += low
    return order, packed


def _slowly(numbers: Column) -> tuple[Rows, Column]:
    order = np.argsort(numbers, kind="stable")
    return order, numbers[order]
