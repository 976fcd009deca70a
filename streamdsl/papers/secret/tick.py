"""Tick: which Reports a tuple's arrival invokes (paper 000, 3.2.4)."""

from __future__ import annotations

from collections.abc import Iterable

from streamdsl.papers.secret.profile import Tick
from streamdsl.papers.secret.tuples import Given, read


class Ticker:
    """The state of ticks: the time of the last tick, the highest time, and the highest batch-id.

    A tick's time is that of the last arrival that invoked some Report, whatever that reported.

    >>> ticker = Ticker(0, Tick.TUPLE)
    >>> [list(ticker.arrive(t, n)) for n, t in enumerate([2, 2, 5], 1)]
    [[0, 1], [2], [2, 3, 4]]
    """

    __slots__ = ("_bid", "_kind", "_t0", "highest", "last")

    def __init__(self, t0: int, kind: Tick) -> None:
        self._t0 = t0
        self._kind = Tick(kind)
        self._bid = 0
        self.last = t0
        self.highest = t0

    def arrive(self, t_app: int, bid: int) -> range:
        """Return the application times whose Report an arrival invokes, and remember it."""
        found = self._invoked(t_app, bid)
        if found:
            self.last = max(self._t0, t_app)
        self.highest = max(self.highest, t_app)
        self._bid = max(self._bid, bid)
        return found

    def _invoked(self, t_app: int, bid: int) -> range:
        if self._kind is Tick.TIME:
            return range(self.last, t_app) if t_app > self.highest else range(0)
        if self._kind is Tick.BATCH and bid <= self._bid:
            return range(0)
        return range(t_app, t_app + 1) if t_app == self.last else range(self.last, t_app)


def ticks(tuples: Iterable[Given], t0: int, tick: Tick) -> list[tuple[int, list[int]]]:
    """Return for each tuple its system time and the application times whose Report it invokes.

    >>> ticks([("a", 1, 30, 1), ("b", 2, 40, 2), ("c", 2, 45, 2)], 0, Tick.TIME)
    [(30, [0]), (40, [1]), (45, [])]
    """
    ticker = Ticker(t0, tick)
    return [(each.t_sys, list(ticker.arrive(each.t_app, each.bid))) for each in read(tuples)]
