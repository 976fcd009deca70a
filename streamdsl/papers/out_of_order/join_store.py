"""The stored tuples of one input of a join: a hash table by key, with tuples in order of ts, and a heap for purging.

In most joins most keys have one tuple, which is in the table itself: a list for it would cost more than the tuple.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable
from operator import attrgetter

from streamdsl.papers.out_of_order.items import Time, Tuple

_TS = attrgetter("ts")


class JoinStore:
    """The tuples that may still find partners.

    >>> stored = JoinStore()
    >>> for ts in (5, 3, 9): stored.add("k", Tuple(ts, ts))
    >>> len(stored.purge(4))
    1
    >>> [item.ts for item in stored.between("k", 0, 8)], len(stored)
    ([5], 2)
    """

    __slots__ = ("_by_key", "_due")

    def __init__(self) -> None:
        self._by_key: dict[Hashable, Tuple | list[Tuple]] = {}
        self._due: list[tuple[Time, int, Hashable]] = []

    def __len__(self) -> int:
        return len(self._due)

    def add(self, key: Hashable, item: Tuple) -> None:
        """Store a tuple."""
        found = self._by_key.get(key)
        if found is None:
            self._by_key[key] = item
        elif isinstance(found, Tuple):
            self._by_key[key] = [found, item] if found.ts <= item.ts else [item, found]
        elif found[-1].ts <= item.ts:
            found.append(item)
        else:
            insort(found, item, key=_TS)
        heapq.heappush(self._due, (item.ts, id(item), key))

    def between(self, key: Hashable, first: Time, last: Time, closed: bool = True) -> list[Tuple]:
        """Return the tuples with a key and a time from the first to the last; `closed`: the last too."""
        found = self._by_key.get(key)
        if found is None:
            return []
        if isinstance(found, Tuple):
            found = [found]
        end = bisect_right(found, last, key=_TS) if closed else bisect_left(found, last, key=_TS)
        return found[bisect_left(found, first, key=_TS) : end]

    def purge(self, bound: Time) -> list[int]:
        """Remove the tuples before a bound; return their Python ids, in order of time."""
        due, gone = self._due, []
        while due and due[0][0] < bound:
            gone.append(heapq.heappop(due))
        for key in {key for _, _, key in gone}:
            found = self._by_key[key]
            if isinstance(found, list):
                del found[: bisect_left(found, bound, key=_TS)]
            if isinstance(found, Tuple) or not found:
                del self._by_key[key]
        return [id for _, id, _ in gone]
