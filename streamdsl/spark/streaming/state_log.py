"""How a shard's state is kept in entries of a limited size: a base, and the delta of each micro-batch since."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from streamdsl.spark.streaming.state_delta import delta, patch

CHUNK: Final = 2**18
"""The size of an entry, in bytes. It belongs to the form of what is stored: by it entries are told apart."""
DELTAS: Final = 256
"""The most deltas that may follow a base: a state is read from so many, and a base is written once in so many micro-batches."""
_GROWTH: Final = 2
"""So many times the size of the state is kept, at most."""


@dataclass(frozen=True, slots=True)
class StateLog:
    """What entries that are numbered from 0 hold: a base and deltas, of so many bytes each, each of them in entries of its own.

    >>> log, entries = StateLog().followed_by(b"", b"one two three")
    >>> log, more = log.followed_by(b"one two three", b"one two four five")
    >>> StateLog(log.sizes).read((entries | more).__getitem__)
    b'one two four five'
    """

    sizes: Sequence[int] = ()

    @classmethod
    def from_bytes(cls, data: bytes) -> StateLog:
        """Return what `to_bytes` has made bytes of."""
        return cls(np.frombuffer(data, dtype="<i8").tolist())

    def to_bytes(self) -> bytes:
        """Return the sizes as bytes."""
        return np.array(self.sizes, dtype="<i8").tobytes()

    def __len__(self) -> int:
        return sum(map(_n_entries, self.sizes))

    def read(self, entry: Callable[[int], bytes]) -> bytes:
        """Return the state that the entries hold."""
        places = itertools.count()
        blobs = (b"".join(entry(next(places)) for _ in range(_n_entries(size))) for size in self.sizes)
        state = bytearray(next(blobs, b""))
        for change in blobs:
            patch(state, change)
        return bytes(state)

    def followed_by(self, state: bytes, following: bytes, deltas: int = DELTAS) -> tuple[StateLog, dict[int, bytes]]:
        """Return the log of the state that follows on this log's `state`, and the entries that are to be written for it.

        They are those of one more delta, or of a new base, if there are so many deltas or they would be too large.
        """
        if 0 < len(self.sizes) <= deltas:
            change = delta(state, following)
            if sum(self.sizes) + len(change) <= _GROWTH * len(following):
                return StateLog([*self.sizes, len(change)]), dict(enumerate(_chunks(change), len(self)))
        return StateLog([len(following)]), dict(enumerate(_chunks(following)))


def _n_entries(size: int) -> int:
    return -(-size // CHUNK)


def _chunks(data: bytes) -> Iterator[bytes]:
    return (data[start : start + CHUNK] for start in range(0, len(data), CHUNK))
