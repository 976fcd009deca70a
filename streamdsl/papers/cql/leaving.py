"""When tuples leave a window: after n more, after some time, or after n more of the same key."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from streamdsl.errors import FieldNotFound
from streamdsl.papers.cql.timeline import Timeline
from streamdsl.papers.cql.window import Leaving, Member, RunningLeaving
from streamdsl.temporal.payload import payload_key


@dataclass(frozen=True)
class Rows(Leaving):
    """A tuple leaves with the n-th one after it; with None never."""

    n: int | None

    def start(self) -> RunningLeaving:
        return _Never() if self.n is None else _LastRows(self.n)


@dataclass(frozen=True)
class Range(Leaving):
    """A tuple leaves at the first instant `d` after it: of the group, or (`own`) of the stream's own tuples."""

    d: int | None
    own: bool = False
    counts = False

    def start(self) -> RunningLeaving:
        if self.d is None:
            return _Never()
        span = max(self.d, 1)  # timestamps are integers: t' = t says the same as t' > t - 1
        return _LastOwnTimes(span) if self.own else _LastTimes(span)


@dataclass(frozen=True)
class Partitioned(Leaving):
    """A tuple leaves with the n-th one after it that has the same values in some fields."""

    by: tuple[str, ...]
    n: int

    def start(self) -> RunningLeaving:
        return _LastRowsOfEach(self.by, self.n)


class _Never(RunningLeaving):
    def admit(self, members: Sequence[Member], timeline: Timeline) -> list[Member]:
        return []


class _Fifo(RunningLeaving):
    """Tuples leave in the order in which they came."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._held: deque[Member] = deque()

    @property
    def held(self) -> int:
        return len(self._held)


class _LastRows(_Fifo):
    def admit(self, members: Sequence[Member], timeline: Timeline) -> list[Member]:
        return [gone for member in members if (gone := _push_out(self._held, self._size, member))]


class _LastTimes(_Fifo):
    def admit(self, members: Sequence[Member], timeline: Timeline) -> list[Member]:
        self._held.extend(members)
        left = []
        while self._held and self._held[0].t + self._size <= timeline.span[1]:
            member = self._held.popleft()
            member.left = timeline.at_time(member.t + self._size)
            left.append(member)
        return left


class _LastOwnTimes(_Fifo):
    def admit(self, members: Sequence[Member], timeline: Timeline) -> list[Member]:
        left = []
        for member in members:
            while self._held and self._held[0].t + self._size <= member.t:
                gone = self._held.popleft()
                gone.left = member.came
                left.append(gone)
            self._held.append(member)
        return left


class _LastRowsOfEach(RunningLeaving):
    def __init__(self, by: tuple[str, ...], n: int) -> None:
        self._by = by
        self._n = n
        self._held: dict[Hashable, deque[Member]] = {}
        self._count = 0

    def admit(self, members: Sequence[Member], timeline: Timeline) -> list[Member]:
        left = [gone for member in members if (gone := _push_out(self._part(member), self._n, member))]
        self._count += len(members) - len(left)
        return left

    @property
    def held(self) -> int:
        return self._count

    def _part(self, member: Member) -> deque[Member]:
        try:
            key = tuple(payload_key(member.payload[name]) for name in self._by)
        except KeyError as missing:
            raise FieldNotFound(missing.args[0], member.payload) from None
        found = self._held.get(key)
        if found is None:
            found = self._held[key] = deque()
        return found


def _push_out(held: deque[Member], n: int, member: Member) -> Member | None:
    """Add a tuple to the last n; return the one that leaves for it."""
    held.append(member)
    if len(held) <= n:
        return None
    gone = held.popleft()
    gone.left = member.came
    return gone
