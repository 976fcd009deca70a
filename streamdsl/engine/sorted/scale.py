"""Values as small numbers in the same order, so that a key's number and a time make one number to sort by."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.sorted.packed import Codes, order_of_codes
from streamdsl.expr.table import Column, Rows

_BITS: Final = 62
_LAST: Final = 2**63 - 1


class Scale:
    """Some numbers, and the place of any number among them: how far it is from the least or, `ranked`, how many are less.

    >>> scale = Scale(np.array([10, 40, 20]))
    >>> scale.places(np.array([5, 20, 99])).tolist(), Scale(np.array([10, 40, 20]), ranked=True).places(np.array([5, 20, 99])).tolist()
    ([0, 10, 31], [0, 1, 3])
    """

    __slots__ = ("_known", "_least", "size")

    def __init__(self, values: Column, ranked: bool = False) -> None:
        self._least = int(values.min())
        self.size = int(values.max()) - self._least + 1
        self._known: Column | None = None
        if ranked:
            ordered = np.sort(values)
            self._known = ordered[np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))]
            self.size = len(self._known)

    @property
    def nbytes(self) -> int:
        """The memory of the ranks."""
        return 0 if self._known is None else self._known.nbytes

    def places(self, values: Column) -> Codes:
        """Return where values stand or would stand, from 0 to `size`."""
        if self._known is not None:
            return np.searchsorted(self._known, values)
        last = min(self._least + self.size, _LAST)
        places: Codes = np.minimum(np.maximum(values, self._least), last) - self._least
        return places

    def place(self, value: int) -> int:
        """Return where a value stands or would stand."""
        if self._known is not None:
            return int(self._known.searchsorted(value))
        return min(max(value - self._least, 0), self.size)

    def has(self, value: int, place: int) -> bool:
        """Say whether a value, whose place this is, may be among the scale's."""
        if self._known is None:
            return self._least <= value < self._least + self.size
        return place < self.size and bool(self._known[place] == value)

    def known(self, values: Column, places: Codes) -> NDArray[np.bool_]:
        """Say which values, whose places these are, may be among the scale's."""
        if self._known is None:
            return (places < self.size) & (values >= self._least)
        return self._known[np.minimum(places, self.size - 1)] == values

    def values(self, places: Codes) -> Column:
        """Return the numbers in some places."""
        return places + self._least if self._known is None else self._known[places]


class Layout:
    """How a key's number and a time are one number: the first above the second, each on its scale.

    >>> layout = Layout(np.array([7, 8]), np.array([100, 103]))
    >>> layout.codes(np.array([7, 8]), np.array([100, 103])).tolist()
    [0, 11]
    """

    __slots__ = ("_numbers", "_shift", "_times")

    def __init__(self, numbers: Column, times: Column) -> None:
        self._numbers, self._times = Scale(numbers), Scale(times)
        if self.bits > _BITS:
            self._numbers = Scale(numbers, ranked=True)
        if self.bits > _BITS:
            self._times = Scale(times, ranked=True)
        self._shift = self._times.size.bit_length()

    @property
    def bits(self) -> int:
        """How many bits a code has at most."""
        return self._numbers.size.bit_length() + self._times.size.bit_length()

    @property
    def nbytes(self) -> int:
        """The memory of its scales."""
        return self._numbers.nbytes + self._times.nbytes

    def codes(self, numbers: Column, times: Column) -> Codes:
        """Return the codes of the numbers and times that the layout is made of."""
        return (self._numbers.places(numbers) << self._shift) | self._times.places(times)

    def columns(self, codes: Codes) -> tuple[Column, Column]:
        """Return the numbers and the times of codes."""
        return self._numbers.values(codes >> self._shift), self._times.values(codes & ((1 << self._shift) - 1))

    def bounds(self, numbers: Column, since: Column, until: Column) -> tuple[Rows, Codes, Codes]:
        """Return which numbers the layout may have, and the codes from which on, and before which, their times are in a period."""
        blocks = self._numbers.places(numbers)
        known = self._numbers.known(numbers, blocks)
        rows = np.arange(len(numbers)) if known.all() else np.flatnonzero(known)
        if len(rows) < len(numbers):
            blocks, since, until = blocks[rows], since[rows], until[rows]
        blocks = blocks << self._shift
        return rows, blocks | self._times.places(since), blocks | self._times.places(until)


    def period(self, number: int, since: int, until: int) -> tuple[int, int] | None:
        """Return the codes from which on, and before which, a number's times are in a period; None for a number that there is not."""
        block = self._numbers.place(number)
        if not self._numbers.has(number, block):
            return None
        block <<= self._shift
        return block | self._times.place(since), block | self._times.place(until)


def order_of(numbers: Column, times: Column) -> Rows | None:
    """Return the order by number, then time; None where the rows are in it.

    >>> order_of(np.array([2, 1]), np.array([5, 6])).tolist(), order_of(np.array([1, 2]), np.array([6, 5]))
    ([1, 0], None)
    """
    if len(numbers) < 2:
        return None
    layout = Layout(numbers, times)
    codes = layout.codes(numbers, times)
    return None if is_sorted(codes) else order_of_codes(codes, layout.bits)


def is_sorted(codes: Codes) -> bool:
    """Say whether no code is less than the one before it."""
    return bool((codes[1:] >= codes[:-1]).all())
