"""The median as a user-defined aggregate: values in, one value out (paper 001, IV.C)."""

from __future__ import annotations

from collections.abc import Sequence

import streamdsl as sd


class Median(sd.UDA[float, float]):
    """The middle value of a window; of an even number of values the mean of the two in the middle.

    >>> Median().compute_result([7, 1, 3])
    3.0
    >>> Median().compute_result([7, 1, 3, 4])
    3.5

    In a query it is taken of an expression:

    >>> fares = sd.from_rows([(1, 2, 10.0), (3, 4, 90.0), (5, 6, 20.0), (12, 13, 30.0)])
    >>> for le, re, stats in fares.tumbling_window(10).aggregate(fare=Median().of(lambda e: e.value)).run():
    ...     print(le, re, stats.fare)
    0 10 20.0
    10 20 30.0
    """

    def compute_result(self, payloads: Sequence[float]) -> float:
        """Return the median of the values."""
        ordered = sorted(payloads)
        middle = len(ordered) // 2
        if len(ordered) % 2:
            return float(ordered[middle])
        return (ordered[middle - 1] + ordered[middle]) / 2
