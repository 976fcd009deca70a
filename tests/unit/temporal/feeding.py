"""What the tests of event tables share: a physical stream, and how a table takes it in."""

from __future__ import annotations

from typing import Any, TypeAlias

from streamdsl.temporal import Cti, Event, EventTable, Insert, Retract

Stream: TypeAlias = list[Event[Any]]


def feed(table: EventTable, stream: Stream) -> list[Insert[Any] | Retract | None]:
    """Return what a table admits of each event that is no CTI."""
    found = []
    for event in stream:
        if isinstance(event, Cti):
            table.advance(event.time)
        else:
            found.append(table.admit(event))
    return found
