"""Codes: small numbers for values, equal where the values are."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np

from streamdsl.engine.columnar.kernels import MANY, integer_coder
from streamdsl.expr.held import Coded
from streamdsl.expr.table import Column, Rows, flatnonzero
from streamdsl.temporal.payload import payload_key
from streamdsl.temporal.time import Ticks


def factorise(column: Column) -> Rows:
    """Return a small number for every value, equal where the values are; each number up to the largest is some row's.

    >>> codes = factorise(np.array([7, 5, 7]))
    >>> bool(codes[0] == codes[2] != codes[1])
    True
    """
    if column.dtype.kind in "bi":
        return integer_codes(column.astype(np.int64, copy=False))[0]
    values = column.tolist()
    if not set(map(type, values)) <= {str, int, bool, type(None)}:
        values = list(map(payload_key, values))
    return hashed_codes(values)


def hashed_codes(values: Sequence[Hashable]) -> Rows:
    """Return a number for every value, in order of first appearance."""
    numbers: defaultdict[Hashable, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return np.fromiter(map(numbers.__getitem__, values), dtype=np.intp, count=len(values))


def coded(column: Column) -> Coded:
    """Return integers, floats or bools as codes: of floats each that has bits of its own has a code of its own.

    >>> coded(np.array([0.0, -0.0, 0.0])).codes().tolist()
    [0, 1, 0]
    """
    codes, known = integer_codes(column.astype(np.int64) if column.dtype.kind == "b" else column.view(np.int64))
    return Coded(codes, known.astype(np.bool_) if column.dtype.kind == "b" else known.view(column.dtype))


def integer_codes(values: Ticks) -> tuple[Rows, Ticks]:
    """Return a small number for each integer, equal where they are, and the integer of each number.

    Many are hashed. Few are marked in an array where they lie close together, else sorted.

    >>> codes, known = integer_codes(np.array([2**60, 5, 2**60]))
    >>> known[codes].tolist(), len(known)
    ([1152921504606846976, 5, 1152921504606846976], 2)
    """
    if not len(values):
        return values.astype(np.intp), values
    hashed = _hashed(values) if len(values) >= MANY else None
    if hashed is not None:
        return hashed
    low, high = int(values.min()), int(values.max())
    return _marked(values - low, high - low + 1, low) if high - low <= 4 * len(values) + 1024 else _sorted(values)


def _marked(places: Ticks, size: int, low: int) -> tuple[Rows, Ticks]:
    used = np.zeros(size, dtype=np.intp)
    used[places] = 1
    found = flatnonzero(used)
    used[found] = np.arange(len(found))
    return used[places], found + low


def _hashed(values: Ticks) -> tuple[Rows, Ticks] | None:
    """Return what `integer_codes` does, in order of first appearance; None where nothing that hashes is there."""
    coder = integer_coder()
    if coder is not None:
        table = np.full(2 << len(values).bit_length(), -1, dtype=np.int32)
        found, codes = np.empty(len(values), dtype=np.int64), np.empty(len(values), dtype=np.intp)
        return codes, found[: coder(values, table, found, codes)].copy()
    if (arrow := sys.modules.get("pyarrow")) is None:
        return None
    encoded = arrow.array(values).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.intp), encoded.dictionary.to_numpy()


def _sorted(values: Ticks) -> tuple[Rows, Ticks]:
    order = np.argsort(values)
    ordered = values[order]
    is_first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    codes = np.empty(len(values), dtype=np.intp)
    codes[order] = np.cumsum(is_first) - 1
    return codes, ordered[flatnonzero(is_first)]
