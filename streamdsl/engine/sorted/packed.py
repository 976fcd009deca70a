"""Several columns as one to sort by, where their values fit into 64 bits together: sorting one column of integers is fast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamdsl.expr.table import Column, Rows

Codes = NDArray[np.int64]

_BITS: Final = 63


def order_by(columns: Sequence[Column]) -> Rows:
    """Return the stable order by some columns of numbers, the first decides.

    >>> order_by([np.array([2, 1, 2]), np.array([0.5, 9.0, -3.0])]).tolist()
    [1, 2, 0]
    """
    codes = _packed(columns)
    if len(codes) > 1 or codes[0][0].dtype != np.int64:
        return np.lexsort([code for code, _ in reversed(codes)])
    return order_of_codes(*codes[0])


def order_of_codes(codes: Codes, bits: int) -> Rows:
    """Return the stable order of integers of so many bits, from 0 on.

    >>> order_of_codes(np.array([2, 1, 2]), 2).tolist()
    [1, 0, 2]
    """
    row_bits = (len(codes) - 1).bit_length()
    if bits + row_bits > _BITS:
        return np.argsort(codes, kind="stable")
    rows = np.sort((codes << row_bits) | np.arange(len(codes)))
    rows &= (1 << row_bits) - 1
    return rows


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
