"""Memory that two processes share: one puts columns into it, the other takes them out, and the memory is used again."""

from __future__ import annotations

import mmap
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

_BYTES: Final = 2**24
_HEAD: Final = 64
"""The bytes before the ring, of which the first 8 are how far it has been taken."""
_PAUSE: Final = 5e-5


def ring_file() -> int | None:
    """Return a file of no name for a ring, None where a process cannot be given one."""
    if os.name != "posix":
        return None
    if hasattr(os, "memfd_create"):
        found = os.memfd_create("streamdsl")
    else:
        with tempfile.TemporaryFile() as file:
            found = os.dup(file.fileno())
    os.ftruncate(found, _HEAD + _BYTES)
    return found


class SharedRing:
    """A ring of bytes with one writer and one reader. Places count on from the beginning of all that was ever put.

    >>> file = ring_file()
    >>> writer, reader = SharedRing(file), SharedRing(file)
    >>> place = writer.put(b"abc", lambda: None)
    >>> bytes(reader.take(place, 3))
    b'abc'
    """

    largest: Final = _BYTES // 4
    """What is larger does not go into the ring."""

    def __init__(self, file: int) -> None:
        memory = np.frombuffer(mmap.mmap(file, _HEAD + _BYTES), dtype=np.uint8)
        self._taken = memory[:8].view(np.int64)
        self._ring = memory[_HEAD:]
        self._at = 0

    def put(self, part: Any, wait: Callable[[], object]) -> int:
        """Put bytes in, and return their place; `wait` is called while there is no room, and raises if there never will be."""
        size, at = len(part), self._at
        if at % _BYTES + size > _BYTES:
            at += _BYTES - at % _BYTES
        while at + size - self._taken.item(0) > _BYTES:
            wait()
            time.sleep(_PAUSE)
        self._ring[at % _BYTES : at % _BYTES + size] = np.frombuffer(part, dtype=np.uint8)
        self._at = at + size
        return at

    def take(self, place: int, size: int) -> Any:
        """Return bytes that were put in as an array of its own, and let their room be used again."""
        found = self._ring[place % _BYTES : place % _BYTES + size].copy()
        self._taken[0] = place + size
        return found
