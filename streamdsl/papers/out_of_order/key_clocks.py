"""The progress of many keys, each with its own time, and of the slowest: one low-water mark over all."""

from __future__ import annotations

import heapq
from collections.abc import Hashable

from streamdsl.errors import QueryError
from streamdsl.papers.out_of_order.items import BEGINNING, Time
from streamdsl.temporal.progress_policy import Progress, ProgressGenerator
from streamdsl.temporal.time import MIN_TIME


class KeyClocks:
    """The clock of each expected key, in a heap by a lower bound of its time, which is corrected at the top (lazy heap).

    >>> clocks = KeyClocks(Progress.ordered(), idle=10)
    >>> for key, ts in (("a", 3), ("b", 5), ("a", 9)): clocks.take(key, ts)
    >>> clocks.low_water_mark
    5
    >>> clocks.take("a", 16); clocks.low_water_mark
    16
    """

    def __init__(self, policy: Progress, idle: Time | None) -> None:
        self._policy = policy
        self._idle = idle
        self._clocks: dict[Hashable, ProgressGenerator] = {}
        self._heap: list[tuple[int, int, Hashable]] = []
        self._retired: set[Hashable] = set()
        self._first: Time = BEGINNING
        self.largest: Time = BEGINNING

    def expect(self, key: Hashable) -> ProgressGenerator:
        """Return a key's clock; from now on it counts towards the low-water mark."""
        clock = self._clocks.get(key)
        if clock is None:
            clock = self._clocks[key] = self._policy.generator(None)
            heapq.heappush(self._heap, (clock.cti, id(clock), key))
        return clock

    def take(self, key: Hashable, ts: Time) -> None:
        """Advance a key's clock to a tuple's time."""
        if ts != int(ts):
            raise QueryError(f"a progress policy counts whole ticks, not {ts!r}", hint="multiply the times, or punctuate by hand")
        self._first = ts if self.largest == BEGINNING else self._first
        self.largest = max(self.largest, ts)
        self._retired.discard(key)
        self.expect(key).after(int(ts))

    def retire(self, key: Hashable) -> None:
        """Stop waiting for a key, until its next tuple."""
        if key in self._clocks:
            self._retired.add(key)

    @property
    def low_water_mark(self) -> Time:
        """The least progress of the keys that count."""
        heap = self._heap
        while heap:
            then, place, key = heap[0]
            clock = self._clocks[key]
            if key in self._retired or self._is_idle(clock):
                heapq.heappop(heap)
                self._retired.discard(key)
                del self._clocks[key]
            elif clock.cti != then:
                heapq.heapreplace(heap, (clock.cti, place, key))
            else:
                return BEGINNING if then == MIN_TIME else then
        return BEGINNING

    def _is_idle(self, clock: ProgressGenerator) -> bool:
        """Say whether a key is too far behind; one that has not come is waited for from the first tuple on."""
        heard = self._first if clock.largest == MIN_TIME else clock.largest
        return self._idle is not None and heard < self.largest - self._idle
