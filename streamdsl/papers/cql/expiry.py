"""When tuples expire: never, after n more tuples (of their key), or after some time (paper 002, 4.5.1 to 4.5.3)."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence

from streamdsl.errors import FieldNotFound
from streamdsl.papers.cql.group_timeline import Timeline
from streamdsl.papers.cql.relation_window import Expiry, WindowTuple
from streamdsl.temporal.payload import payload_key


class LastTuples(Expiry):
    """A tuple expires with the n-th one after it that has equal values in some fields; without fields with the n-th of all."""

    counts = True

    def __init__(self, n: int, by: tuple[str, ...] = ()) -> None:
        self._n = n
        self._by = by
        self._queues: dict[Hashable, deque[WindowTuple]] = {}
        self._held = 0

    def admit(self, members: Sequence[WindowTuple], timeline: Timeline) -> list[WindowTuple]:
        left = []
        for member in members:
            queue = self._queues.setdefault(self._key(member), deque())
            queue.append(member)
            if len(queue) > self._n:
                left.append(queue.popleft())
                left[-1].left = member.came
        self._held += len(members) - len(left)
        return left

    @property
    def held(self) -> int:
        return self._held

    def _key(self, member: WindowTuple) -> Hashable:
        try:
            return tuple(payload_key(member.payload[name]) for name in self._by)
        except KeyError as missing:
            raise FieldNotFound(missing.args[0], member.payload) from None


class TimeRange(Expiry):
    """A tuple expires at the first instant of the group that is `d` after it; in order of arrival, O(1) amortized per tuple."""

    def __init__(self, d: int) -> None:
        self._d = max(d, 1)  # timestamps are integers: t' = t is t' > t - 1
        self._queue: deque[WindowTuple] = deque()

    def admit(self, members: Sequence[WindowTuple], timeline: Timeline) -> list[WindowTuple]:
        self._queue.extend(members)
        left = self._before(timeline.span[1])
        for gone in left:
            gone.left = timeline.at_time(gone.t + self._d)
        return left

    @property
    def held(self) -> int:
        return len(self._queue)

    def _before(self, t: int) -> list[WindowTuple]:
        """Remove and return the tuples that have expired by a timestamp."""
        left = []
        while self._queue and self._queue[0].t + self._d <= t:
            left.append(self._queue.popleft())
        return left


class OwnTimeRange(TimeRange):
    """A tuple expires with the first tuple of its stream that is `d` after it."""

    def admit(self, members: Sequence[WindowTuple], timeline: Timeline) -> list[WindowTuple]:
        left = []
        for member in members:
            for gone in self._before(member.t):
                gone.left = member.came
                left.append(gone)
            self._queue.append(member)
        return left
