"""Sorting by integers: columns as one where they fit into 64 bits together, digit by digit.

numpy sorts 16 bits by counting, in a few nanoseconds a number; a sort that compares takes thirty, on some processors.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamdsl.expr.table import Column, Rows

Codes = NDArray[np.int64]

_BITS: Final = 63
_DIGIT: Final = 16
"""The bits of a digit."""
_FEW: Final = 16
"""So few rows are sorted sooner as Python's own values."""


def order_by(columns: Sequence[Column]) -> Rows | None:
    """Return the stable order by some columns of numbers, the first decides; None where the rows certainly are in it, none equal.

    >>> order_by([np.array([2, 1, 2]), np.array([0.5, 9.0, -3.0])]).tolist(), order_by([np.array([1, 2])])
    ([1, 2, 0], None)
    """
    if len(columns[0]) <= _FEW and all(column.dtype.kind in "bi" for column in columns):
        return _order_of_few(columns)
    if len(columns[0]) < 2 or _are_ordered(columns):
        return None
    codes = _packed(columns)
    if any(bits > _BITS for _, bits in codes):
        return np.lexsort([code for code, _ in reversed(codes)])
    order: Rows | None = None
    for code, bits in reversed(codes):
        order = _ordered(code, bits, order)
    return np.arange(len(columns[0])) if order is None else order


def _order_of_few(columns: Sequence[Column]) -> Rows | None:
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    if all(map(operator.lt, rows, rows[1:])):
        return None
    return np.array(sorted(range(len(rows)), key=rows.__getitem__), dtype=np.intp)


def as_one(columns: Sequence[Column]) -> Codes | None:
    """Return columns of integers as one, with the same order; None if they do not fit into 64 bits together.

    >>> as_one([np.array([7, 5, 7]), np.array([1, 1, 0])]).tolist(), as_one([np.array([0, 2**62]), np.array([0, 2**62])])
    ([5, 1, 4], None)
    """
    if not len(columns[0]):
        return columns[0]
    (code, bits), *others = _packed(columns)
    return None if others or bits > _BITS else code


def _are_ordered(columns: Sequence[Column]) -> bool:
    """Say whether rows certainly are in order, none equal."""
    is_open = np.ones(len(columns[0]) - 1, dtype=np.bool_)
    for column in columns:
        if column.dtype.kind not in "bi" or (is_open & (column[:-1] > column[1:])).any():
            return False
        is_open &= column[:-1] == column[1:]
        if not is_open.any():
            return True
    return False


def _ordered(codes: Codes, bits: int, order: Rows | None) -> Rows | None:
    """Return rows that are in some order, sorted stably by a code of so many bits: digit by digit, the last one first."""
    for shift in range(0, bits, _DIGIT):
        digits = (codes >> shift).astype(np.uint16)
        order = np.argsort(digits, kind="stable") if order is None else order[np.argsort(digits[order], kind="stable")]
    return order


def _packed(columns: Sequence[Column]) -> list[tuple[Column, int]]:
    """Return columns with the same order, as few as may be, and how many bits each has."""
    packed: list[tuple[Column, int]] = []
    for column in columns:
        code, bits = _shifted(column)
        if packed and packed[-1][1] + bits <= _BITS:
            above, others = packed.pop()
            code, bits = (above << bits) | code, bits + others
        packed.append((code, bits))
    return packed


def _shifted(column: Column) -> tuple[Column, int]:
    """Return integers as their distance from the least, and how many bits that has; of other numbers more than fit."""
    if column.dtype.kind not in "bi":
        return column, _BITS + 1
    values = column.astype(np.int64, copy=False)
    least = int(values.min())
    bits = (int(values.max()) - least).bit_length()
    return (values - least, bits) if bits <= _BITS else (values, _BITS + 1)


def sorted_integers(numbers: Column) -> tuple[Rows, Column]:
    """Return the order of numbers, equal ones as they stand, and the numbers in that order.

    >>> sorted_integers(np.array([7, 5, 7]))
    (array([1, 0, 2]), array([5, 7, 7]))
    """
    order = stable_order(numbers)
    return order, numbers[order]


def stable_order(numbers: Column) -> Rows:
    """Return the order of integers, equal ones as they stand.

    >>> stable_order(np.array([7, -5, 7])).tolist()
    [1, 0, 2]
    """
    if numbers.dtype == object:
        return np.argsort(numbers, kind="stable")
    if not len(numbers):
        return np.empty(0, dtype=np.intp)
    least = int(numbers.min())
    order = _ordered(numbers - least, (int(numbers.max()) - least).bit_length(), None)
    return np.arange(len(numbers)) if order is None else order


def ascending(numbers: Column) -> Column:
    """Return integers in order.

    >>> ascending(np.array([7, -5, 7])).tolist()
    [-5, 7, 7]
    """
    return numbers[stable_order(numbers)]
