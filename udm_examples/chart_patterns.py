"""Chart patterns of technical analysis as user-defined operators: prices in, the periods of the patterns out (paper 001, I).

The shapes are those of R. Edwards, J. Magee, "Technical Analysis of Stock Trends", 5th edition, 1966, chapters 6 (head and
shoulders) and 9 (double tops), with a measurable condition of A. Lo, H. Mamaysky, J. Wang, "Foundations of Technical Analysis",
The Journal of Finance 55(4), 2000, section II.A: prices that should be level lie within a tolerance of their average. Lo et al.
smooth the prices to find extrema; here an extremum is a price from which the prices turn by a given fraction.

1. *Prices* are ordered by the start of their events; of several at one time the mean counts. What is not finite and positive is
   left out.
2. A *peak* is a price from which, going either way, the price is `swing` lower before it is higher (or, going back, as high
   again). A *trough* is a price from which, going either way, it is `swing` higher before it is lower (or, going back, as low).
   "`swing` lower" than p is at most `p * (1 - swing)`. Peaks and troughs come in turn.
3. A *pattern* is a number of peaks, with the troughs between them, that has the shape. Its neckline leads through its troughs.
4. A pattern is *complete* at the first price below the neckline after its last peak, unless a price above its highest peak comes
   before. It lives from its first peak until then.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar, NamedTuple

import streamdsl as sd
from streamdsl.errors import QueryError


class Price(NamedTuple):
    """A price and its time in ticks."""

    time: int
    price: float


@dataclass(frozen=True, slots=True)
class ChartPattern:
    """A complete pattern: its peaks and troughs in turn, and the neckline at the time at which the price fell below it."""

    name: str
    points: tuple[Price, ...]
    neckline: float


def price_series(events: Sequence[sd.IntervalEvent[float]]) -> list[Price]:
    """Return the finite, positive prices in order of start, one a time: the mean of those that start together.

    >>> price_series([sd.IntervalEvent(7, 8, 10.0), sd.IntervalEvent(3, 4, 12.0), sd.IntervalEvent(7, 8, 11.0)])
    [Price(time=3, price=12.0), Price(time=7, price=10.5)]
    """
    at: dict[int, list[float]] = {}
    for event in events:
        if 0 < event.payload < math.inf:
            at.setdefault(event.start_time, []).append(event.payload)
    return [Price(time, fmean(at[time])) for time in sorted(at)]


def turning_points(prices: Sequence[Price], swing: float) -> list[Price]:
    """Return the peaks and the troughs of a series in order of time.

    >>> turning_points([Price(t, p) for t, p in enumerate([10, 12, 11.9, 12.1, 11, 11.4, 10.8, 13, 12])], swing=0.05)
    [Price(time=3, price=12.1), Price(time=6, price=10.8), Price(time=7, price=13)]
    """
    found: list[Price] = []
    rising: bool | None = None
    highest = lowest = prices[0] if prices else Price(0, math.nan)
    for at in prices:
        highest, lowest = max(highest, at, key=_height), min(lowest, at, key=_height)
        if rising is not False and at.price <= highest.price * (1 - swing):
            found += [highest] if rising else []
            rising, lowest = False, at
        elif rising is not True and lowest.price <= at.price * (1 - swing):
            found += [] if rising is None else [lowest]
            rising, highest = True, at
    return found


def _height(at: Price) -> float:
    return at.price


class TopPattern(sd.TimeSensitiveUDO[float, ChartPattern]):
    """What all tops share: a number of peaks of a certain shape, and a fall below the neckline that completes them.

    Not time-bound: a pattern is found when it is complete, and lives from its first peak on. Only starts are read, so right
    clipping changes nothing. A pattern is reported by each window that holds the whole of it, and the rise before it; what
    begins before the window is reported from the window's start on.
    """

    ignores_ends_beyond_window: ClassVar[bool] = True
    name: ClassVar[str]
    peaks: ClassVar[int]

    def __init__(self, swing: float = 0.05, tolerance: float = 0.015) -> None:
        if not 0 < swing < 1 or not 0 <= tolerance < 1:
            raise QueryError(
                f"swing={swing} and tolerance={tolerance} are not fractions of a price",
                hint="swing lies between 0 and 1, tolerance is 0 or lies between 0 and 1",
            )
        self.swing = swing
        self.tolerance = tolerance

    @abstractmethod
    def has_shape(self, points: Sequence[Price]) -> bool:
        """Say whether peaks and troughs in turn, the first and the last of them peaks, have the pattern's shape."""

    def level(self, *points: Price) -> bool:
        """Say whether prices lie within the tolerance of their average."""
        average = fmean(map(_height, points))
        return all(abs(point.price - average) <= self.tolerance * average for point in points)

    def compute_result(
        self, events: Sequence[sd.IntervalEvent[float]], window: sd.WindowDescriptor
    ) -> Iterator[sd.IntervalEvent[ChartPattern]]:
        """Yield the complete patterns of the window."""
        prices = price_series(events)
        turns = turning_points(prices, self.swing)
        size = 2 * self.peaks - 1
        for points in (turns[i : i + size] for i in range(len(turns) - size + 1)):
            if points[0].price > points[1].price and self.has_shape(points):
                yield from self._complete(points, prices, window)

    def _complete(
        self, points: list[Price], prices: list[Price], window: sd.WindowDescriptor
    ) -> Iterator[sd.IntervalEvent[ChartPattern]]:
        top = max(map(_height, points))
        for at in prices:
            if at.time <= points[-1].time:
                continue
            neckline = _line(points[1], points[-2], at.time)
            if at.price < neckline and at.time > window.start_time:
                yield sd.IntervalEvent(
                    max(points[0].time, window.start_time), at.time, ChartPattern(self.name, tuple(points), neckline)
                )
            if at.price < neckline or at.price > top:
                return


class DoubleTop(TopPattern):
    """Two level peaks, and a fall below the trough between them.

    >>> prices = [100, 120, 108, 119, 112, 107, 103]
    >>> days = [sd.IntervalEvent(day, day + 1, float(price)) for day, price in enumerate(prices)]
    >>> [top] = DoubleTop().compute_result(days, sd.WindowDescriptor(0, 30))
    >>> top.start_time, top.end_time, [price for _, price in top.payload.points], top.payload.neckline
    (1, 5, [120.0, 108.0, 119.0], 108.0)

    In a query, for each share:

    >>> @dataclass(frozen=True)
    ... class Trade:
    ...     share: str
    ...     price: float
    >>> trades = sd.from_rows([(day, day + 1, Trade("ACME", price)) for day, price in enumerate(prices)])
    >>> months = trades.group_by("share").tumbling_window(30, clip=sd.Clip.RIGHT, output=sd.Output.UNCHANGED)
    >>> for le, re, (share, found) in months.apply(DoubleTop(), lambda e: e.price).run():
    ...     print(le, re, share, found.name)
    1 5 ACME double top
    """

    name: ClassVar[str] = "double top"
    peaks: ClassVar[int] = 2

    def has_shape(self, points: Sequence[Price]) -> bool:
        """Say whether the two peaks are level."""
        first, _, second = points
        return self.level(first, second)


class HeadAndShoulders(TopPattern):
    """Three peaks, of which the second is the highest and the others are level, as are the two troughs between them.

    >>> prices = [100, 112, 105, 125, 106, 112, 104, 98]
    >>> days = [sd.IntervalEvent(day, day + 1, float(price)) for day, price in enumerate(prices)]
    >>> [top] = HeadAndShoulders().compute_result(days, sd.WindowDescriptor(0, 30))
    >>> top.start_time, top.end_time, [price for _, price in top.payload.points], top.payload.neckline
    (1, 6, [112.0, 105.0, 125.0, 106.0, 112.0], 107.0)

    In a query:

    >>> month = sd.from_rows([(day, day + 1, price) for day, price in enumerate(prices)]).tumbling_window(30)
    >>> for le, re, found in month.apply(HeadAndShoulders()).run():
    ...     print(le, re, found.name)
    0 30 head and shoulders
    """

    name: ClassVar[str] = "head and shoulders"
    peaks: ClassVar[int] = 3

    def has_shape(self, points: Sequence[Price]) -> bool:
        """Say whether the head is above level shoulders, and the troughs are level."""
        left, first, head, second, right = points
        above = head.price > left.price and head.price > right.price
        return above and self.level(left, right) and self.level(first, second)


def _line(a: Price, b: Price, time: int) -> float:
    """Return the height at a time of the line through two points, level if they are one."""
    if a == b:
        return a.price
    return a.price + (b.price - a.price) * (time - a.time) / (b.time - a.time)
