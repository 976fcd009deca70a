"""Exact sums: numbers taken apart into digits that add up in lanes, and put together again, rounded once.

Any finite float is a whole multiple of 2 ** -1074, so it has an exact place among digits of weight 2 ** (32 * w).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.columnar.lanes import Lanes
from streamdsl.engine.columnar.terms import DIGIT, Counted, LaneKey, Part
from streamdsl.expr.table import Column, Rows, column_of, flatnonzero
from streamdsl.temporal.time import Ticks

_MASK: Final = 2**DIGIT - 1
_DIRECT: Final = 2**45
"""Integers up to this go into the lane of weight 0 as they are."""
_BIAS: Final = 34
"""The digit of the smallest float has weight -34 (2 ** -1074 is 2 ** (14 - 32 * 34))."""
_SAFE_WEIGHTS: Final = range(-30, 29)
"""Digits of these weights are doubles, and so are their rounding errors."""


def integer_parts(aggregate: int, rows: Rows | None, values: Ticks) -> Iterator[Part]:
    """Yield what integers add to an aggregate's lanes.

    >>> [(part.lane, part.amounts.tolist()) for part in integer_parts(0, None, np.array([2**62 + 5]))]
    [((0, 0), [5]), ((0, 1), [1073741824])]
    """
    if not len(values):
        return
    low, high = int(values.min()), int(values.max())
    if max(-low, high) <= _DIRECT:
        yield Part((aggregate, 0), rows, values, max(-low, high, 1))
        return
    yield Part((aggregate, 0), rows, values & _MASK, _MASK)
    yield Part((aggregate, 1), rows, values >> DIGIT, 2 ** (DIGIT - 1))


def huge_parts(aggregate: int, rows: Sequence[int], values: Sequence[int]) -> Iterator[Part]:
    """Yield what integers of any size add to an aggregate's lanes.

    >>> [(part.lane, part.amounts.tolist()) for part in huge_parts(0, [0], [2**70])]
    [((0, 2), [64])]
    """
    for row, value in zip(rows, values, strict=True):
        rest, weight = value, 0
        while rest not in (0, -1):
            if rest & _MASK:
                yield _single((aggregate, weight), row, rest & _MASK)
            rest, weight = rest >> DIGIT, weight + 1
        if rest:
            yield _single((aggregate, weight), row, rest)


def _single(lane: LaneKey, row: int, amount: int) -> Part:
    return Part(lane, np.array([row]), np.array([amount], dtype=np.int64), _MASK)


def float_parts(aggregate: int, rows: Rows | None, values: NDArray[np.float64]) -> Iterator[Part]:
    """Yield what floats add to an aggregate's lanes; NaN and infinities are counted, so that they can go again.

    >>> [(part.lane, part.amounts) for part in float_parts(0, None, np.array([0.75, 3.0]))]
    [((0, 'floats'), None), ((0, 0), array([0, 3])), ((0, -1), array([3221225472,          0])), ((0, -2), array([0, 0]))]
    """
    if not len(values):
        return
    yield _ones((aggregate, "floats"), rows)
    finite = np.isfinite(values)
    if not finite.all():
        yield from _special_parts(aggregate, rows, values)
        values = np.where(finite, values, 0.0)
    cut = _cut(values)
    if cut is not None:
        yield from (Part((aggregate, weight), rows, digits, _MASK) for weight, digits in cut)
        return
    weight, digits = _digits(values)
    low, high = int(weight.min()), int(weight.max())
    for first in range(low, high + 1):
        at = None if low == high else flatnonzero(weight == first)
        if at is None or len(at):
            yield from _placed(aggregate, first, rows, at, digits)


def _placed(aggregate: int, first: int, rows: Rows | None, at: Rows | None, digits: Sequence[Ticks]) -> Iterator[Part]:
    chosen = rows if at is None else at if rows is None else rows[at]
    for place, column in enumerate(digits):
        amounts = column if at is None else column[at]
        if amounts.any():
            yield Part((aggregate, first + place), chosen, amounts, _MASK)


def _cut(values: NDArray[np.float64]) -> list[tuple[int, Ticks]] | None:
    """Return the digits of all floats, weight by weight, None if their magnitudes are too far apart, or extreme."""
    sizes = np.abs(values)
    largest = float(sizes.max())
    if not largest:
        return []
    smallest = float(sizes.min()) or float(np.min(sizes, where=sizes > 0, initial=largest))
    top, bottom = (math.frexp(largest)[1] - 1) // DIGIT, (math.frexp(smallest)[1] - 53) // DIGIT
    if top - bottom > 3 or bottom not in _SAFE_WEIGHTS or top not in _SAFE_WEIGHTS:
        return None
    found, rest = [], values
    for weight in range(top, bottom, -1):
        digit = np.trunc(rest * 2.0 ** (-DIGIT * weight))
        rest = rest - digit * 2.0 ** (DIGIT * weight)
        found.append((weight, digit.astype(np.int64)))
    return [*found, (bottom, (rest * 2.0 ** (-DIGIT * bottom)).astype(np.int64))]


def _digits(values: NDArray[np.float64]) -> tuple[Ticks, tuple[Ticks, Ticks, Ticks]]:
    """Return the weight of each float's lowest digit, and its three digits."""
    bits = np.ascontiguousarray(values).view(np.int64)
    exponent = (bits >> 52) & 0x7FF
    mantissa = (bits & (2**52 - 1)) | ((exponent > 0).astype(np.int64) << 52)
    mantissa = np.where(bits < 0, -mantissa, mantissa)
    place = np.where(mantissa == 0, 1023, np.maximum(exponent, 1)) + 13
    shift = place & (DIGIT - 1)
    low = (mantissa & _MASK) << shift
    middle = (low >> DIGIT) + ((mantissa >> DIGIT) << shift)
    return (place >> 5) - _BIAS, (low & _MASK, middle & _MASK, middle >> DIGIT)


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


def _ones(lane: LaneKey, rows: Rows | None) -> Part:
    return Part(lane, rows, None, 1)


def integers(lanes: Lanes, aggregate: int) -> Column:
    """Return an aggregate's sums of integers, position by position: `int64` if all fit, else Python integers."""
    weights = lanes.weights(aggregate)
    if weights == [0]:
        return lanes.counts((aggregate, 0)).copy()
    if not weights:
        return np.zeros(lanes.size, dtype=np.int64)
    lanes.carry()
    beyond = [w for w in lanes.weights(aggregate) if w not in (0, 1)]
    high = lanes.counts((aggregate, 1))
    if not any(lanes.counts((aggregate, w)).any() for w in beyond) and (np.abs(high) < 2**31 - 1).all():
        return (high << DIGIT) + lanes.counts((aggregate, 0))
    return column_of([whole >> scale for whole, scale in _exact(lanes, aggregate)])


def floats(lanes: Lanes, aggregate: int) -> NDArray[np.float64]:
    """Return an aggregate's sums with floats in them, position by position, each rounded once; too large is infinite."""
    lanes.carry()
    weights = lanes.weights(aggregate)
    total, error, doubt = (np.zeros(lanes.size) for _ in range(3))
    unsafe = np.zeros(lanes.size, dtype=np.bool_)
    for weight in reversed(weights):
        digit = lanes.counts((aggregate, weight))
        if weight not in _SAFE_WEIGHTS:
            unsafe |= digit != 0
            continue
        total, lost = _two_sum(total, digit * 2.0 ** (DIGIT * weight))
        error, lost = _two_sum(error, lost)
        doubt += np.abs(lost)
    found = total + error
    # What was lost twice may be tiny, and yet decide where a tie is rounded to.
    less, more = np.nextafter(error - 2 * doubt, -math.inf), np.nextafter(error + 2 * doubt, math.inf)
    unsafe |= (doubt > 0) & (total + less != total + more)
    exactly = flatnonzero(unsafe)
    if len(exactly):
        found[exactly] = [_rounded(whole, scale) for whole, scale in _exact(lanes.take(exactly), aggregate)]
    return _with_specials(lanes, aggregate, found)


def _two_sum(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rounded sum and what rounding lost, which is a float too (Knuth)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def _exact(lanes: Lanes, aggregate: int) -> Iterator[tuple[int, int]]:
    """Yield each sum as an integer and the power of two that divides it."""
    weights = lanes.weights(aggregate)
    lowest = min([0, *weights])
    columns = [lanes.counts((aggregate, weight)).tolist() for weight in weights]
    shifts = [DIGIT * (weight - lowest) for weight in weights]
    for digits in zip(*columns, strict=True):
        yield sum(digit << shift for digit, shift in zip(digits, shifts, strict=True)), -DIGIT * lowest


def _rounded(whole: int, scale: int) -> float:
    try:
        return whole / (1 << scale)
    except OverflowError:
        return math.inf if whole > 0 else -math.inf


def _with_specials(lanes: Lanes, aggregate: int, found: NDArray[np.float64]) -> NDArray[np.float64]:
    if not any(lanes.holds((aggregate, kind)) for kind in ("nan", "inf", "-inf")):
        return found
    up, down = lanes.counts((aggregate, "inf")) > 0, lanes.counts((aggregate, "-inf")) > 0
    found = np.where(up, math.inf, np.where(down, -math.inf, found))
    return np.where((lanes.counts((aggregate, "nan")) > 0) | (up & down), math.nan, found)
