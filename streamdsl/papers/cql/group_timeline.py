"""The instants of a stream group: its batches, and the timestamps that have none (paper 002, 4.3 and 4.5)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from typing import Final, TypeAlias

from streamdsl.errors import QueryError
from streamdsl.temporal import Unit

Batch: TypeAlias = tuple[int, int]
"""A timestamp, and the number of the batch at it, from 1."""

EMPTY_SPAN: Final = (0, -1)
"""The span of a group that has no tuple."""


class Timeline:
    """The batches of a span and `(t, 1)` of its empty timestamps, numbered in order from `base` on.

    The numbers are the axis of time on which relations live: a relation has one state at each. Empty timestamps are counted, not
    stored. `streams` are the names of the group's, `unit` is what a timestamp counts.

    >>> timeline = Timeline([(1, 1), (2, 1), (2, 2)], (1, 4))
    >>> list(timeline)
    [(1, 1), (2, 1), (2, 2), (3, 1), (4, 1)]
    >>> timeline.place_of((2, 2)), timeline.at_time(4), timeline.batch_at(3)
    (2, 4, (3, 1))
    """

    def __init__(
        self,
        batches: Sequence[Batch],
        span: tuple[int, int],
        base: int = 0,
        streams: Collection[str] = (),
        unit: Unit | None = None,
    ) -> None:
        self.streams = streams
        self.unit = unit
        self.batches = batches
        self.span = span
        self.base = base
        self.places: list[int] = []
        place, time = base, span[0]
        for t, _ in batches:
            if t >= time:
                place, time = place + t - time, t + 1
            self.places.append(place)
            place += 1
        self.end = place + span[1] + 1 - time
        self._place_of = dict(zip(batches, self.places, strict=True))

    def __repr__(self) -> str:
        return f"<Timeline of {len(self.batches)} batches from {self.span[0]} to {self.span[1]}>"

    def __iter__(self) -> Iterator[Batch]:
        return map(self.batch_at, range(self.base, self.end))

    def place_of(self, batch: Batch) -> int:
        """Return the number of a batch, or of an empty timestamp."""
        found = self._place_of.get(batch)
        return self.at_time(batch[0]) if found is None else found

    def at_time(self, t: int) -> int:
        """Return the number of the first instant at or after a timestamp; `end` if there is none."""
        if t > self.span[1]:
            return self.end
        n = bisect_left(self.batches, (t, 0))
        start, place = (self.batches[n][0], self.places[n]) if n < len(self.batches) else (self.span[1] + 1, self.end)
        return max(place - (start - t), self.base)

    def batch_at(self, place: int) -> Batch:
        """Return what has a number: a batch, or `(t, 1)` of an empty timestamp."""
        before = bisect_right(self.places, place) - 1
        if before < 0:
            return (self.span[0] + place - self.base, 1)
        t, i = self.batches[before]
        ahead = place - self.places[before]
        return (t + ahead, 1) if ahead else (t, i)


def common(one: Timeline | None, other: Timeline | None) -> Timeline | None:
    """Return the timeline of two relations; a table has none, and is on any."""
    if one is None or other is None or one is other:
        return one or other
    raise QueryError(
        "the relations are over two stream groups, and batches of different groups have no order",
        hint="put the streams into one group first: cql.stream_group(A=..., B=...)",
    )


def merged(one: Sequence[int], other: Sequence[int]) -> Sequence[int]:
    """Return the numbers that are in one of two sorted lists."""
    return one if one is other or not other else other if not one else sorted({*one, *other})
