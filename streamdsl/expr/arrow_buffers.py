"""Numbers and texts between numpy and Arrow, as they lie in memory.

Arrow's own ways (`pyarrow.array`, `pyarrow.scalar`, `to_numpy`) first import pandas, to tell its objects from others: that would
be most of what a first run over an Arrow table costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from streamdsl.expr.table import Column, object_column

_PANDAS_FROM: Final = 2**16
"""With more texts than this, the import of pandas pays off: Arrow then makes one object of equal texts."""
_MAX_BYTES: Final = 2**31 - 1
"""The most bytes that one array of texts can have: its offsets are int32."""


def as_arrow(numbers: Column, are_null: NDArray[np.bool_] | None = None) -> Any:
    """Return integers, floats or booleans as an Arrow array, which shares the memory of numbers.

    >>> as_arrow(np.array([1.5, 2.5]), np.array([False, True])).to_pylist()
    [1.5, None]
    """
    import pyarrow as pa

    valid = None if are_null is None else pa.py_buffer(np.packbits(~are_null, bitorder="little"))
    values = pa.py_buffer(np.packbits(numbers, bitorder="little") if numbers.dtype == np.bool_ else np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), [valid, values])


def as_numpy(array: Any) -> Column:
    """Return an array or a chunked array of integers, floats, times or booleans as numpy's; times are integers, a null is 0.

    What is not copied cannot be written to.

    >>> import pyarrow as pa
    >>> as_numpy(pa.chunked_array([[3, None], [5]])).tolist(), as_numpy(pa.array([True, None])).tolist()
    ([3, 0, 5], [True, False])
    """
    if hasattr(array, "chunks"):
        chunks = [as_numpy(chunk) for chunk in array.chunks]
        return chunks[0] if len(chunks) == 1 else np.concatenate(chunks) if chunks else as_numpy(array.combine_chunks())
    kind, start, stop = array.type, array.offset, array.offset + len(array)
    valid, values = array.buffers()
    if values is None or not len(array):
        return np.zeros(len(array), dtype=_dtype(kind))
    if kind.bit_width == 1:
        found: Column = _bits(values, start, stop)
    else:
        found = np.frombuffer(values, dtype=_dtype(kind))[start:stop]
        found.flags.writeable = False
    return np.where(_bits(valid, start, stop), found, found.dtype.type(0)) if array.null_count else found


def are_null(array: Any) -> NDArray[np.bool_]:
    """Say which values of an array or a chunked array are null.

    >>> import pyarrow as pa
    >>> are_null(pa.array([None, "a"])[1:]).tolist(), are_null(pa.chunked_array([["a", None]])).tolist()
    ([False], [False, True])
    """
    if hasattr(array, "chunks"):
        return np.concatenate([np.zeros(0, dtype=np.bool_), *map(are_null, array.chunks)])
    if not array.null_count:
        return np.zeros(len(array), dtype=np.bool_)
    valid = array.buffers()[0]
    return np.ones(len(array), dtype=np.bool_) if valid is None else ~_bits(valid, array.offset, array.offset + len(array))


def _bits(buffer: Any, start: int, stop: int) -> NDArray[np.bool_]:
    packed = np.frombuffer(buffer, dtype=np.uint8)[start // 8 : -(-stop // 8)]
    return np.unpackbits(packed, bitorder="little").view(np.bool_)[start % 8 :][: stop - start]


def _dtype(kind: Any) -> Any:
    name = str(kind)
    return np.dtype(_DTYPES.get(name) or (name if "int" in name else f"int{kind.bit_width}"))


_DTYPES: Final = {"bool": "bool", "halffloat": "float16", "float": "float32", "double": "float64"}


def text_array(texts: Sequence[str | None]) -> Any:
    """Return texts as an Arrow array, or as some where they are too long for one. Raises `ValueError` for what is no Unicode.

    >>> text_array(["a", None, "bc"]).to_pylist()
    ['a', None, 'bc']
    """
    import pyarrow as pa

    known, valid = cast(Sequence[str], texts), None
    if None in texts:
        known = [text or "" for text in texts]
        valid = pa.py_buffer(np.packbits([text is not None for text in texts], bitorder="little"))
    content = "".join(known).encode()
    parts: Sequence[str | bytes] = known if content.isascii() else [text.encode() for text in known]
    if len(content) > _MAX_BYTES:
        return pa.array(texts, pa.string())
    stops = np.zeros(len(parts) + 1, dtype=np.int32)
    np.cumsum(np.fromiter(map(len, parts), dtype=np.int32, count=len(parts)), out=stops[1:])
    return pa.Array.from_buffers(pa.string(), len(parts), [valid, pa.py_buffer(stops), pa.py_buffer(content)])


def surround(before: str, texts: Any, behind: str) -> Any:
    """Return the texts of an array, each between two others.

    >>> import pyarrow as pa
    >>> surround("<", pa.array(["a", "bc"]), ">").to_pylist()
    ['<a>', '<bc>']
    """
    import pyarrow.compute as pc

    first, last, nothing = text_array([before, behind, ""])
    return pc.binary_join_element_wise(first, texts, last, nothing)


def text_values(array: Any) -> Column:
    """Return the texts of an array or a chunked array, and None for nulls.

    >>> import pyarrow as pa
    >>> text_values(pa.chunked_array([["a", None], ["bc"]])).tolist()
    ['a', None, 'bc']
    """
    if len(array) > _PANDAS_FROM:
        texts: Column = array.to_numpy(zero_copy_only=False)
        return texts
    chunks = array.chunks if hasattr(array, "chunks") else [array]
    return object_column([text for chunk in chunks for text in _texts(chunk)])


def _texts(array: Any) -> list[str | None]:
    _, offsets, content = array.buffers()
    if offsets is None or not len(array):
        return [None] * len(array)
    kind = np.int32 if str(array.type) == "string" else np.int64
    stops = np.frombuffer(offsets, dtype=kind)[array.offset : array.offset + len(array) + 1].tolist()
    within = b"" if content is None else content[stops[0] : stops[-1]].to_pybytes()
    first, all_texts = stops[0], within.decode()
    cuts = pairwise(stops)
    if len(all_texts) == len(within):
        found: list[str | None] = [all_texts[start - first : stop - first] for start, stop in cuts]
    else:
        found = [within[start - first : stop - first].decode() for start, stop in cuts]
    for place in np.flatnonzero(are_null(array)).tolist():
        found[place] = None
    return found
