"""Packing: one number for a group and a time, so that pairs are sorted and found as fast as numbers."""

from __future__ import annotations

from typing import Final

import numpy as np

from streamdsl.expr.table import Column, Rows
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks

_BITS: Final = 62
_LEAST: Final = 20
_WIDE: Final = 2**65


class Packing:
    """How codes of groups and times become numbers in the order of (code, time).

    With one group a time is its own number. With several, times are counted from `base` and the code stands in the bits above;
    times that lie too far apart for that become Python integers, which are slow but have no bounds.

    >>> packing = Packing()
    >>> packing.fit(3, 100, 200)
    True
    >>> numbers = packing.numbers(np.array([0, 1, 1, 2]), np.array([200, 100, INFINITY, 100]))
    >>> bool((numbers[1:] > numbers[:-1]).all())
    True
    """

    def __init__(self) -> None:
        self._codes = 1
        self._base = MIN_TIME
        self._bits = 0
        self._wide = False

    def fits(self, codes: int, low: int, high: int) -> bool:
        """Say whether so many codes, and all times from `low` to `high`, have numbers."""
        if codes <= 1 and self._codes == 1:
            return True
        return codes <= self._codes and (self._wide or (self._base < low and high - self._base < (1 << self._bits) - 1))

    def fit(self, codes: int, low: int, high: int) -> bool:
        """Choose numbers for so many codes, with room for more, and for these times; say whether that changed any number."""
        if self.fits(codes, low, high):
            return False
        width = (2 * codes).bit_length()
        self._codes, self._bits = 1 << width, min(_BITS - width, max(_LEAST, (4 * (high - low)).bit_length()))
        room = (1 << self._bits) - 2 - (high - low)
        self._base = low - max(1, room // 4)
        self._wide = room < 2 or self._base < MIN_TIME
        return True

    def numbers(self, codes: Rows, times: Ticks) -> Column:
        """Return the number of each code and time that fit; INFINITY is after all of them."""
        if self._codes == 1:
            return times
        if self._wide:
            wide: Column = codes.astype(object) * _WIDE + times.astype(object)
            return wide
        if len(times) and times.max() == INFINITY:
            times = np.where(times == INFINITY, self._base + (1 << self._bits) - 1, times)
        places: Column = codes << self._bits
        places += times - self._base  # times fit below the bits of the code
        return places

    @property
    def is_wide(self) -> bool:
        """Whether numbers are Python integers."""
        return self._wide

    def number(self, code: int, time: int) -> int:
        """Return what `numbers` does, for a single code and time that fit; numbers are not wide.

        >>> packing = Packing()
        >>> _ = packing.fit(3, 100, 200)
        >>> packing.number(2, 150) == packing.numbers(np.array([2]), np.array([150])).item()
        True
        """
        if self._codes == 1:
            return time
        return (code << self._bits) | ((1 << self._bits) - 1 if time == INFINITY else time - self._base)

    def clipped(self, codes: Rows, times: Ticks) -> Column:
        """Return numbers of any times: one too early gets the first of its code, one too late the last but one."""
        if self._codes > 1 and not self._wide and len(times):
            last = self._base + (1 << self._bits) - 2
            if times.min() < self._base:
                times = np.maximum(times, self._base)
            if times.max() > last:
                times = np.where(times == INFINITY, times, np.minimum(times, last))
        return self.numbers(codes, times)

    def places(self, numbers: Column) -> tuple[Rows, Ticks]:
        """Return the codes and the times of numbers.

        >>> packing = Packing()
        >>> _ = packing.fit(3, 100, 200)
        >>> packing.places(packing.numbers(np.array([0, 2]), np.array([100, INFINITY])))
        (array([0, 2]), array([                100, 9223372036854775807]))
        """
        if self._codes == 1:
            return np.zeros(len(numbers), dtype=np.intp), numbers
        if self._wide:
            codes = [(number - MIN_TIME) // _WIDE for number in numbers.tolist()]
            times = [number - code * _WIDE for number, code in zip(numbers.tolist(), codes, strict=True)]
            return np.array(codes, dtype=np.intp), np.array(times, dtype=np.int64)
        last = (1 << self._bits) - 1
        offsets = numbers & last
        return numbers >> self._bits, np.where(offsets == last, INFINITY, offsets + self._base)

    def limits(self, codes: Rows, time: int) -> Column:
        """Return a number for each code that those of times up to `time` do not exceed, and those of later times do."""
        if self._codes > 1 and not self._wide:
            time = min(max(time, self._base), self._base + (1 << self._bits) - 2)
        return self.numbers(codes, np.full(len(codes), time, dtype=np.int64))
