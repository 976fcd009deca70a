"""Deferred columns over Arrow arrays, whose values become Python objects when they are read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from streamdsl.expr import kernel
from streamdsl.expr.arrow_buffers import are_null, as_arrow, as_numpy, surround
from streamdsl.expr.deferred import (
    MATERIALIZE_BELOW,
    AnyColumn,
    Codebook,
    Column,
    ColumnSource,
    DeferredColumn,
    Fingerprints,
    Rows,
)
from streamdsl.expr.encoding import NumericSource, integer_codes
from streamdsl.expr.table import every
from streamdsl.io.arrow_fingerprints import bits, bytes_of, fingerprints, is_text, of_bits
from streamdsl.io.arrow_ranks import ranks
from streamdsl.io.from_arrow import arrow_values

_SMALL: Final = 2**30
_FEW_ROWS: Final = 16
"""Rows per integer of a range from which each integer of the range gets a code, whether it occurs or not."""
_MOST: Final = 4
"""Dictionary values per row up to which a dictionary is kept; a larger one is decoded first."""

_FIRST, _LAST, _QUOTE, _BACKSLASH = b" ~'\\"
"""The first and the last printable character, and the two that `repr` escapes."""

_RANGED: Final = (pa.types.is_date, pa.types.is_timestamp, pa.types.is_time, pa.types.is_duration, pa.types.is_decimal)


class ArrowSource(ColumnSource):
    """The source of a deferred column over a chunked array; codes and dictionary are computed once, on first use.

    >>> held = DeferredColumn(ArrowSource(pa.chunked_array([["a", None, "a"]])))
    >>> held.codes.tolist(), held[1:].tolist(), held.encoded()[1].tolist()
    ([0, 1, 0], [None, 'a'], ['a', None])
    """

    def __init__(self, array: Any) -> None:
        self.array = array
        self.size = len(array)

    def values(self, rows: Rows | slice) -> Column:
        if isinstance(rows, slice) or "_all" in self.__dict__ or pa.types.is_dictionary(self.array.type):
            return self._all[rows]
        return arrow_values(self.array.take(as_arrow(rows)))

    @cached_property
    def _all(self) -> Column:
        return arrow_values(self.array)

    def codes(self) -> Rows:
        return self._encoded[0]

    @property
    def n_codes(self) -> int:
        return len(self._encoded[1])

    def decoded(self, codes: Rows) -> Column:
        return arrow_values(pa.chunked_array([self._taken(codes)]))

    def fingerprints(self, codes: Rows) -> Fingerprints | None:
        return fingerprints(self._taken(codes))

    @property
    def codebook(self) -> Codebook | None:
        if not pa.types.is_dictionary(self.array.type):
            return None
        values = [chunk.dictionary for chunk in self.array.chunks]
        places = {_place_of(each) for each in values}
        return Codebook(places.pop(), values[0], self.n_codes) if len(places) == 1 else None

    @property
    def is_coded(self) -> bool:
        return "_encoded" in self.__dict__ or pa.types.is_dictionary(self.array.type)

    def row_fingerprints(self) -> Fingerprints | None:
        return None if self.is_coded else fingerprints(self.array_of(slice(None)))

    def only(self, rows: Rows | slice) -> ArrowSource:
        return ArrowSource(pa.chunked_array([self.array_of(rows)]))

    def deferred_values(self, codes: Rows) -> ArrowSource | None:
        is_coded = pa.types.is_dictionary(self.array.type)  # a dictionary may hold a value twice
        array = None if is_coded else _as_python_has_it(self._taken(codes))
        return None if array is None else ArrowSource(pa.chunked_array([array]))

    @property
    def may_wait(self) -> bool:
        return not pa.types.is_dictionary(self.array.type)  # the chunks would have several dictionaries

    def followed_by(self, *others: ColumnSource) -> ColumnSource:
        held = [self, *(each for each in others if isinstance(each, ArrowSource) and each.array.type == self.array.type)]
        if len(held) > len(others):
            return ArrowSource(pa.chunked_array([chunk for each in held for chunk in each.array.chunks]))
        return super().followed_by(*others)

    def ranks(self, rows: Rows | slice) -> Column | None:
        return ranks(self.array_of(rows))

    def quoted(self, rows: Rows | slice, before: str, behind: str) -> Any:
        array = self.array_of(rows)
        return surround(before + "'", array, "'" + behind) if _is_simple(array) else None

    def array_of(self, rows: Rows | slice) -> Any:
        """Return some rows as one array."""
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(self.size)
            return self.array.slice(start, stop - start).combine_chunks()
        return self.array.take(as_arrow(rows)).combine_chunks()

    def _taken(self, codes: Rows) -> Any:
        """Return the values of codes as an Arrow array."""
        return self._encoded[1].take(as_arrow(codes))

    @cached_property
    def _encoded(self) -> tuple[Rows, Any]:
        """The code of each row, and the values of all codes as an Arrow array."""
        kind = self.array.type
        if pa.types.is_dictionary(kind):
            return _in_dictionaries(self.array.chunks, kind.value_type)
        array = self.array.combine_chunks()
        if (integers := bits(array) if self.size >= kernel.COMPILE_FROM else None) is not None:
            codes, known = _in_range(integers) or integer_codes(integers)
            if array.null_count:
                codes[are_null(array)] = len(known)
            values = of_bits(known, kind)
            return codes, pa.concat_arrays([values, pa.nulls(1, values.type)]) if array.null_count else values
        try:
            encoded = array.dictionary_encode(null_encoding="encode")
        except pa.ArrowNotImplementedError:  # each row gets its own code
            return np.arange(self.size), array
        return as_numpy(encoded.indices), encoded.dictionary

    def passed(self, rows: Rows | slice) -> Any:
        """Return rows as an Arrow array of texts; None for another type, and if all are null, as no type is known then."""
        if self.array.type != pa.string():
            return None
        found = self.array_of(rows)
        return None if found.null_count == len(found) else found


def _in_range(integers: Column) -> tuple[Rows, Column] | None:
    """Return integers of a narrow range as codes (the distance from the least), and the range; None for a wide range."""
    low, high = int(integers.min()), int(integers.max())
    return (integers - low, np.arange(low, high + 1)) if (high - low) * _FEW_ROWS < len(integers) else None


def _is_simple(array: Any) -> bool:
    """Say whether the `repr` of each value is the value itself in single quotes.

    >>> [_is_simple(pa.array(["a", text])) for text in ["~ b", "", "'", "\\\\", "\\n", "\\x7f", "é"]]
    [True, True, False, False, False, False, False]
    """
    if not pa.types.is_string(array.type) or array.null_count:
        return False
    content = bytes_of(array)
    is_printable = content.min(initial=_FIRST) >= _FIRST and content.max(initial=_FIRST) <= _LAST
    return bool(is_printable and not (content == _QUOTE).any() and not (content == _BACKSLASH).any())


def _as_python_has_it(array: Any) -> Any:
    """Return distinct values in the Arrow type of their Python values; None if two of them may be equal as keys."""
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_date32(kind):
        return array
    if pa.types.is_timestamp(kind):
        is_exact = kind.unit != "ns" and kind.tz in (None, "UTC")  # in other zones two moments are equal when clocks are set back
        return array.cast(pa.timestamp("us", kind.tz)) if is_exact else None
    if pa.types.is_decimal128(kind):
        return array if kind.scale >= 0 and bits(array) is not None else None
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        floats = array.cast(pa.float64())
        filled = as_numpy(floats)
        # NaNs may differ in their bits, zeros in their sign: equal keys with different fingerprints.
        return floats if every(filled == filled) and not (np.signbit(filled) & (filled == 0)).any() else None
    return array.cast(pa.int64()) if pa.types.is_integer(kind) and bits(array) is not None else None


def _in_dictionaries(chunks: Sequence[Any], kind: Any) -> tuple[Rows, Any]:
    """Return the codes of dictionary-encoded chunks, and the values of all their dictionaries, followed by a null."""
    first: dict[Any, int] = {}
    known: list[Any] = []
    codes = [np.empty(0, dtype=np.intp)]
    stop = sum(len(chunk.dictionary) for chunk in chunks)
    for chunk in chunks:
        place = _place_of(chunk.dictionary)
        if place not in first:
            first[place] = sum(map(len, known))
            known.append(chunk.dictionary)
        found = as_numpy(chunk.indices).astype(np.intp) + first[place]
        codes.append(np.where(are_null(chunk.indices), stop, found) if chunk.indices.null_count else found)
    missing = stop - sum(map(len, known))
    return np.concatenate(codes), pa.concat_arrays([*known, pa.nulls(missing + 1, kind)])


def _place_of(array: Any) -> tuple[Any, ...]:
    """Return the identity of an array in memory: its length, offset and the addresses of its buffers."""
    return (len(array), array.offset, *(None if buffer is None else buffer.address for buffer in array.buffers()))


def held_values(array: Any) -> AnyColumn:
    """Return a chunked array as payload values, deferred if each of its values certainly has an exact Python value.

    >>> type(held_values(pa.chunked_array([["a"] * 100]))).__name__, type(held_values(pa.chunked_array([[1] * 100]))).__name__
    ('DeferredColumn', 'ndarray')
    """
    if len(array) < MATERIALIZE_BELOW:
        return arrow_values(array)
    if pa.types.is_dictionary(array.type) and sum(len(chunk.dictionary) for chunk in array.chunks) > _MOST * len(array):
        return held_values(array.cast(array.type.value_type))  # few values of a large dictionary occur
    if _can_be_held(array):
        return DeferredColumn(ArrowSource(array))
    values = arrow_values(array)
    return DeferredColumn(NumericSource(values)) if values.dtype.kind == "i" and not _are_small(values) else values


def _are_small(integers: Column) -> bool:
    """Say whether integers can serve as codes directly, also as one of two parts of a composite key."""
    return int(integers.min()) >= 0 and int(integers.max()) < _SMALL


def _can_be_held(array: Any) -> bool:
    is_dictionary = pa.types.is_dictionary(array.type)
    kind = array.type.value_type if is_dictionary else array.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return is_dictionary or bool(array.null_count)
    if is_text(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return True
    return pa.types.is_decimal128(kind) or (any(test(kind) for test in _RANGED) and _is_in_range(array))


def _is_in_range(array: Any) -> bool:
    """Say whether Python can represent all dates or decimals of an array: it can if it can the least and the greatest."""
    import pyarrow.compute as pc

    parts = [chunk.dictionary for chunk in array.chunks] if pa.types.is_dictionary(array.type) else [array]
    try:
        for part in parts:
            pc.min_max(part).as_py()
    except (ValueError, OverflowError, ArithmeticError, pa.ArrowException):
        return False
    return True
