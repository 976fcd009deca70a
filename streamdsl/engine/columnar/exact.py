"""Exact sums: the digits of totals are combined, and rounded once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.columnar.accumulator_columns import AccumulatorColumns
from streamdsl.engine.columnar.digits import SPECIAL, halves
from streamdsl.engine.columnar.kernels import DIGIT_SUMMER
from streamdsl.engine.columnar.terms import DIGIT, SAFE_WEIGHTS
from streamdsl.expr.table import Column, column_of, flatnonzero
from streamdsl.temporal.time import Ticks

Reals: TypeAlias = NDArray[np.float64]


def integers(totals: AccumulatorColumns, aggregate: int) -> Column:
    """Return an aggregate's sums of integers, position by position: `int64` if all fit, else Python integers."""
    weights = totals.weights(aggregate)
    if weights == [0]:
        return totals.counts((aggregate, 0)).copy()
    if not weights:
        return np.zeros(totals.size, dtype=np.int64)
    totals.carry()
    beyond = [w for w in totals.weights(aggregate) if w not in (0, 1)]
    high = totals.counts((aggregate, 1))
    if not any(totals.counts((aggregate, w)).any() for w in beyond) and (np.abs(high) < 2**31 - 1).all():
        return (high << DIGIT) + totals.counts((aggregate, 0))
    return column_of([whole >> scale for whole, scale in _exact(totals, aggregate)])


def floats(totals: AccumulatorColumns, aggregate: int) -> Reals:
    """Return an aggregate's sums with floats in them, position by position, each rounded once; too large is infinite."""
    totals.carry()
    total, error, doubt = _digit_sums(totals, aggregate)
    found = total + error
    unsafe = doubt == math.inf
    # What the second rounding lost is tiny, but may decide a tie.
    rows = flatnonzero((doubt > 0) & ~unsafe)
    least, most = error[rows] - 2 * doubt[rows], error[rows] + 2 * doubt[rows]
    unsafe[rows] = total[rows] + np.nextafter(least, -math.inf) != total[rows] + np.nextafter(most, math.inf)
    exactly = flatnonzero(unsafe)
    if len(exactly):
        found[exactly] = [rounded(whole, scale) for whole, scale in _exact(totals.take(exactly), aggregate)]
    return _with_specials(totals, aggregate, found)


def variances(totals: AccumulatorColumns, values: int, squares: int, counted: Ticks) -> Reals:
    """Return the variance at each position, rounded once, of an aggregate's values and their squares; 0.0 below two values.

    It is `(n q - s s) / (n (n - 1))` for n values with the sum s whose squares have the sum q. That is computed in pairs of
    floats, and with integers where what these lose may change the result, which is where nearly all cancels.
    """
    totals.carry()
    n = np.maximum(counted, 2).astype(np.float64)
    s, s_low, s_doubt = _digit_sums(totals, values)
    q, q_low, q_doubt = _digit_sums(totals, squares)
    with np.errstate(over="ignore", invalid="ignore"):
        first, first_low = _two_product(n, q)
        second, second_low = _two_product(s, s)
        top, low = _two_sum(first, -second)
        low += (first_low + n * q_low) - (second_low + 2 * s * s_low)
        below = n * (n - 1)
        found = top / below
        product, product_low = _two_product(found, below)
        rest = (((top - product) - product_low) + low) / below
        doubt = (np.abs(first) + np.abs(second)) * 2.0**-98 + (n * q_doubt + 2 * np.abs(s) * s_doubt)
        doubt = 2 * doubt / below + np.abs(rest) * 2.0**-50
        least, most = found + np.nextafter(rest - doubt, -math.inf), found + np.nextafter(rest + doubt, math.inf)
        found += rest
        # The error of a product is a float only within these sizes.
        fits = (first > 2.0**-800) & (first < 2.0**900) & ((second > 2.0**-800) | (s == 0)) & (below < 2.0**53)
        surely = fits & (least == most)
    exactly = flatnonzero(~surely & (counted > 1))
    if len(exactly):
        taken = totals.take(exactly)
        sizes = enumerate(counted[exactly].tolist())
        found[exactly] = [variance_of(taken.digits_at(values, i), taken.digits_at(squares, i), size) for i, size in sizes]
    return np.where(counted > 1, _poisoned(totals, values, found), 0.0)


def _poisoned(totals: AccumulatorColumns, values: int, found: Reals) -> Reals:
    for kind in SPECIAL:
        if totals.holds((values, kind)):
            found = np.where(totals.counts((values, kind)) > 0, math.nan, found)
    return found


def variance_of(total: tuple[int, int], squares: tuple[int, int], size: int) -> float:
    """Return the variance of so many values from their sum and that of their squares, each an integer and its scale.

    >>> variance_of((4, 0), (10, 0), 2)
    2.0
    """
    (s, s_scale), (q, q_scale) = total, squares
    scale = max(2 * s_scale, q_scale)
    top = (size * q << (scale - q_scale)) - (s * s << (scale - 2 * s_scale))
    try:
        return top / (size * (size - 1) << scale)
    except OverflowError:
        return math.inf


def _digit_sums(totals: AccumulatorColumns, aggregate: int) -> tuple[Reals, Reals, Reals]:
    """Return what `_sums` does for an aggregate's digits; the third is infinite where they are not all safe."""
    weights = list(reversed(totals.weights(aggregate)))
    safe = [weight for weight in weights if weight in SAFE_WEIGHTS]
    digits = [totals.counts((aggregate, weight)) for weight in safe]
    total, error, doubt = _sums(digits, [2.0 ** (DIGIT * weight) for weight in safe], totals.size)
    for weight in set(weights).difference(safe):
        doubt[totals.counts((aggregate, weight)) != 0] = math.inf
    return total, error, doubt


def _two_product(a: Reals, b: Reals) -> tuple[Reals, Reals]:
    """Return the rounded product and what rounding lost, which is a float too (Dekker)."""
    product = a * b
    a_high, a_low = halves(a)
    b_high, b_low = halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _sums(digits: Sequence[Ticks], scales: Sequence[float], size: int) -> tuple[Reals, Reals, Reals]:
    """Return the sums of scaled digits, what rounding them lost, and a bound of what rounding that lost."""
    adder = DIGIT_SUMMER.over(size) if digits else None
    if adder is not None:
        total, error, doubt = (np.empty(size) for _ in range(3))
        adder(tuple(digits), np.array(scales), total, error, doubt)
        return total, error, doubt
    total, error, doubt = (np.zeros(size) for _ in range(3))
    for digit, scale in zip(digits, scales, strict=True):
        total, lost = _two_sum(total, digit * scale)
        error, lost = _two_sum(error, lost)
        doubt += np.abs(lost)
    return total, error, doubt


def _two_sum(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rounded sum and what rounding lost, which is a float too (Knuth)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def _exact(totals: AccumulatorColumns, aggregate: int) -> Iterator[tuple[int, int]]:
    """Yield each sum as an integer and the power of two that divides it."""
    weights = totals.weights(aggregate)
    lowest = min([0, *weights])
    columns = [totals.counts((aggregate, weight)).tolist() for weight in weights]
    shifts = [DIGIT * (weight - lowest) for weight in weights]
    for digits in zip(*columns, strict=True):
        yield sum(digit << shift for digit, shift in zip(digits, shifts, strict=True)), -DIGIT * lowest


def rounded(whole: int, scale: int) -> float:
    """Return an integer divided by a power of two, rounded once; too large is infinite."""
    try:
        return whole / (1 << scale)
    except OverflowError:
        return math.inf if whole > 0 else -math.inf


def _with_specials(totals: AccumulatorColumns, aggregate: int, found: NDArray[np.float64]) -> NDArray[np.float64]:
    if not any(totals.holds((aggregate, kind)) for kind in ("nan", "inf", "-inf")):
        return found
    up, down = totals.counts((aggregate, "inf")) > 0, totals.counts((aggregate, "-inf")) > 0
    found = np.where(up, math.inf, np.where(down, -math.inf, found))
    return np.where((totals.counts((aggregate, "nan")) > 0) | (up & down), math.nan, found)
