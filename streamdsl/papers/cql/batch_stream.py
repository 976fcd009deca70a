"""A stream of a group, and the windows on it (paper 002, 4.1 and 4.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from streamdsl.errors import QueryError
from streamdsl.papers.cql.batch_orders import TieOrder
from streamdsl.papers.cql.batching import window_row
from streamdsl.papers.cql.expiry import LastTuples, OwnTimeRange, TimeRange
from streamdsl.papers.cql.group_timeline import Batch, Timeline
from streamdsl.papers.cql.relation_window import Derivation, Expiry, RelationWindow, Slide
from streamdsl.papers.cql.slide_policies import FromNthTuple, OwnRangeSlide, RangeSlide, RowSlide
from streamdsl.sources import from_rows
from streamdsl.stream import Stream
from streamdsl.temporal import DurationLike, Record, Unit, is_calendar, to_duration
from streamdsl.temporal.integers import whole_number
from streamdsl.temporal.payload import payload_order

if TYPE_CHECKING:
    from streamdsl.papers.cql.relation import Relation

Clock: TypeAlias = Literal["group", "stream"]
_SHOWN: Final = 50
"""Tuples of a stream that is displayed."""


@dataclass(frozen=True, eq=False, repr=False)
class BatchStream:
    """A stream of tuples in batches, which are those of a group: a base stream, or one derived from a relation.

    >>> from streamdsl import cql
    >>> g = cql.stream_group(S=[("a", 1), ("b", 2), ("c", 2)])
    >>> g.S
    <BatchStream S: (1, 1) 'a'; (2, 1) 'b' 'c'>
    """

    name: str
    payloads: Sequence[Any]
    batches: Sequence[Batch]
    timeline: Timeline
    group_places: Sequence[int]
    orders: TieOrder
    origin: Derivation | None = None
    """The derivation of the stream from a relation; None for a base stream."""

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last timestamp that exist."""
        return self.timeline.span

    @cached_property
    def rows_of(self) -> list[Record]:
        """What windows hold of each tuple: its fields, and its timestamp as `t`."""
        return [window_row(payload, t) for payload, (t, _) in zip(self.payloads, self.batches, strict=True)]

    def rows(self, n: int | None, slide: int | None = None) -> Relation:
        """Return the last `n` tuples (None: all) as of each batch, in an order that the window fixes inside each batch.

        With `slide=m` a new state forms once m tuples came since the last one.

        >>> from streamdsl import cql
        >>> g = cql.stream_group(S=[("a", 1), ("b", 2), ("c", 4)])
        >>> g.S.rows(2).select(lambda e: e.value).states()
        [((1, 1), ['a']), ((2, 1), ['a', 'b']), ((3, 1), ['a', 'b']), ((4, 1), ['b', 'c'])]
        """
        expiry = Expiry if n is None else partial(LastTuples, whole_number(n, "rows takes", 1))
        return self._window(expiry, FromNthTuple if slide is None else partial(RowSlide, whole_number(slide, "slide takes", 1)))

    def range(self, d: DurationLike | None, slide: DurationLike | None = None, clock: Clock = "group") -> Relation:
        """Return the tuples of the last `d` timestamps, the current one included (None: all; 0: the current one).

        Where timestamps have a unit `d` and `slide` may be durations such as `"5 min"`.

        With `slide=m` states form at timestamps divisible by m alone. `clock="stream"`: the current timestamp is that of the
        stream's own last tuple, not of the group.

        >>> from streamdsl import cql
        >>> g = cql.stream_group(S=[("a", 1), ("b", 2), ("c", 4)])
        >>> g.S.range(2).select(lambda e: e.value).states()
        [((1, 1), ['a']), ((2, 1), ['a', 'b']), ((3, 1), ['b']), ((4, 1), ['c'])]
        """
        if clock not in ("group", "stream"):
            raise QueryError(f"there is no clock {clock!r}; the clocks are: 'group', 'stream'")
        unit, own = self.timeline.unit, clock == "stream"
        by_time, by_slide = (OwnTimeRange, OwnRangeSlide) if own else (TimeRange, RangeSlide)
        expiry = Expiry if d is None else partial(by_time, length(d, unit, "range takes", 0))
        return self._window(expiry, FromNthTuple if slide is None else partial(by_slide, length(slide, unit, "slide takes", 1)))

    def keep(self, n: int) -> Relation:
        """Return CCL's KEEP: the last `n` tuples, and none before there are so many.

        >>> from streamdsl import cql
        >>> g = cql.stream_group(S=[(1, 1), (2, 1), (3, 2)], batching=cql.CCL)
        >>> g.S.keep(2).select(lambda e: e.value).states()
        [((1, 1), []), ((1, 2), [1, 2]), ((2, 1), [2, 3])]
        """
        size = whole_number(n, "keep takes", 1)
        return self._window(partial(LastTuples, size), partial(FromNthTuple, size))

    def partition_by(self, *names: str) -> Partition:
        """Divide the stream by fields, for windows on each part.

        >>> from streamdsl import cql
        >>> g = cql.stream_group(S=[({"k": 1, "v": 2}, 1), ({"k": 2, "v": 3}, 2), ({"k": 1, "v": 4}, 3)])
        >>> g.S.partition_by("k").rows(1).select(lambda e: e.v).states()
        [((1, 1), [2]), ((2, 1), [2, 3]), ((3, 1), [3, 4])]
        """
        if not names or not all(isinstance(name, str) for name in names):
            raise QueryError(f"{names!r} are no fields to divide by", hint='name them: partition_by("k", "v")')
        return Partition(self, names)

    def _window(self, expiry: Callable[[], Expiry], slide: Callable[[], Slide]) -> Relation:
        from streamdsl.papers.cql.relation import Relation

        return Relation.of_window(self, RelationWindow(self.name, expiry, slide, self.origin))

    def events(self) -> list[tuple[Batch, Any]]:
        """Return the tuples by batch, then by payload.

        >>> from streamdsl import cql
        >>> cql.stream_group(S=[("b", 1), ("a", 1)]).S.events()
        [((1, 1), 'a'), ((1, 1), 'b')]
        """
        found = zip(self.batches, self.payloads, strict=True)
        return sorted(found, key=lambda event: (event[0], payload_order(event[1])))

    def to_stream(self) -> Stream[Any]:
        """Return a fluent stream of points at the timestamps.

        >>> from streamdsl import cql
        >>> cql.stream_group(S=[("a", 1)]).S.to_stream().run().cht()
        CHT
          [1, 2) 'a'
        """
        rows = zip(self.payloads, self.batches, strict=True)
        return from_rows([(t, t + 1, payload) for payload, (t, _) in rows], unit=self.timeline.unit)

    def arranged(self) -> list[int]:
        """Return the positions of the tuples in an order that refines that of the batches."""
        return self.orders.arrange([len(list(same)) for _, same in groupby(self.batches)])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BatchStream):
            return NotImplemented
        return self.span == other.span and self.events() == other.events()

    __hash__ = None  # type: ignore[assignment]

    def text(self) -> str:
        """Return the tuples of each batch as text, of many tuples their number."""
        if len(self.payloads) > _SHOWN:
            return f"{len(self.payloads)} tuples"
        parts = groupby(self.events(), key=lambda event: event[0])
        return "; ".join(" ".join([str(at), *(repr(payload) for _, payload in events)]) for at, events in parts)

    def __repr__(self) -> str:
        return f"<BatchStream{self.name and ' '}{self.name}: {self.text()}>"


@dataclass(frozen=True)
class Partition:
    """A stream divided by fields: windows run on each part, and their contents are put together."""

    stream: BatchStream
    by: tuple[str, ...]

    def rows(self, n: int) -> Relation:
        """Return the last `n` tuples of each part, as of each batch.

        >>> from streamdsl import cql
        >>> g = cql.stream_group(S=[({"k": 1}, 1), ({"k": 1}, 2), ({"k": 2}, 3)])
        >>> g.S.partition_by("k").rows(1).select(lambda e: e.t).states()
        [((1, 1), [1]), ((2, 1), [2]), ((3, 1), [2, 3])]
        """
        return self.stream._window(partial(LastTuples, whole_number(n, "rows takes", 1), self.by), FromNthTuple)


def length(value: DurationLike, unit: Unit | None, what: str, least: int) -> int:
    """Return a length of time in timestamps; a duration counts in their unit.

    >>> length("2 min", "s", "range takes", 0)
    120
    """
    known = is_calendar(unit) and isinstance(value, (str, timedelta, np.timedelta64))
    return whole_number(to_duration(value, unit) if known else value, what, least)
