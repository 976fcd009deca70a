"""The memory of a running query, measured by walking its objects: a formula for each operator could forget something."""

from __future__ import annotations

import enum
import gc
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain
from types import BuiltinFunctionType, CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any, Final

import numpy as np

from streamdsl.engine.state.external import is_configuration

_MANY: Final = 64
"""A larger collection is measured by a sample of this many items."""
_CODE: Final = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType, MappingProxyType, enum.Enum)
_PER_ITEM: Final[dict[type, tuple[int, int]]] = {
    list: (56, 8),
    tuple: (40, 8),
    dict: (64, 48),
    set: (216, 48),
    frozenset: (216, 48),
    deque: (624, 8),
}
"""The bytes of a collection, and of each item. Spare capacity is left out, so that equal contents have equal sizes."""


class MemoryMeter:
    """Counts the bytes of objects, each object once. Objects that are `known` are not counted.

    >>> held = MemoryMeter()
    >>> row = ("a" * 1000, [1.5] * 100)
    >>> 1000 < held.bytes_of([row]) < 3000, held.bytes_of([row])
    (True, 0)
    >>> 0.5 < MemoryMeter().bytes_of([list(map(float, range(10**5)))]) / 3_300_000 < 2
    True
    """

    def __init__(self, known: Iterable[Any] = ()) -> None:
        self._seen = set(map(id, known))

    def bytes_of(self, values: Iterable[Any]) -> int:
        """Return the bytes of values and of all that they refer to, except what belongs to the query."""
        found, open_ = 0, list(values)
        while open_:
            value = open_.pop()
            if id(value) in self._seen:
                continue
            self._seen.add(id(value))
            cls: Any = type(value)
            if cls in (int, float, str, bytes, bool, type(None)):
                found += sys.getsizeof(value)
                continue
            if issubclass(cls, _CODE) or (cls is not tuple and cls is not list and is_configuration(value)):
                continue
            if isinstance(value, np.ndarray):
                found += 112 + (value.nbytes if value.base is None else 0)
                # None says nothing about the size of the other objects.
                parts: Any = [each for each in value.ravel().tolist() if each is not None] if value.dtype == object else ()
                open_ += [] if value.base is None else [value.base]
            else:
                size, each = _PER_ITEM.get(cls, (0, 0))
                found += size + each * len(value) if size else sys.getsizeof(value)
                # From Python 3.13 on, gc.get_referents omits an object's own dictionary.
                parts = list(chain.from_iterable(value.items())) if cls is dict else gc.get_referents(value)
            if len(parts) <= _MANY:
                open_.extend(parts)
            else:
                found += self._sampled(parts)
        return found

    def _sampled(self, parts: Sequence[Any]) -> int:
        """Estimate the bytes of many items: what all share is in the first half of the sample, the second half tells the rest."""
        step = len(parts) // _MANY | 1  # odd, because keys and values alternate in a dictionary
        sample = list(parts[::step])
        half = len(sample) // 2
        first, rest = self.bytes_of(sample[:half]), self.bytes_of(sample[half:])
        return first + rest + rest * (len(parts) - len(sample)) // (len(sample) - half)
