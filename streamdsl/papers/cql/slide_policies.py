"""At which instants a window takes a new state: all, from the n-th tuple on, or by its slide (paper 002, 4.5.4, 9)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import groupby

from streamdsl.papers.cql.group_timeline import Timeline
from streamdsl.papers.cql.relation_window import Slide, WindowTuple


class FromNthTuple(Slide):
    """Every instant from the n-th tuple on."""

    slides = False

    def __init__(self, n: int = 0) -> None:
        self._missing = n
        self._opened: int | None = None
        self._end = 0

    def move(self, members: Sequence[WindowTuple], timeline: Timeline) -> bool:
        self._end = timeline.end
        if self._missing > len(members):
            self._missing -= len(members)
            return False
        if self._opened is None:
            self._opened = members[self._missing - 1].came if self._missing else timeline.base
        self._missing = 0
        return True

    def first(self, place: int) -> int | None:
        return None if self._opened is None else max(place, self._opened)

    def forming(self) -> Sequence[int]:
        return range(self._end if self._opened is None else self._opened, self._end)


class AtBatches(Slide):
    """Some batches of the stream."""

    def __init__(self, m: int) -> None:
        self._m = m
        self._forming: list[int] = []

    def first(self, place: int) -> int | None:
        after = bisect_left(self._forming, place)
        return self._forming[after] if after < len(self._forming) else None

    def forming(self) -> Sequence[int]:
        return self._forming


class RowSlide(AtBatches):
    """Each batch by which m tuples have come since the last such batch."""

    def __init__(self, m: int) -> None:
        super().__init__(m)
        self._since = 0

    def move(self, members: Sequence[WindowTuple], timeline: Timeline) -> bool:
        self._forming = []
        for came, batch in groupby(members, key=lambda member: member.came):
            self._since += sum(1 for _ in batch)
            if self._since >= self._m:
                self._forming.append(came)
                self._since = 0
        return bool(self._forming)


class OwnRangeSlide(AtBatches):
    """The batches of the stream at timestamps divisible by m."""

    def move(self, members: Sequence[WindowTuple], timeline: Timeline) -> bool:
        batches = dict.fromkeys((member.came, member.t) for member in members)
        self._forming = [came for came, t in batches if t % self._m == 0]
        return bool(self._forming)


class RangeSlide(Slide):
    """All instants of the group at timestamps divisible by m."""

    def __init__(self, m: int) -> None:
        self._m = m
        self._timeline = Timeline((), (0, -1))

    def move(self, members: Sequence[WindowTuple], timeline: Timeline) -> bool:
        self._timeline = timeline
        return self.first(timeline.base) is not None

    def first(self, place: int) -> int | None:
        place = max(place, self._timeline.base)
        if place >= self._timeline.end:
            return None
        t = self._timeline.batch_at(place)[0]
        if t % self._m == 0:
            return place
        found = self._timeline.at_time(t - t % self._m + self._m)
        return found if found < self._timeline.end else None

    def forming(self) -> Sequence[int]:
        first, last = self._timeline.span
        times = range(first + -first % self._m, last + 1, self._m)
        return [place for t in times for place in range(self._timeline.at_time(t), self._timeline.at_time(t + 1))]
