"""Incremental evaluation of relations: tuples are pushed batch by batch, and each push returns the changes."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeAlias

from streamdsl.errors import QueryError, SessionError
from streamdsl.papers.cql import relation_streams
from streamdsl.papers.cql.batch_orders import TieOrder
from streamdsl.papers.cql.batching import Batching, GivenTuple, numbered, read_named, window_row
from streamdsl.papers.cql.group_clock import GroupClock
from streamdsl.papers.cql.group_timeline import Batch, Timeline
from streamdsl.papers.cql.relation_window import Derivation, RelationWindow, RunningWindow, TableRows, WindowTuple
from streamdsl.temporal import INFINITY, CHTRow, Cti, Insert, Retract
from streamdsl.temporal.events import Event

Arrival: TypeAlias = tuple[Any, int, int]
"""The window row of a tuple that comes, its timestamp, and the number of its batch."""
Arrivals: TypeAlias = Mapping[str, Sequence[Arrival]]
"""The arrivals on each stream of the group, in order."""
Rows: TypeAlias = Mapping[Hashable, CHTRow[Any]]
"""Rows by the id of their event."""
_MIN_SPLIT: Final = 256
"""The least number of changes for which insertions and retractions are pushed apart."""


class Changes(NamedTuple):
    """The rows that come and that go, each with its batch."""

    istream: list[tuple[Batch, Any]]
    dstream: list[tuple[Batch, Any]]


class RelationSession:
    """A relation that runs.

    A push takes whole batches, in order; it is answered with the rows that come and go in them, and at the empty timestamps
    before. The windows insert and shorten rows on the engine, and a CTI follows each push: so what no later batch can change is
    forgotten.

    >>> import streamdsl as sd
    >>> from streamdsl import cql
    >>> counted = cql.stream_group(S=[]).S.range(2).aggregate(n=sd.count())
    >>> session = counted.open()
    >>> session.push([("S", "a", 1), ("S", "b", 1)])
    Changes(istream=[((1, 1), Record(n=2))], dstream=[])
    >>> session.push([("S", "c", 2)])
    Changes(istream=[((2, 1), Record(n=3))], dstream=[((2, 1), Record(n=2))])
    >>> session.advance(4)
    Changes(istream=[((3, 1), Record(n=1))], dstream=[((3, 1), Record(n=3))])
    >>> session.state()
    [Record(n=1)]
    """

    def __init__(self, query: Derivation, streams: Collection[str], orders: TieOrder, batching: Batching) -> None:
        self._running = RunningRelation(query, orders, {})
        self._streams = streams
        self._clock = GroupClock()
        self._batching = batching
        self._broken = False

    def push(self, tuples: Iterable[tuple[str, Any, int] | tuple[str, Any, int, int]]) -> Changes:
        """Take the tuples `(stream, payload, t, batch)`, or `(stream, payload, t)`, of some batches.

        Raises `QueryError` for a batch that is not after all that were pushed before, and for a stream that the group lacks: then
        nothing has changed. What fails later (a missing field, user code) ends the session.
        """
        given = read_named(tuples)
        for each in given:
            if each.stream not in self._streams:
                known = ", ".join(self._streams)
                raise QueryError(f"the group has no stream {each.stream!r}; its streams are: {known}")
        placed = self._clock.after(numbered(given, self._batching), self._batching)
        timeline = self._clock.part([at for _, at in placed])
        return self._run(_arrivals(placed, timeline), timeline)

    def advance(self, t: int) -> Changes:
        """Say that no later tuple has a timestamp before `t`: what happens at the empty ones before comes out.

        Said before the first push, `t` is where the span begins.
        """
        return self._run({}, self._clock.advance(t))

    def __repr__(self) -> str:
        ended = ", which broke off" if self._broken else ""
        return f"<RelationSession on {', '.join(self._streams)}: {self._running.held} tuples held{ended}>"

    def state(self) -> list[Any]:
        """Return the rows as of the last batch, by payload."""
        return [row.payload for row in relation_streams.in_order(self._running.rows.values())]

    def stats(self) -> dict[str, Any]:
        """Return the figures of the engine's session, operator by operator, and the tuples that the windows hold."""
        return {**self._running.session.stats(), "windows": {"tuples": self._running.held}}

    def _run(self, arrivals: Arrivals, timeline: Timeline) -> Changes:
        if timeline.base == timeline.end:
            return Changes([], [])
        if self._broken:
            raise SessionError("the session broke off in an earlier push, and cannot go on", hint="open the relation again")
        self._broken = True
        ordered = relation_streams.in_order(self._running.step(arrivals, timeline).values())
        self._broken = False
        came, went = relation_streams.inserted(ordered, timeline), relation_streams.deleted(ordered, timeline)
        return Changes(_placed(came, timeline), _placed(went, timeline))


class RunningRelation:
    """The state of a running relation: its windows, the session of its query, and its current rows.

    A stream that is derived from a relation runs once, however many relations read it: `derived` holds these.
    """

    def __init__(self, query: Derivation, orders: TieOrder, derived: dict[Derivation, RunningDerivation]) -> None:
        self.session = query.stream.open()
        self._statics = {source: window for source, window in query.windows.items() if isinstance(window, TableRows)}
        self._inputs = [
            _WindowInput(source, window.stream, window.start(), orders, _derived(window.origin, orders, derived))
            for source, window in query.windows.items()
            if isinstance(window, RelationWindow)
        ]
        self.rows: dict[Hashable, CHTRow[Any]] = {}
        self._before: list[Event[Any]] = []
        """What has come out before the first instant, at which it is seen."""
        for source, static in self._statics.items():
            self._before += self.session.push(static.events(), source)

    def step(self, arrivals: Arrivals, timeline: Timeline) -> Rows:
        """Advance through a part of the timeline; return the rows that are inserted or deleted in it."""
        out, self._before = self._before, []
        for source in self._statics:
            out += self.session.push([Cti(timeline.end)], source)
        for each in self._inputs:
            out += self.session.push(_split_retractions(each.step(arrivals, timeline), timeline), each.source)
        return self._fold(out)

    @property
    def held(self) -> int:
        """How many tuples the windows hold."""
        return sum(each.running.held for each in self._inputs)

    def _fold(self, events: Iterable[Event[Any]]) -> Rows:
        """Apply output events to the current rows; ended rows are dropped."""
        changed: dict[Hashable, CHTRow[Any]] = {}
        for event in events:
            if isinstance(event, Insert):
                changed[event.id] = CHTRow(event.le, event.re, event.payload)
            elif isinstance(event, Retract):
                known = changed.get(event.id) or self.rows[event.id]
                changed[event.id] = known._replace(re=event.re_new)
        for id, row in changed.items():
            if row.re == INFINITY:
                self.rows[id] = row
            else:
                self.rows.pop(id, None)
        return {id: row for id, row in changed.items() if row.le < row.re}


class RunningDerivation:
    """A stream that is derived from a relation, as both run."""

    def __init__(self, origin: Derivation, orders: TieOrder, derived: dict[Derivation, RunningDerivation]) -> None:
        if origin.read is None:
            raise QueryError(
                "a window on what output_every gives does not run: a period's rows are known when the next one has begun",
                hint="run both by themselves, and push what the one gives to the other",
            )
        self._read = origin.read
        self._running = RunningRelation(origin, orders, derived)
        self._part: Timeline | None = None
        self._found: list[Arrival] = []

    def step(self, arrivals: Arrivals, timeline: Timeline) -> list[Arrival]:
        """Return the tuples that come in a part of the timeline."""
        if timeline is not self._part:
            changed = self._running.step(arrivals, timeline)
            rows = {**self._running.rows, **changed} if self._read is relation_streams.alive else changed
            events = sorted(self._read(relation_streams.in_order(rows.values()), timeline), key=lambda event: event[0])
            dated = ((place, payload, timeline.batch_at(place)[0]) for place, payload in events)
            self._part, self._found = timeline, [(window_row(payload, t), t, place) for place, payload, t in dated]
        return self._found


@dataclass
class _WindowInput:
    """A window that feeds a source of the query."""

    source: str
    stream: str
    running: RunningWindow
    orders: TieOrder
    derived: RunningDerivation | None
    seen: int = 0

    def step(self, arrivals: Arrivals, timeline: Timeline) -> list[Insert[Any] | Retract]:
        coming = self.derived.step(arrivals, timeline) if self.derived else arrivals.get(self.stream, ())
        if self.running.expiry.counts:
            sizes = [len(list(same)) for _, same in groupby(coming, key=lambda each: each[2])]
            coming = [coming[n] for n in self.orders.arrange(sizes)]
        members = [WindowTuple(self.seen + n, row, t, place) for n, (row, t, place) in enumerate(coming)]
        self.seen += len(members)
        return self.running.step(members, timeline)


def _split_retractions(changes: list[Insert[Any] | Retract], timeline: Timeline) -> list[Event[Any]]:
    """Return the pieces of a push: many insertions come apart from retractions, as the engine takes them in columns."""
    end = Cti(timeline.end)
    if len(changes) < _MIN_SPLIT:
        return [*changes, end]
    retractions = [change for change in changes if isinstance(change, Retract)]
    return [*retractions, Cti(timeline.base), *(change for change in changes if isinstance(change, Insert)), end]


def _derived(
    origin: Derivation | None, orders: TieOrder, derived: dict[Derivation, RunningDerivation]
) -> RunningDerivation | None:
    if origin is not None and origin not in derived:
        derived[origin] = RunningDerivation(origin, orders, derived)
    return None if origin is None else derived[origin]


def _arrivals(placed: Sequence[tuple[GivenTuple, Batch]], timeline: Timeline) -> Arrivals:
    found: dict[str, list[Arrival]] = {}
    for given, at in placed:
        found.setdefault(given.stream, []).append((window_row(given.payload, given.t), given.t, timeline.place_of(at)))
    return found


def _placed(events: Sequence[relation_streams.Event], timeline: Timeline) -> list[tuple[Batch, Any]]:
    ordered = sorted(events, key=lambda event: event[0])
    return [(timeline.batch_at(place), payload) for place, payload in ordered]
