"""The public function that checks a query."""

from __future__ import annotations

from typing import Any

from streamdsl.checks.all_checks import findings
from streamdsl.checks.finding import Finding
from streamdsl.errors import QueryError
from streamdsl.running import runnable_sources
from streamdsl.stream import Stream


def check(query: Stream[Any]) -> list[Finding]:
    """Return the problems of a query that are known before it runs: state that no CTI frees, CTIs held back, slow constructs.

    Each finding has the operator, the problem, the remedy, and the line of the query. Bounded inputs end, so their rows are not
    checked. LEs, REs and CTIs are not touched: nothing runs. Raises `QueryError` for arguments that are not queries.

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
            f"check takes a query, not {query!r}", hint="for groups or windows, check the result of aggregate or apply"
        )
    runnable_sources(query._node)
    return findings(query._node, query._bindings)
