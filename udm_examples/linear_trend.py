"""The least-squares line of value over time: how fast a value rises, and where it started.

Source: N. R. Draper, H. Smith, *Applied Regression Analysis*, 3rd ed., Wiley 1998, chapter 1. Where there is no line the result
is that of SQL's `REGR_SLOPE` and `REGR_INTERCEPT` (ISO/IEC 9075-2): None.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import streamdsl as sd
from udm_examples.exact_sum import ExactSum, rounded
from udm_examples.settings import ticks


@dataclass(frozen=True, slots=True)
class Trend:
    """A line: what the value gains per unit of time, and what it is at the window's start; None if all start together."""

    slope: float | None
    intercept: float | None


@dataclass(slots=True)
class Moments:
    """The sums over a window from which its line follows: of 1, t, t * t, y, t * y."""

    n: int = 0
    t: int = 0
    tt: int = 0
    y: ExactSum = field(default_factory=ExactSum)
    ty: ExactSum = field(default_factory=ExactSum)


class LinearTrend(sd.TimeSensitiveIncrementalUDA[float, Moments, Trend]):
    """The line through a window's values that has the least squared distances; an event counts at its LE.

    The formula subtracts large sums that nearly cancel; of times in microseconds since 1970 floats would keep no digit. Here
    times are integers and sums are exact, so nothing is lost, members may be removed, and states say nothing of the window. The
    result is centred: `intercept` is the line at the window's start, not at time 0.

    `per` is the unit of the slope in ticks: with ticks of microseconds `per=1_000_000` gives the gain per second. The module
    reads starts only, and says so, so that windows close at their end; left clipping would move what began before the window to
    its start.

    Raises `QueryError` if `per` is not a positive whole number.

    >>> module, window = LinearTrend(), sd.WindowDescriptor(100, 110)
    >>> readings = [sd.IntervalEvent(100, 101, 1.0), sd.IntervalEvent(102, 103, 2.0), sd.IntervalEvent(104, 105, 3.0)]
    >>> state = module.add_events_to_state(module.create_state(), readings, window)
    >>> module.compute_result(state, window)
    Trend(slope=0.5, intercept=1.0)

    In a query:

    >>> levels = sd.from_rows([(100, 101, 1.0), (102, 103, 2.0), (104, 105, 3.0), (111, 112, 7.0)])
    >>> levels.tumbling_window(10).aggregate(LinearTrend(per=2), lambda e: e).run().cht()
    CHT
      [100, 110) slope=1.0 intercept=1.0
      [110, 120) slope=None intercept=None
    """

    ignores_ends_beyond_window: ClassVar[bool] = True

    def __init__(self, per: int = 1) -> None:
        self.per = ticks("per", per)

    def create_state(self) -> Moments:
        """Return the moments of no events."""
        return Moments()

    def add_event_to_state(self, state: Moments, event: sd.IntervalEvent[float], window: sd.WindowDescriptor) -> Moments:
        """Add an event's moments."""
        t = event.start_time
        state.n += 1
        state.t += t
        state.tt += t * t
        state.y.add(event.payload)
        state.ty.add(event.payload, t)
        return state

    def remove_event_from_state(self, state: Moments, event: sd.IntervalEvent[float], window: sd.WindowDescriptor) -> Moments:
        """Take an event's moments out again."""
        t = event.start_time
        state.n -= 1
        state.t -= t
        state.tt -= t * t
        state.y.remove(event.payload)
        state.ty.remove(event.payload, t)
        return state

    def merge_states(self, a: Moments, b: Moments) -> Moments:
        """Return the moments of both."""
        a.n += b.n
        a.t += b.t
        a.tt += b.tt
        a.y.merge(b.y)
        a.ty.merge(b.ty)
        return a

    def compute_result(self, state: Moments, window: sd.WindowDescriptor) -> Trend:
        """Return the line."""
        n, t, y, ty = state.n, state.t, state.y.finite, state.ty.finite
        spread = n * state.tt - t * t
        if not spread:
            return Trend(None, None)
        if not (state.y.is_finite and state.ty.is_finite):
            return Trend(math.nan, math.nan)
        slope = (n * ty - t * y) / spread
        start = y / n + slope * (window.start_time - Fraction(t, n))
        return Trend(rounded(slope * self.per), rounded(start))
