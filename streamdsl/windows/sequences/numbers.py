"""Exact numbers, and batches: the order of tuples in time (paper 003, definitions 1 and 2)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final, TypeAlias

from streamdsl.errors import QueryError
from streamdsl.temporal.time import INFINITY

Number: TypeAlias = int | Fraction
Given: TypeAlias = int | Fraction | float
"""A number as users write it; `exact` converts it."""
Batch: TypeAlias = tuple[Number, int]
"""A time, and the number of the batch among those of the same time, from 0."""
At: TypeAlias = tuple[Given, int] | Given
"""A batch, or a bare time, which means the moment after all batches of that time."""

LAST: Final = INFINITY
"""A batch number greater than that of any batch."""
BEFORE: Final = -1
"""A batch number smaller than that of any batch."""


def exact(value: object) -> Number:
    """Return a number as an `int` if it is whole, else as a `Fraction`; floats are converted exactly.

    >>> exact(0.5), exact(2.0)
    (Fraction(1, 2), 2)
    >>> exact("5")
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: '5' is not a number of time or of positions
    Hint: write an int, a Fraction, or a finite float
    """
    if type(value) is int:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)) or not math.isfinite(value):
        raise QueryError(f"{value!r} is not a number of time or of positions", hint="write an int, a Fraction, or a finite float")
    found = Fraction(value)
    return found.numerator if found.denominator == 1 else found


def batch(at: At) -> Batch:
    """Return a batch; a bare time becomes the moment after all batches of that time.

    >>> batch((2.0, 1)), batch(3)[0]
    ((2, 1), 3)
    """
    return (exact(at[0]), at[1]) if isinstance(at, tuple) else (exact(at), LAST)


def positive(value: object, what: str) -> Number:
    """Return a number greater than 0 as an exact one; raises `QueryError` for any other.

    >>> positive(0, "rate")
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: a rate is greater than 0, not 0
    """
    number = exact(value)
    if number <= 0:
        raise QueryError(f"a {what} is greater than 0, not {number}")
    return number
