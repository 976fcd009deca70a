"""The sort buffer of in-order operators: a heap of tuples that leave in order."""

from __future__ import annotations

import heapq
from typing import Any

from streamdsl.papers.out_of_order.items import Time
from streamdsl.temporal.time import INFINITY


class SortBuffer:
    """A stable priority queue by time; O(log n) per item.

    >>> buffer = SortBuffer()
    >>> for ts in (5, 3, 9): buffer.add(ts, str(ts))
    >>> buffer.complete(6), len(buffer)
    (['3', '5'], 1)
    """

    __slots__ = ("_came", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[Time, int, Any]] = []
        self._came = 0

    def add(self, ts: Time, thing: Any) -> None:
        """Add an item."""
        heapq.heappush(self._heap, (ts, self._came, thing))
        self._came += 1

    def up_to(self, bound: Time) -> list[Any]:
        """Pop the items up to a bound, in order."""
        heap, found = self._heap, []
        while heap and heap[0][0] <= bound:
            found.append(heapq.heappop(heap)[2])
        return found

    def complete(self, bound: Time) -> list[Any]:
        """Pop the items that punctuation completes, in order: those before it, at the end of the stream all."""
        heap, found = self._heap, []
        while heap and (heap[0][0] < bound or bound >= INFINITY):
            found.append(heapq.heappop(heap)[2])
        return found

    def __len__(self) -> int:
        return len(self._heap)
