"""Tuples that are all laid out alike, read in one pass.

The rule: `marshal` writes of each value what it is, and then its bits. Where all rows are as long as the first one and differ
from it in the bytes of values alone, which one comparison shows, the values of a column lie at one distance from each other.
So rows are read in a quarter of the time of asking each tuple for its items and each item for its type. Anything else (texts,
None, integers of different lengths, subclasses) is not laid out alike, and is left to who can read it.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.expr.table import Column
from streamdsl.temporal.time import Ticks

Fields: TypeAlias = "list[Column | Fields]"
"""The columns of tuples; those of a tuple in a tuple are a list in the list."""
_Reader: TypeAlias = "Callable[[_Some], Column | Fields]"

_FORMAT: Final = 2
"""The last format of `marshal` in which values do not refer to each other."""
_HEAD: Final = 5
"""What comes before the items of a list or a tuple: a letter and their number, in four bytes."""
_DIGIT: Final = 15
"""The bits of a digit of a long integer, which is written in two bytes."""
_MOST_DIGITS: Final = 4
_INTEGER, _LONG, _FLOAT, _TRUE, _FALSE, _TUPLE = b"ilgTF("
"""The letters that come before values."""


class _OtherLayoutError(Exception):
    """Not all rows are like the first one, or it is of types that are not known here."""


class UniformRows:
    """Tuples of exactly integers, floats and bools, all of one layout as far as has been seen.

    >>> rows = UniformRows.of([(1, (2, 0.5)), (3, (4, 1.5)), (5, "a")])
    >>> le, payload = rows.fields(0, 2)
    >>> le.tolist(), [column.tolist() for column in payload], rows.fields(2, 3)
    ([1, 3], [[2, 4], [0.5, 1.5]], None)
    """

    def __init__(self, layout: _Layout, written: bytes) -> None:
        self._layout = layout
        self._written = written

    @staticmethod
    def of(rows: Sequence[Any]) -> UniformRows | None:
        """Return rows, None if the first of them is none that is known here, or there is none."""
        try:
            # Texts, of any size, are seen in the first row, before all are written.
            return UniformRows(_Layout(_marshalled(rows[:1])[_HEAD:]), _marshalled(rows)) if rows else None
        except (ValueError, RecursionError, _OtherLayoutError):  # a ValueError is marshal's, for what it cannot write
            return None

    def fields(self, first: int, stop: int) -> Fields | None:
        """Return the columns of some rows, None if one is laid out otherwise: then what comes after it cannot be found."""
        try:
            return self._layout.fields(_Some(self._written, _HEAD + self._layout.width * first, stop - first, self._layout.width))
        except _OtherLayoutError:
            return None


def _marshalled(rows: Sequence[Any]) -> bytes:
    return marshal.dumps(rows if type(rows) is list else list(rows), _FORMAT)


class _Some(NamedTuple):
    """What `marshal` has written of so many rows from a place on, all as long."""

    written: bytes
    start: int
    number: int
    width: int

    @property
    def size(self) -> int:
        """The bytes of all rows."""
        return self.number * self.width

    def values(self, place: int, dtype: str) -> NDArray[Any]:
        """Return what is at this place in each row."""
        return np.ndarray(self.number, dtype, self.written, self.start + place, (self.width,))

    def are_like(self, row: bytes, fixed: bytes) -> bool:
        """Say whether all rows are there, and have those bytes of this one that are `fixed`."""
        if self.start + self.size > len(self.written):
            return False
        wanted, mask = _repeated(bytes(byte & bits for byte, bits in zip(row, fixed, strict=True)), fixed, self.number)
        found = np.frombuffer(self.written, np.uint8, self.size, self.start) & mask
        return not np.not_equal(found, wanted, out=found).any()


@lru_cache(maxsize=4)
def _repeated(row: bytes, fixed: bytes, number: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return bytes so many times; those of all pieces of one input are alike."""
    return np.frombuffer(row * number, np.uint8), np.frombuffer(fixed * number, np.uint8)


class _Layout:
    """How a row is laid out: its bytes, which of them are no values, and what reads the values of as many rows."""

    def __init__(self, row: bytes) -> None:
        self._row = row
        self._fixed = bytearray()
        is_tuple = row[0] == _TUPLE
        self._reader = self._field()
        _need(is_tuple and len(self._fixed) == len(row))

    @property
    def width(self) -> int:
        """The bytes of a row."""
        return len(self._row)

    def fields(self, rows: _Some) -> Fields:
        """Return the columns of rows; raises `_OtherLayoutError` where one is laid out otherwise."""
        _need(rows.are_like(self._row, bytes(self._fixed)))
        fields = self._reader(rows)
        assert isinstance(fields, list)
        return fields

    def _field(self) -> _Reader:
        place, letter = len(self._fixed), self._row[len(self._fixed)]
        if letter in (_TRUE, _FALSE):
            return partial(_truths, self._value(1))
        self._same(1)
        if letter == _INTEGER:
            return partial(_integers, self._value(4))
        if letter == _FLOAT:
            return partial(_floats, self._value(8))
        if letter == _LONG:
            digits = abs(self._number(place + 1))
            _need(digits <= _MOST_DIGITS)
            return partial(_longs, self._value(4 + 2 * digits), digits)
        _need(letter == _TUPLE)
        self._same(4)
        return partial(_tuple, [self._field() for _ in range(self._number(place + 1))])

    def _same(self, size: int) -> None:
        """Step over bytes that are the same in all rows."""
        self._fixed += b"\xff" * size

    def _value(self, size: int) -> int:
        """Step over the bytes of a value, and return its place."""
        self._fixed += bytes(size)
        return len(self._fixed) - size

    def _number(self, place: int) -> int:
        return int.from_bytes(self._row[place : place + 4], "little", signed=True)


def _tuple(readers: Sequence[_Reader], rows: _Some) -> Fields:
    return [read(rows) for read in readers]


def _integers(place: int, rows: _Some) -> Column:
    return rows.values(place, "<i4").astype(np.int64)


def _floats(place: int, rows: _Some) -> Column:
    return rows.values(place, "<f8").copy()


def _truths(place: int, rows: _Some) -> Column:
    letters = rows.values(place, "u1")
    holds: Column = letters == _TRUE
    _need((holds | (letters == _FALSE)).all())
    return holds


def _longs(place: int, digits: int, rows: _Some) -> Ticks:
    signed = rows.values(place, "<i4")
    _need((np.abs(signed) == digits).all())
    total = np.zeros(len(signed), dtype=np.int64)
    for digit in range(digits):
        total |= rows.values(place + 4 + 2 * digit, "<u2").astype(np.int64) << (_DIGIT * digit)
    total[signed < 0] *= -1
    return total


def _need(holds: bool | np.bool_) -> None:
    if not holds:
        raise _OtherLayoutError
