"""Digits: numbers taken apart into what they add to totals, exactly.

Any finite float is a whole multiple of 2 ** -1074, so it has an exact place among digits of weight 2 ** (32 * w).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.columnar.terms import DIGIT, SAFE_WEIGHTS, ColumnKey, Counted, FloatTerms, Part, Terms
from streamdsl.expr.table import Rows, flatnonzero
from streamdsl.temporal.time import Ticks

_ROOT: Final = 2**31
"""Squares of integers up to it are int64."""
_SPLITTER: Final = 2.0**27 + 1
_SQUARED: Final = 2.0**-450, 2.0**450
"""The square of a float of such a size is the sum of two floats."""
LARGEST: Final = 2**DIGIT - 1
"""The largest digit."""
DIRECT: Final = 2**45
"""Integers up to this go into the column of weight 0 as they are."""
_LOWEST: Final = DIGIT * (SAFE_WEIGHTS.start + 2)
"""Smaller floats, as powers of two, have digits with unsafe weights."""
SPECIAL: Final[tuple[Counted, ...]] = ("nan", "inf", "-inf")
_BIAS: Final = 34
"""The digit of the smallest float has weight -34 (2 ** -1074 is 2 ** (14 - 32 * 34))."""


def parts_of(terms: Terms) -> Iterator[Part]:
    """Yield what rows add to each column, floats split into digits.


    >>> from streamdsl.engine.columnar.terms import FloatTerms
    >>> [part.column for part in parts_of(Terms(1, reals=[FloatTerms(0, None, np.array([0.75]))]))]
    [(0, 'floats'), (0, -1), (0, -2)]
    """
    yield from terms.parts
    for reals in terms.reals:
        yield from real_parts(reals)


def real_parts(reals: FloatTerms) -> Iterator[Part]:
    """Yield what floats add to each column."""
    parts, signs = float_parts(reals.aggregate, reals.rows, reals.values), reals.signs
    return parts if signs is None else (part.times(signs) for part in parts)


def integer_parts(aggregate: int, rows: Rows | None, values: Ticks) -> Iterator[Part]:
    """Yield what integers add to the columns of an aggregate.


    >>> [(part.column, part.amounts.tolist()) for part in integer_parts(0, None, np.array([2**62 + 5]))]
    [((0, 0), [5]), ((0, 1), [1073741824])]
    """
    if not len(values):
        return
    low, high = int(values.min()), int(values.max())
    if max(-low, high) <= DIRECT:
        yield Part((aggregate, 0), rows, values, max(-low, high, 1))
        return
    yield Part((aggregate, 0), rows, values & LARGEST, LARGEST)
    yield Part((aggregate, 1), rows, values >> DIGIT, 2 ** (DIGIT - 1))


def digit_places(value: float) -> tuple[tuple[int, int], ...] | None:
    """Return a float as pairs of a weight and a digit, without zeros; None if its weights are unsafe.


    >>> digit_places(0.75), digit_places(-3.0), digit_places(float("nan"))
    (((-1, 3221225472),), ((0, -3),), None)
    """
    if not value:
        return ()
    mantissa, exponent = math.frexp(value)
    if not _LOWEST < exponent <= DIGIT * SAFE_WEIGHTS.stop or not math.isfinite(value):
        return None
    weight, shift = divmod(exponent - 53, DIGIT)
    rest, sign = int(abs(mantissa) * 2**53) << shift, 1 if value > 0 else -1
    digits = (rest & LARGEST, (rest >> DIGIT) & LARGEST, rest >> 2 * DIGIT)
    return tuple([(weight + place, sign * digit) for place, digit in enumerate(digits) if digit])


def huge_parts(aggregate: int, rows: Sequence[int], values: Sequence[int], lowest: int = 0) -> Iterator[Part]:
    """Yield what integers of any size, times 2 ** (32 * lowest), add to the columns of an aggregate.


    >>> [(part.column, part.amounts.tolist()) for part in huge_parts(0, [0], [2**70])]
    [((0, 2), [64])]
    """
    for row, value in zip(rows, values, strict=True):
        for weight, digit in _places(value, lowest):
            yield _single((aggregate, weight), row, digit)


def _places(value: int, weight: int) -> Iterator[tuple[int, int]]:
    """Yield an integer as pairs of a weight, from the given one on, and a digit, without zeros; only the last may be negative."""
    while value not in (0, -1):
        if value & LARGEST:
            yield weight, value & LARGEST
        value, weight = value >> DIGIT, weight + 1
    if value:
        yield weight, value


def _single(column: ColumnKey, row: int, amount: int) -> Part:
    return Part(column, np.array([row]), np.array([amount], dtype=np.int64), LARGEST)


def float_parts(aggregate: int, rows: Rows | None, values: NDArray[np.float64]) -> Iterator[Part]:
    """Yield what floats add to the columns of an aggregate. NaN and infinities are counted, so that they can be retracted.


    >>> [(part.column, part.amounts) for part in float_parts(0, None, np.array([0.75, 3.0]))]
    [((0, 'floats'), None), ((0, 0), array([0, 3])), ((0, -1), array([3221225472,          0])), ((0, -2), array([0, 0]))]
    """
    if not len(values):
        return
    yield _ones((aggregate, "floats"), rows)
    sizes = np.abs(values)
    if not math.isfinite(sizes.max()):
        yield from _special_parts(aggregate, rows, values)
        values = np.where(np.isfinite(values), values, 0.0)
        sizes = np.abs(values)
    weights = digit_weights(sizes)
    if weights is not None:
        for digit_weight, column in _cut(values, weights, sizes):
            yield Part((aggregate, digit_weight), rows, column, LARGEST)
        return
    weight, digits = _digits(values)
    low, high = int(weight.min()), int(weight.max())
    for first in range(low, high + 1):
        at = None if low == high else flatnonzero(weight == first)
        if at is None or len(at):
            yield from _placed(aggregate, first, rows, at, digits)


def squares_of(aggregate: int) -> int:
    """Return the number of the columns to which an aggregate's squares are added; that of its values is not negative."""
    return -2 - aggregate


def integer_square_parts(aggregate: int, rows: Rows | None, values: Ticks) -> Iterator[Part]:
    """Yield what the squares of integers add to the columns of an aggregate.

    >>> [(part.column, part.amounts.tolist()) for part in integer_square_parts(-2, None, np.array([3, -5]))]
    [((-2, 0), [9, 25])]
    """
    if not len(values) or max(-int(values.min()), int(values.max())) <= _ROOT:
        yield from integer_parts(aggregate, rows, values * values)
        return
    high, low = values >> DIGIT, values & LARGEST
    between, lowest = high * low, low.astype(np.uint64) * low.astype(np.uint64)
    yield Part((aggregate, 0), rows, (lowest & np.uint64(LARGEST)).astype(np.int64), LARGEST)
    yield Part((aggregate, 1), rows, (lowest >> np.uint64(DIGIT)).astype(np.int64) + 2 * (between & LARGEST), 3 * LARGEST)
    yield Part((aggregate, 2), rows, 2 * (between >> DIGIT) + (high * high & LARGEST), 2 * LARGEST)
    yield Part((aggregate, 3), rows, high * high >> DIGIT, LARGEST)


def square_parts(aggregate: int, rows: Rows | None, values: NDArray[np.float64]) -> Iterator[Part]:
    """Yield what the squares of floats add to the columns of an aggregate: exactly, and nothing where a float is not finite.

    >>> [(part.column, part.amounts.tolist()) for part in square_parts(-2, None, np.array([3.0, 0.5]))]
    [((-2, 0), [9, 0]), ((-2, -1), [0, 1073741824]), ((-2, -2), [0, 0])]
    """
    sizes = np.abs(values)
    plain = (sizes == 0) | ((sizes > _SQUARED[0]) & (sizes < _SQUARED[1]))
    if not plain.all():
        far = flatnonzero(~plain & np.isfinite(sizes))
        for row, value in zip((far if rows is None else rows[far]).tolist(), values[far].tolist(), strict=True):
            weight, whole = _square(value)
            yield from huge_parts(aggregate, [row], [whole], weight)
        values = np.where(plain, values, 0.0)
    squares = values * values
    high, low = halves(values)
    lost = ((high * high - squares) + 2 * high * low) + low * low
    for each in (squares, lost):
        yield from (part for part in float_parts(aggregate, rows, each) if part.column[1] != "floats")


def halves(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two floats of 26 bits whose sum each float is, so that their products are exact (Veltkamp)."""
    moved = _SPLITTER * values
    high = moved - (moved - values)
    return high, values - high


def square_places(value: float | None) -> list[tuple[int, int]]:
    """Return the square of a number as pairs of a weight and a digit, without zeros; nothing for one that is not finite.

    >>> square_places(3), square_places(-1.5), square_places(2**40), square_places(None)
    ([(0, 9)], [(-1, 1073741824), (0, 2)], [(2, 65536)], [])
    """
    if not value or (isinstance(value, float) and not math.isfinite(value)):
        return []
    weight, square = _square(value) if isinstance(value, float) else (0, int(value) ** 2)
    return list(_places(square, weight))


def _square(value: float) -> tuple[int, int]:
    """Return the square of a float as the weight of its lowest digit, and the integer that its digits are."""
    mantissa, exponent = math.frexp(value)
    weight, shift = divmod(2 * (exponent - 53), DIGIT)
    return weight, int(mantissa * 2**53) ** 2 << shift


def _placed(aggregate: int, first: int, rows: Rows | None, at: Rows | None, digits: Sequence[Ticks]) -> Iterator[Part]:
    chosen = rows if at is None else at if rows is None else rows[at]
    for place, column in enumerate(digits):
        amounts = column if at is None else column[at]
        if amounts.any():
            yield Part((aggregate, first + place), chosen, amounts, LARGEST)


def digit_weights(sizes: NDArray[np.float64]) -> range | None:
    """Return the weights of the digits of floats of these sizes, highest first, none if all are 0.

    None: the sizes are too far apart, or extreme.
    """
    largest = float(sizes.max())
    if not largest or not math.isfinite(largest):
        return None if largest else range(0)
    smallest = float(sizes.min()) or float(np.min(sizes, where=sizes > 0, initial=largest))
    top, bottom = (math.frexp(largest)[1] - 1) // DIGIT, (math.frexp(smallest)[1] - 53) // DIGIT
    if top - bottom > 3 or bottom not in SAFE_WEIGHTS or top not in SAFE_WEIGHTS:
        return None
    return range(top, bottom - 1, -1)


def _cut(values: NDArray[np.float64], weights: range, scratch: NDArray[np.float64]) -> Iterator[tuple[int, Ticks]]:
    """Yield the digits of all floats, weight by weight; `scratch` is written over."""
    rest = values
    for weight in weights:
        digits = np.multiply(rest, 2.0 ** (-DIGIT * weight), out=scratch).astype(np.int64)
        yield weight, digits
        if weight != weights[-1]:
            taken = np.multiply(digits, 2.0 ** (DIGIT * weight), out=scratch)
            rest = np.subtract(rest, taken, out=None if rest is values else rest)


def _digits(values: NDArray[np.float64]) -> tuple[Ticks, tuple[Ticks, Ticks, Ticks]]:
    """Return the weight of each float's lowest digit, and its three digits."""
    bits = np.ascontiguousarray(values).view(np.int64)
    exponent = (bits >> 52) & 0x7FF
    mantissa = (bits & (2**52 - 1)) | ((exponent > 0).astype(np.int64) << 52)
    mantissa = np.where(bits < 0, -mantissa, mantissa)
    place = np.where(mantissa == 0, 1023, np.maximum(exponent, 1)) + 13
    shift = place & (DIGIT - 1)
    low = (mantissa & LARGEST) << shift
    middle = (low >> DIGIT) + ((mantissa >> DIGIT) << shift)
    return (place >> 5) - _BIAS, (low & LARGEST, middle & LARGEST, middle >> DIGIT)


def _special_parts(aggregate: int, rows: Rows | None, values: NDArray[np.float64]) -> Iterator[Part]:
    kinds: Iterable[tuple[Counted, Any]] = (
        ("nan", np.isnan(values)),
        ("inf", values == math.inf),
        ("-inf", values == -math.inf),
    )
    for kind, found in kinds:
        at = flatnonzero(found)
        if len(at):
            yield _ones((aggregate, kind), at if rows is None else rows[at])


def _ones(column: ColumnKey, rows: Rows | None) -> Part:
    return Part(column, rows, None, 1)
