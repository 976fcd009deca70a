"""Replay of a recording: the same pushes, into a new session."""

from __future__ import annotations

from typing import Any

from streamdsl.debugger.pushes import Recording
from streamdsl.debugger.reruns import without_clocks
from streamdsl.engine.opened_plan import OpenedPlan
from streamdsl.engine.query_session import Session
from streamdsl.errors import QueryError
from streamdsl.temporal import MIN_TIME, Cti, Event


def replay(recording: Recording) -> list[Event[Any]]:
    """Run a recording again, and return the output. CTIs that came of a clock come as they came then.

    Raises `QueryError` for a recording that lacks events.
    """
    if not recording.is_whole:
        raise QueryError(f"the recording cannot be replayed: {'; '.join(recording.limits())}", hint="trace() without bounds")
    plan, clocked = without_clocks(recording.plan)
    opened = OpenedPlan.of(plan, recording.emit, recording.options)
    session: Session[Any] = Session(opened.plan, None, opened.emit, opened.options, recording.until, opened.written)
    out: list[Event[Any]] = []
    for push in recording.pushes:
        if push.end is not None:
            out += session.end_with({source: list(events) for source, events in push.batches}, push.end)
            continue
        for source, events in push.batches:
            out += session.push(list(events), source)
        for name in clocked:
            if push.ctis.get(name, MIN_TIME) > session._sources[name].cti:
                out += session.push([Cti(push.ctis[name])], name)
    return out
