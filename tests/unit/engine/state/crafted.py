"""Files that no session has written: a checkpoint taken apart, changed, and put together again under a checksum that is right."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

_MAGIC = b"streamdsl checkpoint "
_HEAD = len(_MAGIC) + 9
_DIGEST = 32


def framed(text: bytes, arrays: bytes) -> bytes:
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + arrays


def unframed(data: bytes) -> tuple[bytes, bytes]:
    size = int.from_bytes(data[:8], "little")
    return data[8 : 8 + size], data[8 + size :]


def content_of(data: bytes) -> bytes:
    """Return what of a checkpoint its checksum is of."""
    return data[_HEAD + _DIGEST :]


def with_content(data: bytes, content: bytes) -> bytes:
    """Return a checkpoint that holds something else, and whose checksum is right."""
    return data[:_HEAD] + sha256(content).digest() + content


class Apart:
    """A checkpoint in parts: the head, and the JSON and the arrays of each section."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        text, arrays = unframed(content_of(data))
        self.head: dict[str, Any] = json.loads(text)
        self.texts: dict[str, Any] = {}
        self.arrays: dict[str, bytes] = {}
        for name, (start, size) in self.head["sections"].items():
            text, self.arrays[name] = unframed(arrays[start : start + size])
            self.texts[name] = json.loads(text)

    def whole(self) -> bytes:
        """Return the checkpoint of these parts."""
        arrays, places = b"", {}
        for name, text in self.texts.items():
            section = framed(dumped(text), self.arrays[name])
            places[name] = [len(arrays), len(section)]
            arrays += section + bytes(-len(section) % 8)
        return with_content(self._data, framed(dumped({**self.head, "sections": places}), arrays))


def dumped(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def changed(data: bytes, change: Callable[[Apart], object]) -> bytes:
    """Return a checkpoint in which something has been changed."""
    apart = Apart(data)
    change(apart)
    return apart.whole()
