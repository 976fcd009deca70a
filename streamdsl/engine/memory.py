"""What a running query holds in memory, found by walking it: no operator has a formula for that, which could forget something."""

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
"""A collection of more is looked at in a sample of so many."""
_CODE: Final = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType, MappingProxyType, enum.Enum)
_PER_ITEM: Final[dict[type, tuple[int, int]]] = {
    list: (56, 8),
    tuple: (40, 8),
    dict: (64, 48),
    set: (216, 48),
    frozenset: (216, 48),
    deque: (624, 8),
}
"""The bytes of a collection, and of each of its items: what it has room for besides is left out, so that alike costs alike."""


class MemoryMeter:
    """Counts bytes; what has been counted once, or is `known`, counts no more.

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
        """Return the bytes of values and of all that they hold, but what comes from the query."""
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
                # Places without an object say nothing of the others.
                parts: Any = [each for each in value.ravel().tolist() if each is not None] if value.dtype == object else ()
                open_ += [] if value.base is None else [value.base]
            else:
                size, each = _PER_ITEM.get(cls, (0, 0))
                found += size + each * len(value) if size else sys.getsizeof(value)
                # Of an object's own dictionary the collector tells nothing from Python 3.13 on.
                parts = list(chain.from_iterable(value.items())) if cls is dict else gc.get_referents(value)
            if len(parts) <= _MANY:
                open_.extend(parts)
            else:
                found += self._sampled(parts)
        return found

    def _sampled(self, parts: Sequence[Any]) -> int:
        """Return about how many bytes many parts have: what they share is met in the first ones, the others tell the rest."""
        step = len(parts) // _MANY | 1  # odd: keys and values take turns in a dictionary
        sample = list(parts[::step])
        half = len(sample) // 2
        first, rest = self.bytes_of(sample[:half]), self.bytes_of(sample[half:])
        return first + rest + rest * (len(parts) - len(sample)) // (len(sample) - half)
