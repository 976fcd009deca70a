"""Fingerprints of Arrow values: integers that identify values, so that each value becomes a Python object only once."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamdsl.expr.arrow_buffers import are_null, as_arrow, as_numpy
from streamdsl.expr.deferred import Column, Fingerprints
from streamdsl.expr.table import every, flatnonzero

_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_HALF: Final = np.uint64(32)
_WORD: Final = 8
_BYTE_MASKS: Final = np.array([*((1 << 8 * n) - 1 for n in range(8)), -1])
"""By n, the mask that keeps the first n of eight bytes."""
_LONGEST: Final = 256
"""The most bytes of a text that is hashed: an array with a longer one has no fingerprints."""


def fingerprints(array: Any) -> Fingerprints | None:
    """Return the fingerprints of an Arrow array's values; None for a type that has none.

    >>> found = fingerprints(pa.array(["a", None, "a"]))
    >>> first, null, again = found.integers.tolist()
    >>> found.kind, found.are_null.tolist(), first == again, null, found.texts is None
    ('string', [0, 1, 0], True, 0, False)
    """
    integers = bits(array)
    texts = array if integers is None and is_text(array.type) else None
    if texts is not None:
        integers = _hashes(texts)
    if integers is None:
        return None
    nulls = are_null(array)
    return Fingerprints(_name(array.type), nulls.astype(np.int64), np.where(nulls, 0, integers), texts)


def bits(array: Any) -> Column | None:
    """Return values as integers that identify them (anything at nulls); None if a value or the type has no such integer.

    >>> from datetime import date
    >>> bits(pa.array([date(1970, 1, 3)])).tolist(), bits(pa.array([2**63], pa.uint64())), bits(pa.array(["a"]))
    ([2], None, None)
    """
    kind = array.type
    if pa.types.is_decimal128(kind):
        halves = np.frombuffer(array.buffers()[1], dtype=np.int64)[2 * array.offset : 2 * (array.offset + len(array))]
        return halves[::2].copy() if (halves[1::2] == halves[::2] >> 63).all() else None
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return as_numpy(array.cast(pa.float64())).view(np.int64)
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        array = array.view(pa.int32())
    elif pa.types.is_temporal(kind):
        array = array.view(pa.int64()) if kind.bit_width == 64 else array
    if not pa.types.is_integer(array.type):
        return None
    try:
        return as_numpy(array.cast(pa.int64()))
    except pa.ArrowInvalid:
        return None


def _name(kind: Any) -> str:
    return "int" if pa.types.is_integer(kind) else "float" if pa.types.is_floating(kind) else str(kind)


def is_text(kind: Any) -> bool:
    """Say whether a type is text or bytes in the layout with offsets."""
    return any(
        test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    )


def content_of(array: Any) -> tuple[Column, Column]:
    """Return the offsets of an array's texts, and for each byte the word of eight bytes that begins there, padded with zeros.

    >>> stops, words = content_of(pa.array(["x", "ab", "c"])[1:])
    >>> stops.tolist(), words[0].tobytes()[:4]
    ([0, 2, 3], b'abc\\x00')
    """
    stops, found = _stops_of(array), bytes_of(array)
    content = np.empty(len(found) + _WORD, dtype=np.uint8)
    content[:-_WORD] = found
    content[-_WORD:] = 0
    words = np.ndarray(len(content) - _WORD + 1, dtype="<i8", buffer=content, strides=(1,))
    return stops - stops[0] if stops[0] else stops, words


def bytes_of(array: Any) -> Column:
    """Return the bytes of an array's texts, concatenated.

    >>> bytes_of(pa.array(["x", "ab", "c"])[1:]).tobytes(), len(bytes_of(pa.array([""])))
    (b'abc', 0)
    """
    first, last = _stops_of(array)[[0, -1]].tolist() if len(array) else (0, 0)
    return np.frombuffer(array.buffers()[2], dtype=np.uint8)[first:last] if last > first else np.empty(0, dtype=np.uint8)


def _stops_of(array: Any) -> Column:
    """Return the offsets of an array's texts in its data buffer: one per text, and the end of the last one."""
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    stops: Column = np.frombuffer(array.buffers()[1], dtype=np.int64 if wide else np.int32)
    return stops[array.offset : array.offset + len(array) + 1]


def _hashes(array: Any) -> Column | None:
    """Return a hash of each text, computed word by word; None if a text is longer than `_LONGEST`."""
    stops, following = content_of(array)
    at, left = stops[:-1].astype(np.int64), np.diff(stops.astype(np.int64))
    if left.max(initial=0) > _LONGEST:
        return None
    hashed = left.astype(np.uint64)
    rows: Any = slice(None)
    while len(at):
        words = following[at] & _BYTE_MASKS[np.minimum(left, _WORD)]
        mixed = hashed[rows] ^ words.view(np.uint64)
        mixed *= _FACTOR
        hashed[rows] = mixed ^ (mixed >> _HALF)
        at, left = at + _WORD, left - _WORD
        if not every(more := left > 0):
            kept = flatnonzero(more)
            at, left, rows = at[kept], left[kept], kept if isinstance(rows, slice) else rows[kept]
    return hashed.view(np.int64)


def are_same(texts: Any, others: Any) -> NDArray[np.bool_]:
    """Say for each text whether it equals the other one; nulls are equal to each other, and as good as any text.

    >>> are_same(pa.array(["a", "b", None]), pa.array(["b", "b", None])).tolist()
    [False, True, True]
    """
    same = pc.equal(texts, others)
    return as_numpy(same).view(np.bool_) | are_null(same)


def of_bits(integers: Column, kind: Any) -> Any:
    """Return an array of the type from the integers of its values: the inverse of `bits`.

    >>> of_bits(np.array([2]), pa.date32()).to_pylist(), of_bits(np.array([-105]), pa.decimal128(4, 2)).to_pylist()
    ([datetime.date(1970, 1, 3)], [Decimal('-1.05')])
    """
    if pa.types.is_decimal128(kind):
        halves = np.stack([integers, integers >> 63], axis=1)
        return pa.Array.from_buffers(kind, len(integers), [None, pa.py_buffer(halves)])
    if pa.types.is_floating(kind):
        return as_arrow(integers.view(np.float64)).cast(kind)
    array = as_arrow(integers)
    return array.cast(pa.int32()).view(kind) if kind.bit_width == 32 and pa.types.is_temporal(kind) else _as_integers(array, kind)


def _as_integers(array: Any, kind: Any) -> Any:
    return array.view(kind) if pa.types.is_temporal(kind) else array.cast(kind)
