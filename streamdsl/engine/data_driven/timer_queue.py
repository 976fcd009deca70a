"""A queue of timers: times at which windows of a group become due, in a few sorted runs and a heap."""

from __future__ import annotations

import heapq

import numpy as np

from streamdsl.expr.table import Rows
from streamdsl.temporal.time import Ticks


class TimerQueue:
    """Timers, each a time and a code. Adding and removing cost O(log n) each, in any order.


    >>> timers = TimerQueue()
    >>> timers.add(np.array([7, 3]), np.array([0, 1]))
    >>> timers.pop_until(5)
    (array([3]), array([1]))
    >>> len(timers)
    1
    """

    def __init__(self) -> None:
        self._runs: list[tuple[Ticks, Rows]] = []
        self._size = 0
        self._heap: list[tuple[int, int]] = []
        """Timers that were added one by one."""

    def __len__(self) -> int:
        return self._size + len(self._heap)

    def add_one(self, time: int, code: int) -> None:
        """Add a single timer."""
        heapq.heappush(self._heap, (time, code))

    def pop_each(self, time: int) -> list[tuple[int, int]]:
        """Do what `pop_until` does, timer by timer: for few of them."""
        found = []
        if any(times.item(0) <= time for times, _ in self._runs):
            times, codes = self.pop_until(time)
            return list(zip(times.tolist(), codes.tolist(), strict=True))
        while self._heap and self._heap[0][0] <= time:
            found.append(heapq.heappop(self._heap))
        return found

    def add(self, times: Ticks, codes: Rows) -> None:
        """Add timers."""
        if not len(times):
            return
        self._size += len(times)
        while self._runs and len(self._runs[-1][0]) <= 2 * len(times):
            others, other_codes = self._runs.pop()
            times, codes = np.concatenate([others, times]), np.concatenate([other_codes, codes])
        order = np.argsort(times)
        self._runs.append((times[order], codes[order]))

    def pop_until(self, time: int) -> tuple[Ticks, Rows]:
        """Remove and return the timers up to a time."""
        if self._heap:
            self.add(*(np.array(column) for column in zip(*self._heap, strict=True)))
            self._heap = []
        found: list[tuple[Ticks, Rows]] = []
        kept = []
        for times, codes in self._runs:
            stop = int(np.searchsorted(times, time, side="right"))
            if stop:
                found.append((times[:stop], codes[:stop]))
            if stop < len(times):
                kept.append((times[stop:], codes[stop:]))
        self._runs = kept
        if not found:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.intp)
        self._size -= sum(len(times) for times, _ in found)
        return np.concatenate([times for times, _ in found]), np.concatenate([codes for _, codes in found])

    def clear(self) -> None:
        """Remove all timers."""
        self._runs, self._size, self._heap = [], 0, []
