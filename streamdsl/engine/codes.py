"""Codes: small numbers for values, equal where the values are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np

from streamdsl.expr.table import Column, Rows
from streamdsl.temporal.payload import payload_key
from streamdsl.temporal.time import Ticks


def factorise(column: Column) -> Rows:
    """Return a small number for every value, equal where the values are; each number up to the largest is some row's.

    >>> codes = factorise(np.array([7, 5, 7]))
    >>> bool(codes[0] == codes[2] != codes[1])
    True
    """
    if column.dtype.kind in "bi":
        return _ranks(column.astype(np.int64, copy=False))
    values = column.tolist()
    if not set(map(type, values)) <= {str, int, bool, type(None)}:
        values = list(map(payload_key, values))
    return hashed_codes(values)


def hashed_codes(values: Sequence[Hashable]) -> Rows:
    """Return a number for every value, in order of first appearance."""
    numbers: defaultdict[Hashable, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return np.fromiter(map(numbers.__getitem__, values), dtype=np.intp, count=len(values))


def _ranks(values: Column) -> Rows:
    """Return the ranks of integers, from 0."""
    if not len(values):
        return values.astype(np.intp)
    low, high = int(values.min()), int(values.max())
    if high - low > 4 * len(values) + 1024:
        order = np.argsort(values)
        ordered = values[order]
        ranks = np.empty(len(values), dtype=np.intp)
        ranks[order] = np.cumsum(np.concatenate([[False], ordered[1:] != ordered[:-1]]))
        return ranks
    used = np.zeros(high - low + 1, dtype=np.intp)
    used[values - low] = 1
    counted: Rows = (np.cumsum(used) - 1)[values - low]
    return counted


def first_rows(codes: Rows) -> Rows:
    """Return the first row of each number; of one that no row has, row 0."""
    if not len(codes):
        return codes
    first = np.zeros(int(codes.max()) + 1, dtype=np.intp)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first


def group_codes(groups: Ticks) -> tuple[Rows, Ticks]:
    """Return a small number for each row, equal where the groups are, and the group of each number.

    >>> codes, groups = group_codes(np.array([30, 20, 30]))
    >>> groups[codes].tolist()
    [30, 20, 30]
    """
    codes = factorise(groups)
    return codes, groups[first_rows(codes)]
