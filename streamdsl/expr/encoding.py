"""Dictionary encoding: a small integer code for each of many values, the same for equal values."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamdsl.expr import kernel
from streamdsl.expr.arrow_buffers import as_arrow, as_numpy
from streamdsl.expr.deferred import Column, ColumnSource, EncodedSource, Rows, dense_codes
from streamdsl.temporal.time import Ticks

_TABLE_SIZE: Final = 2**16
"""The first size of a hash table; few distinct values then fit into the processor's cache."""


class NumericSource(ColumnSource):
    """A column of integers, floats or bools, which is encoded when its codes are first read."""

    def __init__(self, column: Column) -> None:
        self.size = len(column)
        self._column = column

    def values(self, rows: Rows | slice) -> Column:
        return self._column[rows]

    @cached_property
    def _encoded_source(self) -> EncodedSource:
        return dictionary_encode(self._column)

    @property
    def has_codes(self) -> bool:
        """Whether the column has been encoded."""
        return "_encoded_source" in self.__dict__

    def codes(self) -> Rows:
        return self._encoded_source.codes()

    def decoded(self, codes: Rows) -> Column:
        return self._encoded_source.decoded(codes)

    @property
    def n_codes(self) -> int:
        return self._encoded_source.n_codes


class ComputedSource(ColumnSource):
    """A source given by two functions: `encode` computes the codes of all rows, `make` the values of some.

    >>> from streamdsl.expr.deferred import DeferredColumn
    >>> texts = ["b", "a", "b"]
    >>> source = ComputedSource(3, lambda: np.array([1, 0, 1]), lambda rows: np.array(texts, dtype=object)[rows])
    >>> DeferredColumn(source).encoded()[1].tolist(), DeferredColumn(source)[1:].tolist()
    (['a', 'b'], ['a', 'b'])
    """

    def __init__(self, size: int, encode: Callable[[], Rows], make: Callable[[Rows | slice], Column]) -> None:
        self.size = size
        self._encode = encode
        self._make = make

    def values(self, rows: Rows | slice) -> Column:
        return self._all[rows] if "_all" in self.__dict__ or isinstance(rows, slice) else self._make(rows)

    @cached_property
    def _all(self) -> Column:
        return self._make(slice(None))

    @cached_property
    def _encoded(self) -> tuple[Rows, Rows]:
        """The codes, and a row of each."""
        codes = self._encode()
        rows = np.zeros(int(codes.max(initial=-1)) + 1, dtype=np.intp)
        rows[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
        return codes, rows

    def codes(self) -> Rows:
        return self._encoded[0]

    def decoded(self, codes: Rows) -> Column:
        return self._make(self._encoded[1][codes])

    @property
    def n_codes(self) -> int:
        return len(self._encoded[1])


def dictionary_encode(column: Column) -> EncodedSource:
    """Return integers, floats or bools dictionary-encoded; floats are distinguished by their bits, so 0.0 and -0.0 differ.

    >>> codes = dictionary_encode(np.array([0.0, -0.0, 0.0])).codes()
    >>> bool(codes[0] == codes[2] != codes[1])
    True
    """
    codes, known = integer_codes(column.astype(np.int64) if column.dtype.kind == "b" else column.view(np.int64))
    return EncodedSource(codes, known.astype(np.bool_) if column.dtype.kind == "b" else known.view(column.dtype))


def integer_codes(values: Ticks) -> tuple[Rows, Ticks]:
    """Return a code for each integer, and the integer of each code.

    Integers from a small range are encoded by an array over the range, others by hashing if they are many, else by sorting.

    >>> codes, known = integer_codes(np.array([2**60, 5, 2**60]))
    >>> known[codes].tolist(), len(known)
    ([1152921504606846976, 5, 1152921504606846976], 2)
    """
    if not len(values):
        return values.astype(np.intp), values
    low, high = int(values.min()), int(values.max())
    if high - low < len(values) + 1024:
        codes, used = dense_codes(values - low, high - low + 1)
        return codes, used + low
    hashed = _encode_by_hash(values) if len(values) >= kernel.COMPILE_FROM else None
    return _encode_by_sort(values) if hashed is None else hashed


def ordered_codes(values: Ticks) -> tuple[Rows, Ticks]:
    """Return what `integer_codes` does; the codes have the order of the integers.

    >>> ordered_codes(np.array([2**60, 5, 2**60]))[0].tolist()
    [1, 0, 1]
    """
    codes, known = integer_codes(values)
    if (known[1:] >= known[:-1]).all():
        return codes, known
    order = np.argsort(known)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return ranks[codes], known[order]


def _encode_by_hash(values: Ticks) -> tuple[Rows, Ticks] | None:
    """Return what `integer_codes` does, in order of first appearance; None if neither numba nor Arrow is loaded."""
    coder = INTEGER_ENCODER.over(len(values))
    if coder is not None:
        codes, size, number = np.empty(len(values), dtype=np.intp), _TABLE_SIZE, -1
        while number < 0:
            found = np.empty(size // 2, dtype=np.int64)
            number = coder(values, np.full(size, -1, dtype=np.int32), found, codes)
            size *= 8
        return codes, found[:number].copy()
    if "pyarrow" not in sys.modules:
        return None
    encoded = as_arrow(values).dictionary_encode()
    return as_numpy(encoded.indices).astype(np.intp), as_numpy(encoded.dictionary)


def _encode_by_sort(values: Ticks) -> tuple[Rows, Ticks]:
    order = np.argsort(values)
    ordered = values[order]
    is_first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    codes = np.empty(len(values), dtype=np.intp)
    codes[order] = np.cumsum(is_first) - 1
    return codes, ordered[is_first.nonzero()[0]]


def encode_integers(values: Ticks, table: NDArray[np.int32], found: Ticks, codes: Rows) -> int:
    """Write a code for each integer, in order of first appearance, and each code's integer into `found`; return how many.

    `table` is an open-addressing hash table: full of -1, its length a power of two. The result is -1 if it is too small: at least
    half of it must stay empty.

    >>> found, codes = np.zeros(4, dtype=np.int64), np.zeros(3, dtype=np.intp)
    >>> encode_integers(np.array([70, 50, 70]), np.full(8, -1, dtype=np.int32), found, codes)
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
            if number == len(found):
                return -1
            table[place] = number
            found[number] = value
            number += 1
        codes[row] = table[place]
    return number


INTEGER_ENCODER: Final = kernel.Kernel(encode_integers)
