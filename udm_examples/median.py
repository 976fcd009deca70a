"""The median as a user-defined aggregate: values in, one value out (paper 001, IV.C), computed anew or kept up to date."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import streamdsl as sd
from udm_examples.quantile import SlidingQuantile, between


class Median(sd.UDA[float, float]):
    """The middle value of a window; of an even number of values the mean of the two in the middle. NaN counts as the largest.

    >>> Median().compute_result([7, 1, 3])
    3.0
    >>> Median().compute_result([7, 1, 3, 4])
    3.5

    In a query it is taken of an expression:

    >>> fares = sd.from_rows([(1, 2, 10.0), (3, 4, 90.0), (5, 6, 20.0), (12, 13, 30.0)])
    >>> for le, re, stats in fares.tumbling_window(10).aggregate(fare=Median().of(lambda e: e)).run():
    ...     print(le, re, stats.fare)
    0 10 20.0
    10 20 30.0
    """

    def compute_result(self, payloads: Sequence[float]) -> float:
        """Return the median of the values."""
        ordered = sorted(payloads, key=lambda value: (value != value, value))
        return between(float(ordered[(len(ordered) - 1) // 2]), float(ordered[len(ordered) // 2]), Fraction(1, 2))


class SlidingMedian(SlidingQuantile):
    """The same value from a sorted state: where windows are large or overlap, a change costs a search and not a sort.

    >>> module = SlidingMedian()
    >>> state = module.add_events_to_state(module.create_state(), [7, 1, 3, 4])
    >>> module.compute_result(state)
    3.5
    >>> module.compute_result(module.remove_event_from_state(state, 7))
    3.0

    In a query, over windows that overlap:

    >>> fares = sd.from_rows([(1, 2, 10.0), (3, 4, 90.0), (5, 6, 20.0), (12, 13, 30.0)])
    >>> for le, re, fare in fares.hopping_window(10, 5).aggregate(SlidingMedian(), lambda e: e).run():
    ...     print(le, re, fare)
    -5 5 50.0
    0 10 20.0
    5 15 25.0
    10 20 30.0
    """

    def __init__(self) -> None:
        super().__init__(0.5)
