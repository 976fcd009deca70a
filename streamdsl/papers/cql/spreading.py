"""SPREAD: other batches for the streams of a group (paper 002, section 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from streamdsl.errors import FieldNotFound, QueryError
from streamdsl.papers.cql.batch_orders import TieOrder
from streamdsl.papers.cql.group_timeline import Batch
from streamdsl.papers.cql.stream_groups import StreamGroup
from streamdsl.temporal.payload import fields_of, payload_order

On: TypeAlias = str | Sequence[str] | None
Tuple: TypeAlias = tuple[str, Any, Batch]
"""A tuple of a group: its stream, payload and batch."""


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
    found: dict[str, tuple[list[Any], list[Batch]]] = {name: ([], []) for name in names}
    for name, payload, at in placed(tuples, on, all, g._orders):
        found[name][0].append(payload)
        found[name][1].append(at)
    return StreamGroup(found, g.span, g._orders, g.unit)


def placed(tuples: Iterable[Tuple], on: On, all: bool, orders: TieOrder) -> list[Tuple]:
    """Return tuples in order, in their new batches."""
    together: Callable[[Tuple], Any] = _time if all else _batch
    ordered = sorted(tuples, key=together)
    if on is None:
        sizes = [len(list(same)) for _, same in groupby(ordered, key=together)]
        return _numbered(list(enumerate(ordered[n] for n in orders.arrange(sizes))))
    rank = ranking(on)
    keyed = sorted((((together(each), rank(each)), each) for each in ordered), key=lambda pair: pair[0])
    return _numbered(keyed)


def ranking(on: str | Sequence[str]) -> Callable[[Tuple], tuple[Any, ...]]:
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


def _numbered(keyed: Sequence[tuple[Any, Tuple]]) -> list[Tuple]:
    """Number the batches at each timestamp: one for each key."""
    found: list[Tuple] = []
    before, batch = None, (0, 0)
    for key, (name, payload, (t, _)) in keyed:
        if not found or key != before:
            batch = (t, batch[1] + 1 if found and batch[0] == t else 1)
        before = key
        found.append((name, payload, batch))
    return found


def _time(each: Tuple) -> int:
    return each[2][0]


def _batch(each: Tuple) -> Batch:
    return each[2]
