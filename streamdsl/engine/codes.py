"""Codes: small numbers for values, equal where the values are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from functools import reduce

import numpy as np

from streamdsl.engine.pairs import distinct_pairs
from streamdsl.expr.deferred import AnyColumn, DeferredColumn, parts_of
from streamdsl.expr.encoding import integer_codes
from streamdsl.expr.nested import is_nested, rows_in, with_nulls
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


def payload_codes(payloads: AnyColumn) -> Rows:
    """Return what `factorise` does, of values that may be rows of a table.

    >>> from streamdsl.expr.nested import nested
    >>> from streamdsl.expr.table import Table
    >>> payload_codes(nested(Table.from_payloads([(1, "a"), (1, "b"), (1.0, "a")]))).tolist()
    [0, 1, 0]
    """
    if (found := with_nulls(payloads)) is not None:
        known, places = found
        return np.where(places >= 0, np.append(payload_codes(known) + 1, 0)[places], 0)
    if not is_nested(payloads):
        return factorise(payloads.column if isinstance(payloads, DeferredColumn) else payloads)
    table = rows_in(payloads)
    each = map(payload_codes, parts_of(table.columns).values())
    return reduce(lambda codes, other: distinct_pairs(codes, other).index, each, np.zeros(table.size, dtype=np.intp))


def hashed_codes(values: Sequence[Hashable]) -> Rows:
    """Return a number for every value, in order of first appearance."""
    numbers: defaultdict[Hashable, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return np.fromiter(map(numbers.__getitem__, values), dtype=np.intp, count=len(values))
