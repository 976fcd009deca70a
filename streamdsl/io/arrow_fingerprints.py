"""Fingerprints of Arrow's values: integers by which they are known again, so that no Python object is made of one twice."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from streamdsl.expr.arrow import are_null, as_numpy
from streamdsl.expr.held import Column, Fingerprints
from streamdsl.expr.table import every, flatnonzero

_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_HALF: Final = np.uint64(32)
_LONGEST: Final = 256
"""Texts of so many bytes are worth it."""
_KEPT: Final = np.array([2 ** (8 * n) - 1 for n in range(9)], dtype=np.uint64)
"""What is left of eight bytes of which so many count."""


def fingerprints(array: Any) -> Fingerprints | None:
    """Return integers by which the values of an Arrow array are known again; None of other types than these.

    >>> found = fingerprints(pa.array(["a", None, "a"]))
    >>> first, null, again = found.integers.tolist()
    >>> found.kind, found.are_null.tolist(), first == again, null, found.texts is None
    ('string', [0, 1, 0], True, 0, False)
    """
    integers = bits(array)
    texts = array if integers is None and _is_text(array.type) else None
    if texts is not None:
        integers = _hashes(texts)
    if integers is None:
        return None
    nulls = are_null(array)
    return Fingerprints(_name(array.type), nulls.astype(np.int64), np.where(nulls, 0, integers), texts)


def bits(array: Any) -> Column | None:
    """Return values of Arrow as integers that say what they are, those of nulls mean nothing; None where not all have such.

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


def _is_text(kind: Any) -> bool:
    return any(
        test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    )


def _hashes(texts: Any) -> Column | None:
    """Return for each text a number that is mixed of its bytes, eight at a time; None where one is long."""
    _, offsets, data = texts.buffers()
    wide = pa.types.is_large_string(texts.type) or pa.types.is_large_binary(texts.type)
    starts = np.frombuffer(offsets, dtype=np.int64 if wide else np.int32)[texts.offset : texts.offset + len(texts) + 1]
    first, last = int(starts[0]), int(starts[-1])
    left = np.diff(starts).astype(np.int64)
    if left.max(initial=0) > _LONGEST:
        return None
    content = np.zeros(last - first + 8, dtype=np.uint8)
    if last > first:
        content[:-8] = np.frombuffer(data, dtype=np.uint8)[first:last]
    words = np.ndarray(len(content) - 7, dtype="<u8", buffer=content, strides=(1,))  # from each byte on
    at = starts[:-1].astype(np.int64) - first
    hashed = left.astype(np.uint64)
    rows: Any = slice(None)
    while len(at):
        mixed = hashed[rows] ^ (words[at] & _KEPT[np.minimum(left, 8)])
        mixed *= _FACTOR
        hashed[rows] = mixed ^ (mixed >> _HALF)
        at, left = at + 8, left - 8
        if not every(more := left > 0):
            kept = flatnonzero(more)
            at, left, rows = at[kept], left[kept], kept if isinstance(rows, slice) else rows[kept]
    return hashed.view(np.int64)
