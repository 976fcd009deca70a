"""Arrow values as the integers and bytes that they are in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from streamdsl.expr.arrow_buffers import as_arrow, as_numpy
from streamdsl.expr.deferred import Column


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


def is_text(kind: Any) -> bool:
    """Say whether a type is text or bytes in the layout with offsets."""
    return any(
        test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    )


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
