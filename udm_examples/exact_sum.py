"""A sum that keeps every bit, for states that members are taken out of again.

A float sum rounds each time it is changed: `(1.0 + 1e16) - 1e16` is 0.0. A state kept in floats would remember every value that
came and went, and a window's result would depend on its corrections and their order. `math.fsum` is exact, but it needs the whole
list, which a state does not keep. Every finite float is a fraction of integers, and fractions form a group: what is added and
then removed leaves no trace, and parts may be summed apart. The result is rounded once, at the end.

The idea is the long accumulator of U. Kulisch, *Computer Arithmetic and Validity*, 2nd ed., de Gruyter 2013, chapter 8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(slots=True, eq=False)
class ExactSum:
    """A sum of products: a fraction, and the numbers of its NaNs and infinities, which no subtraction would take out.

    The fraction is not reduced: floats have powers of two below the line, so the common denominator stays small by itself.

    >>> total = ExactSum()
    >>> for value in (1.0, 1e16, float("inf")):
    ...     total.add(value)
    >>> total.value
    inf
    >>> for value in (1e16, float("inf")):
    ...     total.remove(value)
    >>> total.value
    1.0
    """

    numerator: int = 0
    denominator: int = 1
    nans: int = 0
    infinities: int = 0
    negative_infinities: int = 0

    def add(self, value: float, times: float = 1) -> None:
        """Add `value * times`."""
        self._change(value, times, 1)

    def remove(self, value: float, times: float = 1) -> None:
        """Take `value * times` out again."""
        self._change(value, times, -1)

    def merge(self, other: ExactSum) -> None:
        """Add another sum."""
        self._add(other.numerator, other.denominator)
        self.nans += other.nans
        self.infinities += other.infinities
        self.negative_infinities += other.negative_infinities

    @property
    def is_finite(self) -> bool:
        """Whether no NaN and no infinity is in the sum."""
        return not (self.nans or self.infinities or self.negative_infinities)

    @property
    def finite(self) -> Fraction:
        """The exact sum of what is finite."""
        return Fraction(self.numerator, self.denominator)

    @property
    def value(self) -> float:
        """The sum, rounded once."""
        if self.is_finite:
            return rounded(self.finite)
        if self.nans or (self.infinities and self.negative_infinities):
            return math.nan
        return math.inf if self.infinities else -math.inf

    def over(self, divisor: ExactSum) -> float:
        """Return the quotient of two sums, rounded once. Raises `ZeroDivisionError` if the divisor is 0.

        >>> ExactSum(1).over(ExactSum(3))
        0.3333333333333333
        """
        if self.is_finite and divisor.is_finite:
            return rounded(self.finite / divisor.finite)
        return self.value / divisor.value

    def _change(self, value: float, times: float, sign: int) -> None:
        if math.isfinite(value) and math.isfinite(times):
            (a, b), (c, d) = value.as_integer_ratio(), times.as_integer_ratio()
            self._add(sign * a * c, b * d)
            return
        product = value * times
        self.nans += sign * (product != product)
        self.infinities += sign * (product == math.inf)
        self.negative_infinities += sign * (product == -math.inf)

    def _add(self, numerator: int, denominator: int) -> None:
        if self.denominator % denominator:
            common = math.lcm(self.denominator, denominator)
            self.numerator *= common // self.denominator
            self.denominator = common
        self.numerator += numerator * (self.denominator // denominator)


def rounded(exact: Fraction) -> float:
    """Return the nearest float; an infinity beyond the largest.

    >>> rounded(Fraction(1, 3)), rounded(Fraction(10**400))
    (0.3333333333333333, inf)
    """
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
