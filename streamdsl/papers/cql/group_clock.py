"""The progress of a running group: the batches and timestamps that are complete."""

from __future__ import annotations

from collections.abc import Sequence

from streamdsl.errors import QueryError, shortened
from streamdsl.papers.cql.batching import Batching, GivenTuple
from streamdsl.papers.cql.group_timeline import EMPTY_SPAN, Batch, Timeline
from streamdsl.temporal.integers import whole_number


class GroupClock:
    """Numbers the instants of a group incrementally, one part of the timeline after another.

    >>> clock = GroupClock()
    >>> list(clock.part([(1, 1), (1, 2)])), list(clock.part([(1, 3), (3, 1)])), list(clock.advance(6))
    ([(1, 1), (1, 2)], [(1, 3), (2, 1), (3, 1)], [(4, 1), (5, 1)])
    """

    def __init__(self) -> None:
        self._last: Batch | None = None
        self._next: int | None = None
        self._over: int | None = None
        """The timestamp before which nothing may come any more."""
        self._end = 0

    def after(self, placed: Sequence[tuple[GivenTuple, Batch]], batching: Batching) -> list[tuple[GivenTuple, Batch]]:
        """Return tuples with their batches, numbered from the last one where each tuple is a batch; raise for late tuples."""
        t, i = self._last or (0, 0)
        alone = batching.alone and any(given.i is None for given, _ in placed)
        found = [(given, (at[0], at[1] + i) if alone and at[0] == t else at) for given, at in placed]
        for given, at in found[:1]:
            if (self._last is not None and at <= self._last) or (self._over is not None and at[0] < self._over):
                raise QueryError(
                    f"the tuple ({shortened(given.payload)}; {given.t}) of stream {given.stream!r} comes too late: "
                    f"its batch {at} is over",
                    hint="push whole batches in order; cql.RunningSpread puts tuples into order",
                )
        return found

    def part(self, batches: Sequence[Batch]) -> Timeline:
        """Advance through batches, in order."""
        distinct = list(dict.fromkeys(batches))
        if not distinct:
            return Timeline((), EMPTY_SPAN, self._end)
        first = distinct[0][0] if self._next is None else min(self._next, distinct[0][0])
        self._last, self._over = distinct[-1], distinct[-1][0]
        return self._go((first, self._last[0]), distinct)

    def advance(self, t: int) -> Timeline:
        """Advance through all timestamps before `t`."""
        t = whole_number(t, "a timestamp is")
        self._over = t if self._over is None else max(self._over, t)
        if self._next is None or t <= self._next:
            self._next = t if self._next is None else self._next
            return Timeline((), EMPTY_SPAN, self._end)
        return self._go((self._next, t - 1), ())

    def _go(self, span: tuple[int, int], batches: Sequence[Batch]) -> Timeline:
        timeline = Timeline(batches, span, self._end)
        self._end, self._next = timeline.end, span[1] + 1
        return timeline
