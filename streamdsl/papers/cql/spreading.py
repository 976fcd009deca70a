"""SPREAD: other batches for the streams of a group (paper 002, section 5), at once or as tuples come in any order of arrival."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, TypeAlias

from streamdsl.errors import EventError, FieldNotFound, QueryError
from streamdsl.papers.cql.batch_orders import TieOrder
from streamdsl.papers.cql.batching import read_named
from streamdsl.papers.cql.group_timeline import Batch
from streamdsl.papers.cql.stream_groups import StreamGroup
from streamdsl.temporal.integers import whole_number
from streamdsl.temporal.payload import fields_of, payload_order

On: TypeAlias = str | Sequence[str] | None
Tuple: TypeAlias = tuple[str, Any, Batch]
"""A tuple of a group: its stream, payload and batch."""
Placed: TypeAlias = tuple[str, Any, int, int]
"""A stream, a payload, a timestamp and the number of a batch: what `RelationSession.push` takes."""

_WHOLE: Final = object()


def spread(g: StreamGroup, streams: str | Iterable[str], on: On = None, all: bool = False) -> StreamGroup:
    """Return the group of the named streams, their batches divided further by attributes; with `all=True` made of them alone.

    The tuples of a batch (with `all=True`: of a timestamp), of all named streams, are ordered by the attributes; those that have
    the same are one batch. `on` is a field, a list of fields, `"t"` for the timestamp, or None: any order, each tuple alone. The
    group keeps its span. Raises `FieldNotFound` where a tuple lacks a field, `QueryError` for a stream that is not there.

    >>> from streamdsl import cql
    >>> g = cql.stream_group(S=[({"v": 10, "rank": 1}, 1), ({"v": 20, "rank": 3}, 1)], T=[({"v": 100, "rank": 2}, 1)])
    >>> ranked = cql.spread(g, ["S", "T"], on="rank")
    >>> [at for at, _ in ranked.S.events()], [at for at, _ in ranked.T.events()]
    ([(1, 1), (1, 3)], [(1, 2)])
    """
    if not isinstance(g, StreamGroup):
        raise QueryError(f"{g!r} is no stream group", hint="cql.spread(cql.stream_group(S=stream), ...)")
    names = [streams] if isinstance(streams, str) or not isinstance(streams, Iterable) else list(streams)
    if not names or any(not isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise QueryError(f"{names!r} do not name streams, each once", hint='for example cql.spread(g, ["S", "T"], on="rank")')
    tuples = [(name, payload, at) for name in names for payload, at in zip(g[name].payloads, g[name].batches, strict=True)]
    if on is None:
        tuples = _arranged(tuples, all, g._orders)
    running = RunningSpread(on, all)
    found: dict[str, tuple[list[Any], list[Batch]]] = {name: ([], []) for name in names}
    for key, each in sorted(((running.place(each), each) for each in tuples), key=itemgetter(0)):
        name, payload, t, i = running.numbered(key, each)
        found[name][0].append(payload)
        found[name][1].append((t, i))
    return StreamGroup(found, g.span, g._orders, g.unit)


def _arranged(tuples: Sequence[Tuple], all: bool, orders: TieOrder) -> list[Tuple]:
    """Return tuples by timestamp (`all`), or by batch, in an order of those that have the same."""
    ordered = sorted(tuples, key=_time if all else _batch)
    sizes = [len(list(same)) for _, same in groupby(ordered, key=_time if all else _batch)]
    return [ordered[n] for n in orders.arrange(sizes)]


class RunningSpread:
    """SPREAD, or with `all=True` SPREAD ALL, of all streams that are pushed to it.

    Tuples may come in any order; `advance` says what can come no more, and gives the batches that are complete, in order. It may
    speak of timestamps, of the batches that the tuples have already, and of the first attribute inside of these: then batches
    leave while others of their timestamp are still to come (paper 002, section 8).

    >>> from streamdsl import cql
    >>> ordered = cql.RunningSpread(on="rank", all=True)
    >>> ordered.push([("S", {"v": 10, "rank": 3}, 1), ("T", {"v": 20, "rank": 1}, 1), ("S", {"v": 30, "rank": 1}, 2)])
    >>> ordered.advance(1, on=3)
    [('T', {'v': 20, 'rank': 1}, 1, 1)]
    >>> ordered.advance(2)
    [('S', {'v': 10, 'rank': 3}, 1, 2)]
    >>> ordered.held
    1
    """

    def __init__(self, on: On = None, all: bool = False) -> None:
        self._rank = None if on is None else _ranking(on)
        self._all = all
        self._heap: list[tuple[tuple[Any, ...], int, Tuple]] = []
        self._pushed = 0
        self._bound: tuple[Any, ...] = ()
        self._said = ""
        """What the bound says, in words."""
        self._key: tuple[Any, ...] = ()
        self._batch = 0

    def __repr__(self) -> str:
        return f"<RunningSpread{' ALL' if self._all else ''}: {self.held} tuples wait>"

    @property
    def held(self) -> int:
        """How many tuples wait."""
        return len(self._heap)

    def push(self, tuples: Iterable[tuple[str, Any, int] | tuple[str, Any, int, int]]) -> None:
        """Take tuples `(stream, payload, t)`, or `(stream, payload, t, batch)` where they have batches already.

        Raises `EventError` for a tuple that `advance` had excluded; then none of the push is taken.
        """
        placed = []
        for given in read_named(tuples):
            each = (given.stream, given.payload, (given.t, given.i or 1))
            placed.append((self.place(each), each))
            if placed[-1][0] < self._bound:
                raise EventError(given, f"{self._said}, and this tuple is of the timestamp {given.t}")
        for key, each in placed:
            self._pushed += 1
            heapq.heappush(self._heap, (key, self._pushed, each))

    def advance(self, t: int, i: int | None = None, on: Any = _WHOLE) -> list[Placed]:
        """Return the batches before a place in the order, which no later tuple is before: a timestamp, or inside of it more.

        `i`: a batch of the input at `t` (not with `all=True`). `on`: a value of the first attribute, at `t` or in that batch.
        """
        bound: tuple[Any, ...] = (whole_number(t, "a timestamp is"),)
        if not self._all and (i is not None or on is not _WHOLE):
            bound = (*bound, 1 if i is None else whole_number(i, "a batch is", 1))
        elif i is not None:
            raise QueryError(
                "SPREAD ALL forgets the batches of its input", hint="say how far the timestamp has come, or the attribute"
            )
        if on is not _WHOLE:
            if self._rank is None:
                raise QueryError("this SPREAD has no attribute", hint="RunningSpread(on=...)")
            bound = (*bound, payload_order(on))
        if bound > self._bound:
            self._bound = bound
            inside = "" if i is None else f", batch {i}"
            self._said = f"nothing comes any more before {t}{inside}{'' if on is _WHOLE else f', attribute {on!r}'}"
        return self._release()

    def close(self) -> list[Placed]:
        """Return all that waits: nothing comes any more."""
        self._bound, self._said = (math.inf,), "it is closed"
        return self._release()

    def _release(self) -> list[Placed]:
        found = []
        while self._heap and self._heap[0][0] < self._bound:
            key, _, each = heapq.heappop(self._heap)
            found.append(self.numbered(key, each))
        return found

    def place(self, each: Tuple) -> tuple[Any, ...]:
        """Return the place of a tuple in the order of batches."""
        t, i = each[2]
        rank = () if self._rank is None else self._rank(each)
        return (t, *rank) if self._all else (t, i, *rank)

    def numbered(self, key: tuple[Any, ...], each: Tuple) -> Placed:
        """Return the next tuple in the order of batches with the number of its batch."""
        name, payload, (t, _) = each
        if not self._key or self._key[0] != t:
            self._batch = 1
        elif self._rank is None or key != self._key:
            self._batch += 1
        self._key = key
        return name, payload, t, self._batch


def _ranking(on: str | Sequence[str]) -> Callable[[Tuple], tuple[Any, ...]]:
    """Return the function that gives a tuple's place in the order of some attributes."""
    names = [on] if isinstance(on, str) else list(on) if isinstance(on, Iterable) else []
    if not all(isinstance(name, str) for name in names) or not names:
        raise QueryError(f"{on!r} are no attributes", hint='on is a field, a list of fields, "t" for the timestamp, or None')

    def rank(each: Tuple) -> tuple[Any, ...]:
        fields = {**dict(fields_of(each[1])), "t": each[2][0]}
        for name in names:
            if name not in fields:
                raise FieldNotFound(name, fields)
        return tuple(payload_order(fields[name]) for name in names)

    return rank


def _time(each: Tuple) -> int:
    return each[2][0]


def _batch(each: Tuple) -> Batch:
    return each[2]
