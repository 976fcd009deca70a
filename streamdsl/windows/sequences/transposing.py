"""Transposition: when linear sequences of queries with different starts have the same windows (paper 003, property 4)."""

from __future__ import annotations

from fractions import Fraction

from streamdsl.windows.sequences.named import Linear
from streamdsl.windows.sequences.numbers import Number


def synchronous(first: Linear, second: Linear, hidden: int, least: Number) -> bool:
    """Say whether two sequences with the same slopes and rate have the same windows from the second's first window on.

    In the terms of property 4 `hidden` is D; `least` is the smallest bound of the second sequence, at which windows are cut.

    >>> synchronous(Linear((1, 0), (1, 3), 1), Linear((1, 5), (1, 8), 1), 0, 5)
    True
    """
    (a, b), (c, d), rate = first.start, first.end, first.rate
    assert rate is not None
    windows = Fraction(second.end[1] - d + hidden) / rate
    if windows.denominator != 1 or windows < 0 or (windows and c != rate):
        return False
    if a:
        return second.start[1] == b + a * windows - hidden
    return max(least, second.start[1]) == max(least, b - hidden)
