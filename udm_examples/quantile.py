"""The quantile over a sorted state: a change costs a search, not a sort of the window.

Source: R. J. Hyndman, Y. Fan, *Sample Quantiles in Statistical Packages*, The American Statistician 50(4), 361-365, 1996: their
definition 7 (`"linear"`, the default of numpy and R) and definition 1 (`"inverted_cdf"`: a value of the window itself).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from sortedcontainers import SortedList

import streamdsl as sd
from udm_examples.exact_sum import rounded


@dataclass(slots=True)
class Ordered:
    """The values of a window in order; NaN, which no search would find, is counted apart, as the largest."""

    values: SortedList[float] = field(default_factory=SortedList)
    nans: int = 0

    def __len__(self) -> int:
        return len(self.values) + self.nans

    def __getitem__(self, position: int) -> float:
        return float(self.values[position]) if position < len(self.values) else math.nan


class SlidingQuantile(sd.IncrementalUDA[float, Ordered, float]):
    """The q-quantile of a window, kept up to date while values come and go. NaN counts as the largest.

    `q` is read at its face value: 0.1 is one tenth, not the float next to it, so that the first decile of ten values by
    `"inverted_cdf"` is the smallest of them. Interpolation is exact and rounded once, so it never leaves its two neighbours.

    The state holds every value of the window; that of `LogQuantile` does not.

    Raises `QueryError` for a `q` that is not between 0 and 1, or an unknown method.

    >>> module = SlidingQuantile(0.75)
    >>> state = module.add_events_to_state(module.create_state(), [10.0, 40.0, 20.0, 30.0])
    >>> module.compute_result(state)
    32.5
    >>> module.compute_result(module.remove_event_from_state(state, 40.0))
    25.0

    In a query:

    >>> waits = sd.from_rows([(1, 2, 3.0), (3, 4, 9.0), (5, 6, 4.0), (12, 13, 5.0)])
    >>> p90 = SlidingQuantile(0.9, "inverted_cdf")
    >>> waits.hopping_window(10, 5).aggregate(p90=p90.of(lambda e: e)).run().cht()
    CHT
      [-5, 5) p90=9.0
      [0, 10) p90=9.0
      [5, 15) p90=5.0
      [10, 20) p90=5.0
    """

    def __init__(self, q: float, method: Literal["linear", "inverted_cdf"] = "linear") -> None:
        if method not in ("linear", "inverted_cdf"):
            raise sd.errors.QueryError(f"the method of a quantile is 'linear' or 'inverted_cdf', not {method!r}")
        self.q = share_of(q)
        self.method = method

    def create_state(self) -> Ordered:
        """Return no values."""
        return Ordered()

    def add_event_to_state(self, state: Ordered, payload: float) -> Ordered:
        """Put the value in its place."""
        if payload != payload:
            state.nans += 1
        else:
            state.values.add(payload)
        return state

    def remove_event_from_state(self, state: Ordered, payload: float) -> Ordered:
        """Take one such value out."""
        if payload != payload:
            state.nans -= 1
        else:
            state.values.remove(payload)
        return state

    def merge_states(self, a: Ordered, b: Ordered) -> Ordered:
        """Return the values of both in order."""
        a.values.update(b.values)
        a.nans += b.nans
        return a

    def copy_state(self, state: Ordered) -> Ordered:
        """Return the same values in a list of their own."""
        return Ordered(state.values.copy(), state.nans)

    def compute_result(self, state: Ordered) -> float:
        """Return the quantile."""
        if self.method == "inverted_cdf":
            return state[rank_of(self.q, len(state)) - 1]
        position = self.q * (len(state) - 1)
        below = int(position)
        share = position - below
        return between(state[below], state[below + 1], share) if share else state[below]


def share_of(q: float) -> Fraction:
    """Return the share that a quantile names, at its face value.

    >>> share_of(0.1)
    Fraction(1, 10)
    """
    if not 0 <= q <= 1:
        raise sd.errors.QueryError(f"a quantile is between 0 and 1, not {q}")
    return Fraction(str(q))


def rank_of(q: Fraction, n: int) -> int:
    """Return the rank, from 1 on, of the smallest of n values that has at least a share q of them at or below it.

    >>> rank_of(share_of(0.07), 100), rank_of(share_of(0), 100)
    (7, 1)
    """
    return max(1, math.ceil(q * n))


def between(low: float, high: float, share: Fraction) -> float:
    """Return the number that lies a share of the way from one to the other, rounded once; a share between 0 and 1.

    >>> between(1.0, 2.0, Fraction(1, 4)), between(-float("inf"), 2.0, Fraction(1, 2))
    (1.25, -inf)
    """
    if low == high:
        return low
    if math.isfinite(low) and math.isfinite(high):
        return rounded(Fraction(low) + (Fraction(high) - Fraction(low)) * share)
    return low + high
