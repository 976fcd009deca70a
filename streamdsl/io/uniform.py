"""Fast reading of tuples of numbers that all have the same layout.

`marshal` writes each value as a type code and its bits. If all rows have the length of the first one, and differ from it only
in the bytes of values, which a single array comparison checks, then the values of a column have a constant stride, and numpy
reads them directly, in a quarter of the time of inspecting each tuple and item. Anything else (texts, None, integers of
different lengths, subclasses) has another layout, and the caller reads it row by row.
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
"""The columns of tuples; a nested tuple is a nested list of columns."""
_Reader: TypeAlias = "Callable[[_Some], Column | Fields]"

_FORMAT: Final = 2
"""The last version of `marshal` without references between values."""
_HEAD: Final = 5
"""The bytes before the items of a list or a tuple: a type code, and the number of items in four bytes."""
_DIGIT: Final = 15
"""The bits per digit of a long integer; a digit takes two bytes."""
_MOST_DIGITS: Final = 4
_INTEGER, _LONG, _FLOAT, _TRUE, _FALSE, _TUPLE = b"ilgTF("
"""The type codes of values."""


class _OtherLayoutError(Exception):
    """A row differs in layout from the first one, or the first one holds other types."""


class UniformRows:
    """Tuples of integers, floats and bools, marshalled with the layout of the first one; `fields` checks that rows have it.

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
        """Return rows in this form; None if there are none, or if the first one holds other types."""
        try:
            # The first row alone shows texts, which may be large, before all rows are marshalled.
            return UniformRows(_Layout(_marshalled(rows[:1])[_HEAD:]), _marshalled(rows)) if rows else None
        except (ValueError, RecursionError, _OtherLayoutError):  # marshal raises ValueError for types that it cannot write
            return None

    def fields(self, first: int, stop: int) -> Fields | None:
        """Return the columns of rows; None if one has another layout: the rows after it cannot be located then."""
        try:
            return self._layout.fields(_Some(self._written, _HEAD + self._layout.width * first, stop - first, self._layout.width))
        except _OtherLayoutError:
            return None


def _marshalled(rows: Sequence[Any]) -> bytes:
    return marshal.dumps(rows if type(rows) is list else list(rows), _FORMAT)


class _Some(NamedTuple):
    """A range of marshalled rows of equal width."""

    written: bytes
    start: int
    number: int
    width: int

    @property
    def size(self) -> int:
        """The number of bytes of all rows."""
        return self.number * self.width

    def values(self, place: int, dtype: str) -> NDArray[Any]:
        """Return the value at this offset of each row."""
        return np.ndarray(self.number, dtype, self.written, self.start + place, (self.width,))

    def are_like(self, row: bytes, fixed: bytes) -> bool:
        """Say whether all rows are present, and equal `row` in the bits that are set in `fixed`."""
        if self.start + self.size > len(self.written):
            return False
        wanted, mask = _repeated(bytes(byte & bits for byte, bits in zip(row, fixed, strict=True)), fixed, self.number)
        found = np.frombuffer(self.written, np.uint8, self.size, self.start) & mask
        return not np.not_equal(found, wanted, out=found).any()


@lru_cache(maxsize=4)
def _repeated(row: bytes, fixed: bytes, number: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return `row` and `fixed` repeated; cached, as the pieces of one input share them."""
    return np.frombuffer(row * number, np.uint8), np.frombuffer(fixed * number, np.uint8)


class _Layout:
    """The layout of a row: its bytes, a mask of those that are not values, and the reader of the values of many rows."""

    def __init__(self, row: bytes) -> None:
        self._row = row
        self._fixed = bytearray()
        is_tuple = row[0] == _TUPLE
        self._reader = self._field()
        _need(is_tuple and len(self._fixed) == len(row))

    @property
    def width(self) -> int:
        """The number of bytes of a row."""
        return len(self._row)

    def fields(self, rows: _Some) -> Fields:
        """Return the columns of rows; raises `_OtherLayoutError` if one has another layout."""
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
        """Mark the next bytes as equal in all rows."""
        self._fixed += b"\xff" * size

    def _value(self, size: int) -> int:
        """Mark the next bytes as a value, and return its offset."""
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
