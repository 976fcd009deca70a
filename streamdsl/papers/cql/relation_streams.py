"""States, ISTREAM, DSTREAM and RSTREAM of a relation's rows, which have lifetimes on the timeline (paper 002, 4.3)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from streamdsl.papers.cql.group_timeline import Timeline
from streamdsl.temporal import CHTRow
from streamdsl.temporal.payload import payload_order

Rows: TypeAlias = Sequence[CHTRow[Any]]
Event: TypeAlias = tuple[int, Any]
"""An instant of a timeline by its number, and a payload."""


def in_order(rows: Iterable[CHTRow[Any]]) -> list[CHTRow[Any]]:
    """Return rows by payload."""
    return sorted(rows, key=lambda row: payload_order(row.payload))


def states(rows: Rows, places: Sequence[int]) -> list[list[Any]]:
    """Return the rows that are alive at each of some instants.

    >>> states([CHTRow(0, 2, "a"), CHTRow(1, 5, "b")], [0, 1, 4])
    [['a'], ['a', 'b'], ['b']]
    """
    found: list[list[Any]] = [[] for _ in places]
    for row in rows:
        for n in range(bisect_left(places, row.le), bisect_left(places, row.re)):
            found[n].append(row.payload)
    return found


def inserted(rows: Rows, timeline: Timeline) -> list[Event]:
    """Return ISTREAM: each row at its LE."""
    return [(row.le, row.payload) for row in rows if timeline.base <= row.le < timeline.end]


def deleted(rows: Rows, timeline: Timeline) -> list[Event]:
    """Return DSTREAM: each row at its RE."""
    return [(row.re, row.payload) for row in rows if timeline.base <= row.re < timeline.end]


def alive(rows: Rows, timeline: Timeline) -> list[Event]:
    """Return RSTREAM: each row at every instant of its lifetime."""
    return [(place, row.payload) for row in rows for place in range(max(row.le, timeline.base), min(row.re, timeline.end))]


def sampled(rows: Rows, places: Sequence[int]) -> list[Event]:
    """Return each row at those of some instants at which it is alive."""
    return [(place, payload) for place, state in zip(places, states(rows, places), strict=True) for payload in state]


def period_ends(places: Sequence[int], timeline: Timeline, period: int) -> list[int]:
    """Return the batches that are followed by one in a later period.

    >>> period_ends([0, 1, 8], Timeline([(0, 1), (0, 2), (7, 1)], (0, 7)), 5)
    [1]
    """
    times = [timeline.batch_at(place)[0] // period for place in places]
    return [place for place, (now, later) in zip(places, pairwise(times), strict=False) if now < later]
