"""Sort keys: a key's number and a time encoded as one integer, so that overlaps are found by binary search."""

from __future__ import annotations

from typing import Final

import numpy as np

from streamdsl.engine.sorted.stored_rows import StoredRows
from streamdsl.engine.sorting import Codes
from streamdsl.expr.table import Column
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks

_KEY_BITS: Final[int] = 28
_TIME_BITS: Final[int] = 34
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_SAMPLE: Final = 1024
_PATIENCE: Final = 256
"""The rows that may lie outside of the encoded span before it is moved, besides a sixteenth of those held."""


class SortKeyEncoding:
    """A code is a block number for the key in the high bits, and a place for the time in the low bits.

    Small key numbers are their own blocks; larger ones are hashed, and keys may share a block. Times are rounded to steps within
    a span around most rows, and clamped to it. So every key and time has a code, and the order of codes never contradicts that of
    times; rows with equal codes must be compared. The sides of an operator share one encoding; `version` is raised when codes
    change.

    >>> encoding = SortKeyEncoding()
    >>> encoding.codes(np.array([2]), np.array([5])).tolist() == [(2 << 34) + 5 + 2**32]
    True
    """

    def __init__(self) -> None:
        self.version = 0
        self.mixes = False
        self.rows: list[StoredRows] = []
        self._outside = 0
        self._place_around(0, 0)

    def _place_around(self, first: int, last: int) -> None:
        """Choose the span: four times the distance of most rows, the larger part ahead of them."""
        self._step = max(0, (4 * (last - first)).bit_length() - _TIME_BITS)
        length: int = 2**_TIME_BITS << self._step
        self._first = max(first - length // 4, MIN_TIME)
        self._last = min(self._first + length - 1, INFINITY)

    def follow(self, numbers: Column, le: Ticks, re: Ticks) -> None:
        """Take note of new rows. If too many lie outside of the span, choose another one."""
        if not self.mixes and (int(numbers.min()) < 0 or int(numbers.max()) >> _KEY_BITS):
            self.mixes = True
            self.version += 1
        if int(le.min()) < self._first or int(le.max()) > self._last:
            self._outside += int(np.count_nonzero(((le < self._first) | (le > self._last)) & (re < INFINITY)))
            if self._outside > _PATIENCE + sum(map(len, self.rows)) // 16:
                self._move()

    def follow_one(self, number: int, le: int, re: int) -> None:
        """Do what `follow` does, for a single row."""
        if (not self.mixes and (number < 0 or number >> _KEY_BITS)) or not self._first <= le <= self._last:
            self.follow(*(np.array([value], dtype=np.int64) for value in (number, le, re)))

    def _move(self) -> None:
        self._outside = 0
        self.version += 1
        sample = np.sort(np.concatenate([_some_starts(rows) for rows in self.rows]))
        few = len(sample) // 64
        if len(sample):
            self._place_around(int(sample[few]), int(sample[-1 - few]))

    def keys(self, numbers: Column) -> Codes:
        """Return the block numbers of keys."""
        return ((numbers.view(np.uint64) * _MIX) >> np.uint64(64 - _KEY_BITS)).view(np.int64) if self.mixes else numbers

    def codes(self, numbers: Column, times: Ticks) -> Codes:
        """Return the codes of keys at times."""
        return self.codes_of(self.keys(numbers), self.places(times))

    @staticmethod
    def codes_of(keys: Codes, places: Codes) -> Codes:
        """Return the codes of places in blocks."""
        codes: Codes = keys << _TIME_BITS
        codes |= places
        return codes

    def places(self, times: Ticks) -> Codes:
        """Return the places of times within a block."""
        places: Codes = np.maximum(times, self._first)
        np.minimum(places, self._last, out=places)
        places -= self._first
        if self._step:
            places >>= self._step
        return places

    def length(self, le: Ticks, re: Ticks) -> int | None:
        """Return the distance from the code of the first moment to that of the last, None if it differs between rows."""
        if self._step or not len(le):
            return None
        duration = int(re[0]) - int(le[0])
        inside = int(le.min()) >= self._first and int(le.max()) + duration - 1 <= self._last
        return duration - 1 if inside and (re - le == duration).all() else None

    def block(self, number: int) -> int:
        """Return the first code of a key's block."""
        key = int(self.keys(np.array([number], dtype=np.int64))[0]) if self.mixes else number
        return key << _TIME_BITS

    def place(self, time: int) -> int:
        """Return the place of a time within a block."""
        return (min(max(time, self._first), self._last) - self._first) >> self._step


def _some_starts(rows: StoredRows) -> Ticks:
    """Return a sample of the LEs of rows that exist and have an end."""
    every = slice(None, None, max(1, len(rows) // _SAMPLE))
    le, re = rows.le.values[every], rows.re.values[every]
    starts: Ticks = le[(re > le) & (re < INFINITY)]
    return starts
