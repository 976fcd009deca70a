"""The exponentially weighted moving average: a value counts half as much for every half-life of its age.

Sources: S. W. Roberts, *Control Chart Tests Based on Geometric Moving Averages*, Technometrics 1(3), 239-250, 1959; for values at
uneven times A. Eckner, *Algorithms for Unevenly Spaced Time Series: Moving Averages and Other Rolling Operators*, 2019. The
weights are those of pandas' `ewm(halflife=..., times=...)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import streamdsl as sd
from udm_examples.exact_sum import ExactSum
from udm_examples.settings import positive


class Ewma(sd.TimeSensitiveUDA[float, float]):
    """The average of a window's values with weights `2 ** (-age / half_life)`, an event's age being `W.RE - LE`.

    What all ages share cancels in the quotient, so they are counted from the newest event. Its weight is then 1, and a window
    whose events are all old is not 0 / 0.

    The module reads starts only, and says so, so that windows close at their end; left clipping would make events that began
    before the window younger than they are.

    `half_life` is in ticks. Raises `QueryError` if it is not positive and finite.

    >>> events = [sd.IntervalEvent(0, 1, 10.0), sd.IntervalEvent(5, 6, 40.0)]
    >>> Ewma(half_life=5).compute_result(events, sd.WindowDescriptor(0, 10))
    30.0

    In a query:

    >>> prices = sd.from_rows([(0, 1, 10.0), (5, 6, 40.0), (12, 13, 20.0)])
    >>> prices.tumbling_window(10).aggregate(price=Ewma(half_life=5).of(lambda e: e)).run().cht()
    CHT
      [0, 10) price=30.0
      [10, 20) price=20.0
    """

    ignores_ends_beyond_window: ClassVar[bool] = True

    def __init__(self, half_life: float) -> None:
        self.half_life = positive("half_life", half_life)

    def compute_result(self, events: Sequence[sd.IntervalEvent[float]], window: sd.WindowDescriptor) -> float:
        """Return the weighted average."""
        newest = max(event.start_time for event in events)
        weighted, weights = ExactSum(), ExactSum()
        for event in events:
            weight = math.exp2(-(newest - event.start_time) / self.half_life)
            weighted.add(event.payload, weight)
            weights.add(weight)
        return weighted.over(weights)
