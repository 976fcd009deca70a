"""Construction of relations from windows on streams, and from tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamdsl.errors import QueryError
from streamdsl.papers.cql.batch_stream import BatchStream
from streamdsl.papers.cql.relation import Relation
from streamdsl.papers.cql.relation_window import RelationWindow, TableRows, WindowTuple
from streamdsl.plan.node import Source
from streamdsl.sources import from_rows
from streamdsl.stream import Stream
from streamdsl.temporal import INFINITY


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


def of_window(stream: BatchStream, window: RelationWindow) -> Relation:
    """Return the relation of a window on a stream."""
    arranged = stream.arranged() if window.expiry.counts else range(len(stream.payloads))
    places = [stream.timeline.place_of(stream.batches[n]) for n in arranged]
    rows = stream.rows_of
    members = [WindowTuple(n, rows[n], rows[n]["t"], place) for n, place in zip(arranged, places, strict=True)]
    running = window.start()
    changes = running.step(members, stream.timeline)
    lives: Stream[Any] = from_rows([(change.le, change.re, change.payload) for change in changes])
    slides = list(running.forming()) if window.slide_policy.slides else ()
    return Relation(lives, stream.timeline, stream.group_places, slides, {_source(lives): window}, stream.orders)


def _source(stream: Stream[Any]) -> str:
    return next(node.source for node in stream.plan().walk() if isinstance(node, Source))
