"""Batch-varying relations: fluent queries whose time is the timeline of a stream group (paper 002, 4.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, get_args

from streamdsl.errors import QueryError
from streamdsl.papers.cql import relation_streams
from streamdsl.papers.cql.batch_orders import GivenOrder, TieOrder
from streamdsl.papers.cql.batch_stream import BatchStream, length
from streamdsl.papers.cql.batching import ORACLE, Batching
from streamdsl.papers.cql.group_timeline import Batch, Timeline, common, merged
from streamdsl.papers.cql.relation_session import RelationSession
from streamdsl.papers.cql.relation_streams import Event
from streamdsl.papers.cql.relation_window import Derivation, RelationWindow, TableRows, WindowTuple
from streamdsl.plan.node import Source
from streamdsl.sources import from_rows
from streamdsl.stream import GroupedStream, Stream
from streamdsl.temporal import INFINITY, DurationLike
from streamdsl.temporal.display import Displayed

Semantics: TypeAlias = Literal["delta", "difference"]
At: TypeAlias = Literal["all", "batches", "slides"]
_SHOWN: Final = 50
"""Instants of a relation that is displayed."""


@dataclass(frozen=True, eq=False, repr=False)
class Relation(Displayed):
    """A bag of rows at every batch of a group, and at every empty timestamp of its span.

    `stream` is the relation as a fluent query: a row's lifetime is the run of instants of `timeline` at which it is in the
    relation. So the operators here are those of streams; a join of relations is a temporal join, an aggregate one of snapshots.

    >>> import streamdsl as sd
    >>> from streamdsl import cql
    >>> g = cql.stream_group(S=[(50, 1), (50, 1), (40, 3)])
    >>> relation = g.S.range(1).aggregate(n=sd.count(), mean=sd.avg(lambda e: e.value))
    >>> relation
    <Relation (1, 1): Record(n=2, mean=50.0); (2, 1): nothing; (3, 1): Record(n=1, mean=40.0)>
    >>> relation.stream.run().cht()
    CHT
      [0, 1) n=2 mean=50.0
      [2, inf) n=1 mean=40.0
    """

    stream: Stream[Any]
    timeline: Timeline | None = None
    batches: Sequence[int] = ()
    """The numbers of the batches among the instants."""
    slides: Sequence[int] = ()
    """The numbers of the instants at which a window that has a slide takes a new state."""
    windows: Mapping[str, RelationWindow | TableRows] = field(default_factory=dict)
    """The window, or the table, that each source of `stream` is."""
    orders: TieOrder = field(default_factory=GivenOrder)

    @staticmethod
    def of_window(stream: BatchStream, window: RelationWindow) -> Relation:
        """Return the relation of a window on a stream."""
        running = window.start()
        arranged = stream.arranged() if running.expiry.counts else range(len(stream.payloads))
        rows, timeline = stream.rows_of, stream.timeline
        members = [WindowTuple(n, rows[n], rows[n]["t"], timeline.place_of(stream.batches[n])) for n in arranged]
        lives: Stream[Any] = from_rows([(each.le, each.re, each.payload) for each in running.step(members, timeline)])
        slides = list(running.slide.forming()) if running.slide.slides else ()
        return Relation(lives, timeline, stream.group_places, slides, {_source(lives): window}, stream.orders)

    def where(self, p: Callable[[Any], object]) -> Relation:
        """Keep the rows for which `bool(p(row))` is true.

        >>> from streamdsl import cql
        >>> cql.stream_group(S=[(1, 1), (2, 2)]).S.rows(None).where(lambda e: e.value > 1).states()
        [((1, 1), []), ((2, 1), [Record(value=2, t=2)])]
        """
        return replace(self, stream=self.stream.where(p))

    def having(self, p: Callable[[Any], object]) -> Relation:
        """Keep the groups for which `bool(p(row))` is true: `where`, after an aggregate.

        >>> import streamdsl as sd
        >>> from streamdsl import cql
        >>> g = cql.stream_group(S=[("a", 1), ("b", 2), ("a", 3)])
        >>> g.S.rows(None).group_by("value").aggregate(n=sd.count()).having(lambda e: e.n > 1).istream().events()
        [((3, 1), Record(value='a', n=2))]
        """
        return self.where(p)

    def select(self, f: Callable[[Any], object] | None = None, /, **fields: Callable[[Any], object]) -> Relation:
        """Replace each row by what the lambda builds of it, or by a record of named fields.

        >>> from streamdsl import cql
        >>> cql.stream_group(S=[(1, 1), (2, 2)]).S.rows(1).select(lambda e: -e.value).states()
        [((1, 1), [-1]), ((2, 1), [-2])]
        """
        select: Any = self.stream.select
        return replace(self, stream=select(*([] if f is None else [f]), **fields))

    def join(
        self,
        other: Relation,
        on: Any = None,
        where: Callable[[Any, Any], object] | None = None,
        *,
        select: Callable[[Any, Any], object] | None = None,
    ) -> Relation:
        """Give every matching pair of rows of two relations over one group, or of one and a table; arguments as of `Stream.join`.

        >>> from streamdsl import cql
        >>> g = cql.stream_group(S=[(10, 1), (20, 2)], T=[("a", 2)])
        >>> g.S.rows(1).join(g.T.rows(1), select=lambda l, r: (l.value, r.value)).states()
        [((1, 1), []), ((2, 1), [(20, 'a')])]
        """
        _check_relation(other)
        stream: Stream[Any] = (
            self.stream.join(other.stream, on, where)
            if select is None
            else self.stream.join(other.stream, on, where, select=select)
        )
        return self._with(other, stream)

    def union(self, other: Relation) -> Relation:
        """Give the rows of two relations over one group, or of one and a table: all, also those that are the same.

        >>> from streamdsl import cql
        >>> g = cql.stream_group(S=[("a", 1), ("b", 2)], T=[("b", 2)])
        >>> g.S.rows(1).union(g.T.rows(1)).select(lambda e: e.value).states()
        [((1, 1), ['a']), ((2, 1), ['b', 'b'])]
        """
        _check_relation(other)
        return self._with(other, self.stream.union(other.stream))

    def aggregate(self, *query: Any, **named: Any) -> Relation:
        """Aggregate all rows to one; an empty relation has none. Arguments as of `WindowedStream.aggregate`.

        >>> import streamdsl as sd
        >>> from streamdsl import cql
        >>> cql.stream_group(S=[(1, 1), (2, 2)]).S.rows(None).aggregate(n=sd.sum(lambda e: e.value)).istream().events()
        [((1, 1), Record(n=1)), ((2, 1), Record(n=3))]
        """
        return replace(self, stream=self.stream.snapshot_window().aggregate(*query, **named))

    def group_by(self, *key: Any) -> GroupedRelation:
        """Divide the rows by fields, or by a lambda.

        >>> import streamdsl as sd
        >>> from streamdsl import cql
        >>> g = cql.stream_group(S=[("a", 1), ("b", 1), ("a", 1)])
        >>> g.S.rows(None).group_by("value").aggregate(n=sd.count()).states()
        [((1, 1), [Record(value='a', n=2), Record(value='b', n=1)])]
        """
        return GroupedRelation(self, self.stream.group_by(key[0] if len(key) == 1 else list(key)))

    def states(self, at: At = "all") -> list[tuple[Batch, list[Any]]]:
        """Return the rows, by payload, at every instant; at batches; or where a window that has a slide takes a new state.

        >>> from streamdsl import cql
        >>> g = cql.stream_group(S=[("a", 1), ("b", 3)])
        >>> g.S.rows(1).select(lambda e: e.value).states(at="batches")
        [((1, 1), ['a']), ((3, 1), ['b'])]
        """
        timeline = self._timeline()
        if at not in get_args(At):
            raise QueryError(f"there are no states at={at!r}; they are at: {', '.join(map(repr, get_args(At)))}")
        places = range(timeline.end) if at == "all" else self.batches if at == "batches" else self.slides
        return list(zip(map(timeline.batch_at, places), relation_streams.states(self._rows, places), strict=True))

    def istream(self, semantics: Semantics = "delta") -> BatchStream:
        """Return the rows that come, each at its first batch.

        In delta semantics a row is what it was made of: an aggregate over other rows is a new one, though its value be the
        same. In difference semantics it is its value: one that is there in the state before is not new, and each comes once.

        >>> from streamdsl import cql
        >>> g = cql.stream_group(S=[("a", 1, 1), ("a", 1, 2)])
        >>> len(g.S.range(1).istream().events()), len(g.S.range(1).istream("difference").events())
        (2, 1)
        """
        return self._derived(semantics, relation_streams.inserted)

    def dstream(self, semantics: Semantics = "delta") -> BatchStream:
        """Return the rows that go, each at the first batch without it.

        >>> from streamdsl import cql
        >>> cql.stream_group(S=[("a", 1), ("b", 3)]).S.range(1).dstream().events()
        [((2, 1), Record(value='a', t=1))]
        """
        return self._derived(semantics, relation_streams.deleted)

    def rstream(self) -> BatchStream:
        """Return the whole state at every instant.

        >>> from streamdsl import cql
        >>> cql.stream_group(S=[("a", 1), ("b", 2)]).S.rows(None).select(lambda e: e.value).rstream().events()
        [((1, 1), 'a'), ((2, 1), 'a'), ((2, 1), 'b')]
        """
        return self._derived("delta", relation_streams.alive)

    def output_every(self, p: DurationLike) -> BatchStream:
        """Return CCL's OUTPUT EVERY: when a batch enters a later period of length `p`, the rows as of the batch before it.

        >>> from streamdsl import cql
        >>> g = cql.stream_group(S=[(1, 1), (2, 1), (3, 2)], batching=cql.CCL)
        >>> g.S.rows(None).select(lambda e: e.value).output_every(1).events()
        [((1, 2), 1), ((1, 2), 2)]
        """
        timeline = self._timeline()
        ends = relation_streams.period_ends(self.batches, timeline, length(p, timeline.unit, "output_every takes", 1))
        return self._streamed(relation_streams.sampled(self._rows, ends), Derivation(self.stream, self.windows, None))

    def open(self, batching: Batching = ORACLE, semantics: Semantics = "delta") -> RelationSession:
        """Start a session of the relation: tuples are pushed to the streams of its windows, batch by batch, from none on.

        Those without a batch number get it from `batching`. Raises `QueryError` where a window is on what `output_every` gives.

        >>> from streamdsl import cql
        >>> session = cql.stream_group(S=[]).S.rows(1).select(lambda e: e.value).open()
        >>> session.push([("S", "a", 1), ("S", "b", 3)])
        Changes(istream=[((1, 1), 'a'), ((3, 1), 'b')], dstream=[((3, 1), 'a')])
        """
        query = Derivation(self._distinguished(semantics), self.windows, None)
        return RelationSession(query, self._timeline().streams, self.orders, batching)

    @cached_property
    def _rows(self) -> relation_streams.Rows:
        return relation_streams.in_order(self.stream.run().cht())

    def _derived(self, semantics: Semantics, read: Callable[[relation_streams.Rows, Timeline], list[Event]]) -> BatchStream:
        stream = self._distinguished(semantics)
        rows = self._rows if stream is self.stream else relation_streams.in_order(stream.run().cht())
        return self._streamed(read(rows, self._timeline()), Derivation(stream, self.windows, read))

    def _with(self, other: Relation, stream: Stream[Any]) -> Relation:
        """Return a query over this relation and another one."""
        return replace(
            self if self.timeline else other,
            stream=stream,
            timeline=common(self.timeline, other.timeline),
            batches=merged(self.batches, other.batches),
            slides=merged(self.slides, other.slides),
            windows={**self.windows, **other.windows},
        )

    def _distinguished(self, semantics: Semantics) -> Stream[Any]:
        """Return the query whose rows a semantics distinguishes: by lineage, or by value."""
        if semantics not in get_args(Semantics):
            raise QueryError(f"there is no semantics {semantics!r}; there are: 'delta', 'difference'")
        return self.stream if semantics == "delta" else self.stream.distinct()

    def _timeline(self) -> Timeline:
        if self.timeline is None:
            raise QueryError("a table is the same at every batch, and has none of its own", hint="join it with a window first")
        return self.timeline

    def _streamed(self, events: list[Event], origin: Derivation) -> BatchStream:
        events.sort(key=lambda event: event[0])
        timeline, places = self._timeline(), [place for place, _ in events]
        return BatchStream(
            "",
            [payload for _, payload in events],
            list(map(timeline.batch_at, places)),
            timeline,
            merged(self.batches, sorted(set(places))),
            self.orders,
            origin,
        )

    def __repr__(self) -> str:
        if self.timeline is None:
            return "<Relation: a table>"
        if self.timeline.end > _SHOWN:
            return f"<Relation over {self.timeline.end} instants>"
        relation_html = (f"{at}: {', '.join(map(repr, rows)) or 'nothing'}" for at, rows in self.states())
        return f"<Relation {'; '.join(relation_html)}>"

    def _below(self) -> str:
        from streamdsl.papers.cql.relation_picture import relation_html

        return relation_html(self.timeline, self.batches, self._rows)


@dataclass(frozen=True, repr=False)
class GroupedRelation:
    """A relation divided by a key."""

    relation: Relation
    groups: GroupedStream[Any, Any]

    def __repr__(self) -> str:
        return f"<GroupedRelation of {self.relation!r}>"

    def aggregate(self, *query: Any, **named: Any) -> Relation:
        """Aggregate each group to a record with the key first; arguments as of `GroupedWindowedStream.aggregate`.

        >>> import streamdsl as sd
        >>> from streamdsl import cql
        >>> g = cql.stream_group(S=[({"k": 1, "v": 2}, 1), ({"k": 1, "v": 3}, 1)])
        >>> g.S.rows(None).group_by("k").aggregate(v=sd.sum(lambda e: e.v)).states()
        [((1, 1), [Record(k=1, v=5)])]
        """
        return replace(self.relation, stream=self.groups.snapshot_window().aggregate(*query, **named))


def _check_relation(other: object) -> None:
    if not isinstance(other, Relation):
        raise QueryError(f"{other!r} is no relation", hint="make a stream one with a window, and rows with cql.table(rows)")


def table(rows: Iterable[Any]) -> Relation:
    """Return a relation with the same rows at every batch, of whichever group it is joined with.

    >>> from streamdsl import cql
    >>> g = cql.stream_group(S=[({"k": 1}, 1)])
    >>> g.S.rows(1).join(cql.table([{"k": 1, "name": "one"}]), on="k", select=lambda l, r: r.name).states()
    [((1, 1), ['one'])]
    """
    if not isinstance(rows, Iterable):
        raise QueryError(f"{rows!r} is no list of rows", hint='cql.table([{"k": 1}])')
    static = TableRows(tuple(rows))
    lives: Stream[Any] = from_rows([(0, INFINITY, row) for row in static.rows])
    return Relation(lives, windows={_source(lives): static})


def _source(stream: Stream[Any]) -> str:
    return next(node.source for node in stream.plan().walk() if isinstance(node, Source))
