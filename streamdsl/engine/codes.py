"""Codes: small numbers for values, equal where the values are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np

from streamdsl.expr.coding import integer_codes
from streamdsl.expr.table import Column, Rows
from streamdsl.temporal.alike import unique
from streamdsl.temporal.payload import AS_THEY_ARE, payload_key


def factorise(column: Column) -> Rows:
    """Return a small number for every value, equal where the values are; each number up to the largest is some row's.

    >>> codes = factorise(np.array([7, 5, 7]))
    >>> bool(codes[0] == codes[2] != codes[1])
    True
    >>> factorise(np.array([0.0, np.nan, -0.0, -np.nan])).tolist()
    [0, 1, 0, 1]
    """
    if column.dtype.kind in "bi":
        return integer_codes(column.astype(np.int64, copy=False))[0]
    if column.dtype.kind == "f":
        return integer_codes(np.where(column != column, np.nan, column + 0.0).view(np.int64))[0]
    values = column.tolist()
    if not unique(map(type, values)) <= AS_THEY_ARE:
        values = list(map(payload_key, values))
    return hashed_codes(values)


def hashed_codes(values: Sequence[Hashable]) -> Rows:
    """Return a number for every value, in order of first appearance."""
    numbers: defaultdict[Hashable, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return np.fromiter(map(numbers.__getitem__, values), dtype=np.intp, count=len(values))
