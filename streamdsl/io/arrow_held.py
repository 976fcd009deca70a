"""Columns of Arrow that stay what they are until somebody reads them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamdsl.engine.codes import integer_codes
from streamdsl.expr.held import AnyColumn, Column, Held, Rows, Source
from streamdsl.io.arrow_columns import arrow_values

_FEW = 64
"""Of so few rows the values are made at once."""


class ArrowSource(Source):
    """A chunked array.

    >>> held = Held(ArrowSource(pa.chunked_array([["a", None, "a"]])))
    >>> held.codes.tolist(), held[1:].tolist(), held.known()[1].tolist()
    ([0, 1, 0], [None, 'a'], ['a', None])
    """

    def __init__(self, array: Any) -> None:
        self.array = array
        self.size = len(array)

    def taken(self, rows: Rows | slice) -> Any:
        """Return some rows as a chunked array."""
        if not isinstance(rows, slice):
            return self.array.take(pa.array(rows))
        here = range(self.size)[rows]
        if here.step != 1:
            return self.array.take(pa.array(np.arange(self.size)[rows]))
        return self.array if len(here) == self.size else self.array.slice(here.start, len(here))

    def values(self, rows: Rows | slice) -> Column:
        if "_all" in self.__dict__ or isinstance(rows, slice):
            return self._all[rows]
        return arrow_values(self.taken(rows))

    @cached_property
    def _all(self) -> Column:
        return arrow_values(self.array)

    def codes(self) -> Rows:
        return self._encoded[0]

    @property
    def n_codes(self) -> int:
        return len(self._encoded[1])

    def coded(self, codes: Rows) -> Column:
        return arrow_values(pa.chunked_array([self._encoded[1].take(pa.array(codes))]))

    @cached_property
    def _encoded(self) -> tuple[Rows, Any]:
        """The codes, and the value of each as an array."""
        kind = self.array.type
        if pa.types.is_dictionary(kind):
            return _with_null(self.array.unify_dictionaries().combine_chunks())
        array = self.array.combine_chunks()
        if pa.types.is_floating(kind) and not array.null_count:
            codes, known = integer_codes(array.cast(pa.float64()).to_numpy().view(np.int64))
            return codes, pa.array(known.view(np.float64))
        encoded = array.dictionary_encode(null_encoding="encode")
        return encoded.indices.to_numpy(), encoded.dictionary


def _with_null(array: Any) -> tuple[Rows, Any]:
    """Return the codes of a dictionary array, and the values; what has no value has the null behind them."""
    codes, known = array.indices, array.dictionary
    if not codes.null_count:
        return codes.to_numpy(), known
    filled = codes.cast(pa.int64()).fill_null(len(known)).to_numpy()
    return filled, pa.concat_arrays([known, pa.nulls(1, known.type)])


def held_values(array: Any) -> AnyColumn:
    """Return a chunked array as payload values, held if it can be and is worth it: all values are known to be Python's.

    >>> type(held_values(pa.chunked_array([["a"] * 100]))).__name__, type(held_values(pa.chunked_array([[1] * 100]))).__name__
    ('Held', 'ndarray')
    """
    return Held(ArrowSource(array)) if len(array) >= _FEW and _can_be_held(array) else arrow_values(array)


def _can_be_held(array: Any) -> bool:
    is_dictionary = pa.types.is_dictionary(array.type)
    kind = array.type.value_type if is_dictionary else array.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return is_dictionary or bool(array.null_count)
    if _is_text(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return True
    return (pa.types.is_temporal(kind) or pa.types.is_decimal(kind)) and _is_in_range(array)


def _is_text(kind: Any) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(kind) for test in tests) or pa.types.is_fixed_size_binary(kind)


def _is_in_range(array: Any) -> bool:
    """Say whether Python has all of some dates or decimals: those between two that it has."""
    parts = [chunk.dictionary for chunk in array.chunks] if pa.types.is_dictionary(array.type) else [array]
    try:
        for part in parts:
            pc.min_max(part).as_py()
    except (ValueError, OverflowError, ArithmeticError, pa.ArrowException):
        return False
    return True
