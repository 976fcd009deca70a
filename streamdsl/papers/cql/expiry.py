"""Expiry policies: a tuple expires after n more tuples, after some time, or after n more tuples of its key."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from streamdsl.errors import FieldNotFound
from streamdsl.papers.cql.group_timeline import Timeline
from streamdsl.papers.cql.relation_window import ExpiryPolicy, ExpiryState, WindowTuple
from streamdsl.temporal.payload import payload_key


@dataclass(frozen=True)
class LastTuples(ExpiryPolicy):
    """A tuple expires with the n-th one after it; with None never."""

    n: int | None

    def start(self) -> ExpiryState:
        return _Never() if self.n is None else _LastTuples(self.n)


@dataclass(frozen=True)
class TimeRange(ExpiryPolicy):
    """A tuple expires at the first instant `d` after it: of the group, or (`own`) of the stream's own tuples."""

    d: int | None
    own: bool = False
    counts = False

    def start(self) -> ExpiryState:
        if self.d is None:
            return _Never()
        span = max(self.d, 1)  # timestamps are integers: t' = t is t' > t - 1
        return _LastOwnTimes(span) if self.own else _LastTimes(span)


@dataclass(frozen=True)
class LastTuplesByKey(ExpiryPolicy):
    """A tuple expires with the n-th one after it that has equal values in some fields."""

    by: tuple[str, ...]
    n: int

    def start(self) -> ExpiryState:
        return _LastTuplesByKey(self.by, self.n)


class _Never(ExpiryState):
    def admit(self, members: Sequence[WindowTuple], timeline: Timeline) -> list[WindowTuple]:
        return []


class _Fifo(ExpiryState):
    """A queue of tuples that expire in order of arrival; O(1) amortized per tuple."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._held: deque[WindowTuple] = deque()

    @property
    def held(self) -> int:
        return len(self._held)


class _LastTuples(_Fifo):
    def admit(self, members: Sequence[WindowTuple], timeline: Timeline) -> list[WindowTuple]:
        return [gone for member in members if (gone := _evict(self._held, self._size, member))]


class _LastTimes(_Fifo):
    def admit(self, members: Sequence[WindowTuple], timeline: Timeline) -> list[WindowTuple]:
        self._held.extend(members)
        left = []
        while self._held and self._held[0].t + self._size <= timeline.span[1]:
            member = self._held.popleft()
            member.left = timeline.at_time(member.t + self._size)
            left.append(member)
        return left


class _LastOwnTimes(_Fifo):
    def admit(self, members: Sequence[WindowTuple], timeline: Timeline) -> list[WindowTuple]:
        left = []
        for member in members:
            while self._held and self._held[0].t + self._size <= member.t:
                gone = self._held.popleft()
                gone.left = member.came
                left.append(gone)
            self._held.append(member)
        return left


class _LastTuplesByKey(ExpiryState):
    def __init__(self, by: tuple[str, ...], n: int) -> None:
        self._by = by
        self._n = n
        self._held: dict[Hashable, deque[WindowTuple]] = {}
        self._count = 0

    def admit(self, members: Sequence[WindowTuple], timeline: Timeline) -> list[WindowTuple]:
        left = [gone for member in members if (gone := _evict(self._part(member), self._n, member))]
        self._count += len(members) - len(left)
        return left

    @property
    def held(self) -> int:
        return self._count

    def _part(self, member: WindowTuple) -> deque[WindowTuple]:
        try:
            key = tuple(payload_key(member.payload[name]) for name in self._by)
        except KeyError as missing:
            raise FieldNotFound(missing.args[0], member.payload) from None
        found = self._held.get(key)
        if found is None:
            found = self._held[key] = deque()
        return found


def _evict(held: deque[WindowTuple], n: int, member: WindowTuple) -> WindowTuple | None:
    """Append a tuple to a queue of at most n; return the tuple that expires, or None."""
    held.append(member)
    if len(held) <= n:
        return None
    gone = held.popleft()
    gone.left = member.came
    return gone
