"""Checks of queries from a program."""

from __future__ import annotations

from typing import Any

from streamdsl.checks.all_checks import findings
from streamdsl.checks.finding import Finding
from streamdsl.errors import QueryError
from streamdsl.running import sources
from streamdsl.stream import Stream


def check(query: Stream[Any]) -> list[Finding]:
    """Return what is wrong with a query that can be seen before it runs: state that no CTI frees, CTIs held back, lost speed.

    Each finding names the operator, what it holds back, the remedy, and the line that made it. Bounded inputs end, so nothing is
    said of their rows. LEs, REs and CTIs are not touched: nothing runs. Raises `QueryError` for what is no query.

    >>> import streamdsl as sd
    >>> doors, lamps = sd.source("doors").to_edges("room"), sd.source("lamps").to_points()
    >>> [found.operator for found in sd.checks.check(doors.join(lamps, on="room"))]
    ['to_edges_1', 'join_1']
    >>> found = sd.checks.check(doors.semi_join(lamps))[-1]
    >>> found.level, found.what
    ('warning', 'keeps the rows of to_edges_1 that never end until the input is closed')
    >>> found.remedy
    'end the rows below it: clip_duration(d), or to_points() where only starts count'
    >>> [found.level for found in sd.checks.check(doors.clip_duration(60).join(lamps, on="room"))]
    ['note']
    """
    if not isinstance(query, Stream):
        raise QueryError(
            f"check takes a query, not {query!r}", hint="of groups or windows check the result of aggregate or apply"
        )
    sources(query._node)
    return findings(query._node, query._bindings)
