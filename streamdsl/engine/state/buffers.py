"""JSON with arrays beside it, as bytes: numbers go out and come in at the speed of columns."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.errors import CheckpointError
from streamdsl.temporal.json_text import loads

_FEW: Final = 16
"""So many numbers stand in the JSON; more are an array."""
_ALIGNED: Final = 8
Data: TypeAlias = bytes | memoryview
_NARROW: Final = (np.int8, np.int16, np.int32, np.int64)
_PLAIN: Final = re.compile(r"[<>|=]?(?:[biufcSU]\d{1,9}|[mM]8(?:\[\d*[A-Za-z]{1,2}\])?)")
"""The types of arrays that are written: numbers, times and text of a fixed length, never objects."""
_WORTH: Final = 8
"""So many values may be made of one byte of a section, so that what is read is not much larger than what is stored."""


class Writing:
    """Arrays that stand beside a JSON text; `put` says in the text where one is.

    >>> writing = Writing()
    >>> found = {"few": writing.numbers([7, 8]), "many": writing.put(np.arange(3.0))}
    >>> text, reading = parsed(b"".join(writing.parts(found)))
    >>> reading.numbers(text["few"], 2).tolist(), reading.get(text["many"])
    ([7, 8], array([0., 1., 2.]))
    """

    def __init__(self) -> None:
        self._parts: list[Data] = []
        self._size = 0
        self._charged = 0

    def charge(self, values: int) -> None:
        """Say that so many values will be made of what is written."""
        self._charged += values

    def put(self, array: NDArray[Any]) -> list[Any]:
        """Add an array of a plain type, and return where it is."""
        plain_dtype(array.dtype.str)
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
        """Return a value of JSON, and all arrays, as bytes in parts; so many that the values that were charged are covered."""
        if (lacking := -(-self._charged // _WORTH) - self._size) > 0:
            self.put_parts([bytes(lacking)])
        text = json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
        text += b" " * (-len(text) % _ALIGNED)
        return [len(text).to_bytes(_ALIGNED, "little"), text, *self._parts]


class Reading:
    """The arrays that stand beside a JSON text; whatever the text says of them, nothing is read or made that is not there."""

    def __init__(self, data: memoryview, size: int) -> None:
        self._data = data
        self._left = _WORTH * size

    def charge(self, values: int) -> None:
        """Say that so many values are made; raises `CheckpointError` where the bytes cannot be worth that."""
        self._left -= values
        if values < 0 or self._left < 0:
            raise CheckpointError("it says that it holds more values than it has bytes for")

    def get(self, place: Sequence[Any]) -> NDArray[Any]:
        """Return an array of its own."""
        kind, start, size = place
        return np.frombuffer(self.view(start, size), dtype=plain_dtype(kind)).copy()

    def view(self, start: int, size: int) -> memoryview:
        """Return bytes where they are."""
        if not (type(start) is type(size) is int and 0 <= start <= start + size <= len(self._data)):
            raise CheckpointError(f"it refers to bytes that it has not, {size} at {start}")
        return self._data[start : start + size]

    def get_bytes(self, place: Sequence[int]) -> bytes:
        """Return bytes."""
        return bytes(self.view(*place))

    def numbers(self, found: Any, size: int | None = None, below: int | None = None) -> NDArray[np.int64]:
        """Return integers that `Writing.numbers` has added: so many, and where `below` is given, none outside [0, below)."""
        if found[:1] == ["@"]:
            kind, start, length = found[1:]
            array = self.get((kind, start, length))
            if array.dtype.kind != "i":
                raise CheckpointError(f"it has {array.dtype} where integers must be")
            array = array.astype(np.int64)
        else:
            array = np.array(checked(found, int), dtype=np.int64)
        if size is not None and len(array) != size:
            raise CheckpointError(f"it has {len(array)} numbers where {size} must be")
        if below is not None and len(array) and not 0 <= array.min() <= array.max() < below:
            raise CheckpointError(f"it has a number that is not in [0, {below})")
        return array

    def sizes(self, found: Any, size: int) -> list[int]:
        """Return how many values each of so many objects holds."""
        lengths: list[int] = self.numbers(found, size, below=self._left + 1).tolist()
        return lengths


def plain_dtype(kind: Any) -> np.dtype[Any]:
    """Return the type of an array that has a name; raises `CheckpointError` for one that is never written."""
    if type(kind) is not str or not _PLAIN.fullmatch(kind):
        raise CheckpointError(f"it holds an array of {kind!r:.80}")
    return np.dtype(kind)


def checked(found: Any, kind: type) -> list[Any]:
    """Return a list of JSON if all its items are of a type; else raise `CheckpointError`."""
    if type(found) is not list or not set(map(type, found)) <= {kind}:
        raise CheckpointError(f"it has something else where a list of {kind.__name__} must be")
    return found


def parsed(data: bytes | memoryview) -> tuple[Any, Reading]:
    """Return the value of JSON that `Writing.parts` has written, and the arrays beside it."""
    view = memoryview(data)
    size = int.from_bytes(view[:_ALIGNED], "little")
    if size > len(view) - _ALIGNED:
        raise CheckpointError("it is cut off")
    text = bytes(view[_ALIGNED : _ALIGNED + size]).decode("utf-8", "surrogatepass")
    return loads(text), Reading(view[_ALIGNED + size :], len(view))
