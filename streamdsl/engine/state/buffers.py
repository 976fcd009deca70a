"""JSON with arrays beside it, as bytes: numbers go out and come in at the speed of columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

_FEW: Final = 16
"""So many numbers stand in the JSON; more are an array."""
_ALIGNED: Final = 8
Data: TypeAlias = bytes | memoryview
_NARROW: Final = (np.int8, np.int16, np.int32, np.int64)


class Writing:
    """Arrays that stand beside a JSON text; `put` says in the text where one is.

    >>> writing = Writing()
    >>> found = {"few": writing.numbers([7, 8]), "many": writing.put(np.arange(3.0))}
    >>> text, reading = parsed(b"".join(writing.parts(found)))
    >>> reading.numbers(text["few"]).tolist(), reading.get(text["many"])
    ([7, 8], array([0., 1., 2.]))
    """

    def __init__(self) -> None:
        self._parts: list[Data] = []
        self._size = 0

    def put(self, array: NDArray[Any]) -> list[Any]:
        """Add an array of a plain type, and return where it is."""
        flat = np.ascontiguousarray(array).reshape(-1)
        return [array.dtype.str, *self.put_parts([flat.view(np.uint8).data] if flat.size else [])]

    def put_parts(self, parts: Sequence[Data]) -> list[int]:
        """Add bytes in parts, which are not copied yet, and return where they are."""
        size = sum(map(len, parts))
        padding = -size % _ALIGNED
        place = [self._size, size]
        self._parts += [*parts, bytes(padding)] if padding else parts
        self._size += size + padding
        return place

    def numbers(self, integers: Sequence[int] | NDArray[Any]) -> list[Any]:
        """Add integers of int64: a few in the JSON, more as an array of the narrowest type."""
        if len(integers) < _FEW:
            return list(map(int, integers))
        array = np.fromiter(integers, dtype=np.int64, count=len(integers))
        low, high = int(array.min()), int(array.max())
        kind = next(kind for kind in _NARROW if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
        return ["@", *self.put(array.astype(kind))]

    def parts(self, found: Any) -> list[Data]:
        """Return a value of JSON, and all arrays, as bytes in parts."""
        text = json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
        text += b" " * (-len(text) % _ALIGNED)
        return [len(text).to_bytes(_ALIGNED, "little"), text, *self._parts]


class Reading:
    """The arrays that stand beside a JSON text."""

    def __init__(self, data: memoryview) -> None:
        self._data = data

    def get(self, place: Sequence[Any]) -> NDArray[Any]:
        """Return an array of its own."""
        kind, start, size = place
        return np.frombuffer(self._data[start : start + size], dtype=np.dtype(kind)).copy()

    def view(self, start: int, size: int) -> memoryview:
        """Return bytes where they are."""
        return self._data[start : start + size]

    def get_bytes(self, place: Sequence[int]) -> bytes:
        """Return bytes."""
        return bytes(self.view(*place))

    def numbers(self, found: list[Any]) -> NDArray[np.int64]:
        """Return integers that `Writing.numbers` has added."""
        if found[:1] == ["@"]:
            return self.get(found[1:]).astype(np.int64)
        return np.array(found, dtype=np.int64)


def parsed(data: bytes | memoryview) -> tuple[Any, Reading]:
    """Return the value of JSON that `Writing.parts` has written, and the arrays beside it."""
    view = memoryview(data)
    size = int.from_bytes(view[:_ALIGNED], "little")
    text = bytes(view[_ALIGNED : _ALIGNED + size]).decode("utf-8", "surrogatepass")
    return json.loads(text), Reading(view[_ALIGNED + size :])
