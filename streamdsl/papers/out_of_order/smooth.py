"""Workload smoothing of any operator: its results leave a few at a time, within a bound on their delay (paper 004, section 6)."""

from __future__ import annotations

from collections import deque
from typing import Any

from streamdsl.papers.out_of_order.items import Item, Joined, JointPunctuation, Punctuation, Time, Tuple, Unmatched, WindowResult
from streamdsl.papers.out_of_order.punctuated_operator import Items, Operator, check_operator
from streamdsl.temporal.integers import whole_number
from streamdsl.temporal.time import INFINITY


class Smooth(Operator):
    """Another operator, whose results leave one after every `every` tuples that come in, instead of all at a window's end.

    When the operator sends punctuation v, results more than `max_delay` below it leave at once: so none is later than that, in
    windows behind a `WindowAggregate`, in ts (left.ts) behind what sends tuples (pairs). Punctuation leaves after the results
    that came before it.

    >>> from streamdsl.aggregates import count
    >>> from streamdsl.progress import WindowAggregate
    >>> query = Smooth(WindowAggregate(10, 10, count(), key=lambda p: p), every=1, max_delay=1)
    >>> query.run([(0, Tuple(ts, ts)) for ts in (1, 2)] + [(0, Punctuation(10))]), query.buffered
    ([], 2)
    >>> query.push(Tuple(11, "a"))
    [WindowResult(wid=0, key=1, value=1)]
    >>> query.push(Tuple(12, "b"))
    [WindowResult(wid=0, key=2, value=1), Punctuation(value=1, on='wid')]
    """

    def __init__(self, operator: Operator, every: int = 1, max_delay: int = 0) -> None:
        check_operator(operator)
        self.inputs = operator.inputs
        self._operator = operator
        self._every = whole_number(every, "every is", 1)
        self._max_delay = whole_number(max_delay, "max_delay is", 0)
        self._waiting: deque[Any] = deque()
        self._results = 0
        self._since = 0

    @property
    def buffered(self) -> int:
        return self._operator.buffered + self._results

    def push(self, item: Item, input: int = 0) -> Items:
        self._take(caused := self._operator.push(item, input))
        late = [self._overdue(each) for each in caused if isinstance(each, Punctuation)]
        found = self._leave(max(late, default=0))
        return found + self._next() if isinstance(item, Tuple) else found

    def close(self) -> Items:
        """Return what still waits, and what the end of all inputs causes."""
        self._take(self._operator.close())
        return self._leave(len(self._waiting))

    def _take(self, caused: Items) -> None:
        self._waiting.extend(caused)
        self._results += sum(not _is_punctuation(each) for each in caused)

    def _next(self) -> Items:
        """Let the next result go, if it is time, with the punctuation behind it."""
        self._since += 1
        if self._since < self._every:
            return []
        self._since = 0
        return self._leave(1)

    def _overdue(self, mark: Punctuation) -> int:
        """Return how many of the first in the queue must leave, so that none is too late."""
        if mark.value >= INFINITY:
            return len(self._waiting)
        least = mark.value - self._max_delay
        places = [at for at, each in enumerate(self._waiting) if (of := _value(each, mark.on)) is not None and of < least]
        return places[-1] + 1 if places else 0

    def _leave(self, n: int) -> Items:
        """Let the first n go, and the punctuation behind them."""
        found: Items = []
        while self._waiting and (len(found) < n or _is_punctuation(self._waiting[0])):
            found.append(self._waiting.popleft())
        self._results -= sum(not _is_punctuation(each) for each in found)
        return found


def _is_punctuation(item: Any) -> bool:
    return isinstance(item, (Punctuation, JointPunctuation))


def _value(item: Any, on: str) -> Time | None:
    """Return a result's value of an attribute that punctuation is on; None if it is no result, or has another attribute."""
    if isinstance(item, WindowResult):
        return item.wid if on == "wid" else None
    if isinstance(item, (Joined, Unmatched)):
        return item.left.ts if on == "left" else None
    return item.ts if isinstance(item, Tuple) and on == "ts" else None
