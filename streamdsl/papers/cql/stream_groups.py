"""Stream groups: streams with one order of batches across all of them (paper 002, 4.2)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from streamdsl.errors import QueryError
from streamdsl.papers.cql.batch_orders import EveryOrder, GivenOrder, RandomOrder, TieOrder
from streamdsl.papers.cql.batch_stream import BatchStream
from streamdsl.papers.cql.batching import ORACLE, Batching, GivenTuple, by_stream, check_span, numbered, read_named, read_tuple
from streamdsl.papers.cql.group_timeline import EMPTY_SPAN, Batch, Timeline
from streamdsl.papers.cql.relation import Relation
from streamdsl.stream import Stream
from streamdsl.temporal import Unit, common_unit
from streamdsl.temporal.integers import whole_number
from streamdsl.temporal.payload import payload_key

A = TypeVar("A")


Columns: TypeAlias = tuple[Sequence[Any], Sequence[Batch]]
"""The payloads of a stream, and their batches in order."""
Tuples: TypeAlias = "Iterable[tuple[Any, int] | tuple[Any, int, int]] | BatchStream | Stream[Any]"


class StreamGroup:
    """Streams whose batches have one order: `g.S` or `g["S"]` is a stream of it.

    >>> from streamdsl import cql
    >>> cql.stream_group(S=[("a", 1), ("b", 1)], T=[("c", 2)])
    <StreamGroup S: (1, 1) 'a' 'b'; T: (2, 1) 'c'>
    """

    def __init__(
        self,
        tuples: Mapping[str, tuple[Sequence[Any], Sequence[Batch]]],
        span: tuple[int, int],
        orders: TieOrder,
        unit: Unit | None = None,
    ) -> None:
        self._tuples = tuples
        self._orders = orders
        self.span = span
        self.batches = sorted({at for _, batches in tuples.values() for at in batches})
        self._timeline = Timeline(self.batches, span, streams=tuple(tuples), unit=unit)

    @property
    def unit(self) -> Unit | None:
        """What a timestamp counts; None where that is not said."""
        return self._timeline.unit

    @property
    def names(self) -> list[str]:
        """The names of the streams."""
        return list(self._tuples)

    def __getitem__(self, name: str) -> BatchStream:
        if name not in self._tuples:
            raise QueryError(f"the group has no stream {name!r}; its streams are: {', '.join(self._tuples) or '(none)'}")
        payloads, batches = self._tuples[name]
        return BatchStream(name, payloads, batches, self._timeline, self._timeline.places, self._orders)

    def __getattr__(self, name: str) -> BatchStream:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except QueryError as error:
            raise AttributeError(str(error)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._tuples)

    def ordered_by(self, orders: TieOrder) -> StreamGroup:
        """Return the same group, with another way to order simultaneous tuples."""
        other = copy.copy(self)
        other._orders = orders
        return other

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StreamGroup):
            return NotImplemented
        return self.span == other.span and self.names == other.names and all(self[name] == other[name] for name in self)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<StreamGroup {'; '.join(f'{name}: {self[name].text()}' for name in self)}>"


def stream_group(
    listing: Iterable[tuple[str, Any, int]] = (),
    /,
    *,
    batching: Batching = ORACLE,
    span: tuple[int, int] | None = None,
    seed: int | None = None,
    **streams: Tuples,
) -> StreamGroup:
    """Return the group of some streams: tuples `(payload, t, batch)` or `(payload, t)`, fluent streams (t = LE), `BatchStream`s.

    Tuples without batch numbers get them from `batching`; where the order across streams counts, they are given in one list of
    `(name, payload, t)`. `span=(first, last)` are the timestamps that exist: by default from the first tuple's to the last
    one's, or what a `BatchStream` brings; their unit is that of fluent streams. Windows take simultaneous tuples as given (those
    of a `BatchStream` as in its group), or in an order drawn with `seed`. Raises `QueryError` for an inconsistent group, with the
    two tuples.

    >>> from streamdsl import cql
    >>> g = cql.stream_group([("S", "a", 1), ("T", "b", 1), ("S", "c", 1)], batching=cql.STREAMBASE)
    >>> g.S.events(), g.T.events()
    ([((1, 1), 'a'), ((1, 3), 'c')], [((1, 2), 'b')])
    >>> cql.stream_group(S=[("a", 1, 2), ("b", 1, 1)])
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: the group is inconsistent: in stream 'S'
      ('a'; 1) comes before ('b'; 1), but its batch (1, 2) is after (1, 1)
    Hint: give each stream in order of its batches: by timestamp, then by number
    """
    return group_of(streams, read_named(listing), batching, span, seed)


def group_of(
    streams: Mapping[str, Tuples],
    listed: Sequence[GivenTuple] = (),
    batching: Batching = ORACLE,
    span: tuple[int, int] | None = None,
    seed: int | None = None,
) -> StreamGroup:
    """Return the group of some streams by their names, whatever these are."""
    names = dict.fromkeys([*(each.stream for each in listed), *streams])
    given = list(listed)
    given += [found for name, stream in streams.items() for found in _tuples(name, stream)]
    times = [each.t for each in given]
    existing = check_span(span, times) or _span(times, streams.values())
    orders = _orders(streams.values()) if seed is None else RandomOrder(whole_number(seed, "a seed is"))
    unit = common_unit(*map(_unit, streams.values()))
    return StreamGroup(by_stream(numbered(given, batching), names), existing, orders, unit)


def _tuples(name: str, stream: Tuples) -> list[GivenTuple]:
    if isinstance(stream, Relation):
        raise QueryError(f"{name!r} is a relation, not a stream", hint="make it one: istream(), dstream(), rstream()")
    if isinstance(stream, BatchStream):
        return [GivenTuple(name, payload, *at) for payload, at in zip(stream.payloads, stream.batches, strict=True)]
    if isinstance(stream, Stream):
        return [GivenTuple(name, row.payload, row.le, None) for row in stream.run().cht()]
    if not isinstance(stream, Iterable):
        raise QueryError(f"{name}={stream!r} is no stream", hint="give a list of (payload, t), or a stream")
    return [read_tuple(name, each) for each in stream]


def _unit(stream: object) -> Unit | None:
    """Return the unit of a stream's timestamps, if it has one."""
    if isinstance(stream, BatchStream):
        return stream.timeline.unit
    return stream.plan().unit if isinstance(stream, Stream) else None


def _orders(streams: Iterable[object]) -> TieOrder:
    """Return the order of simultaneous tuples of the given streams; a derived stream has that of its group."""
    return next((stream.orders for stream in streams if isinstance(stream, BatchStream)), GivenOrder())


def _span(times: Sequence[int], streams: Iterable[object]) -> tuple[int, int]:
    """Return from the first timestamp to the last one, those of streams that have a span already included."""
    spans = [stream.span for stream in streams if isinstance(stream, BatchStream) and stream.span != EMPTY_SPAN]
    ends = [*times, *(end for span in spans for end in span)]
    return (min(ends), max(ends)) if ends else EMPTY_SPAN


def allowed(f: Callable[[StreamGroup], A], g: StreamGroup, limit: int = 10_000) -> list[A]:
    """Return every distinct answer of `f(g)`, over the orders of the windows and of `spread(on=None)` that `f` makes.

    Raises `QueryError` where there are more than `limit` combinations of orders, and where `f` does not read its group.

    >>> from streamdsl import cql
    >>> g = cql.stream_group(S=[(10, 1), (20, 1), (30, 3)])
    >>> cql.allowed(lambda g: [[row.value for row in rows] for _, rows in g.S.rows(1).states(at="batches")], g)
    [[[20], [30]], [[10], [30]]]
    """
    if not isinstance(g, StreamGroup) or not callable(f):
        raise QueryError("the answers are those of a function of a stream group", hint="cql.allowed(lambda g: ..., g)")
    limit = whole_number(limit, "a limit is", 1)
    orders, found, tried = EveryOrder(), dict[Any, A](), 0
    while not tried or orders.advance():
        answer = f(watched := _ObservedGroup(g, orders))
        if not watched.read and g.names:
            raise QueryError(
                "the function does not read the group that it is given, and has one answer whatever the order",
                hint="write cql.allowed(lambda g: ..., g) so that its windows are on g, not on what was made before",
            )
        tried += 1
        if max(tried, orders.combinations) > limit:
            raise QueryError(
                f"there are more than {limit} combinations of orders",
                hint="take fewer simultaneous tuples, or give a higher limit",
            )
        found.setdefault(payload_key(_comparable(answer)), answer)
    return list(found.values())


class _ObservedGroup(StreamGroup):
    """A group that remembers whether it has been read."""

    def __init__(self, group: StreamGroup, orders: TieOrder) -> None:
        self.__dict__.update(group.ordered_by(orders).__dict__)
        self.read = False

    def __getitem__(self, name: str) -> BatchStream:
        self.read = True
        return super().__getitem__(name)


def _comparable(answer: object) -> object:
    """Return a value of lists and tuples that is equal for equal answers."""
    if isinstance(answer, StreamGroup):
        return [(name, answer[name].events()) for name in answer]
    if isinstance(answer, Relation):
        return answer.states()
    return answer.events() if isinstance(answer, BatchStream) else answer
