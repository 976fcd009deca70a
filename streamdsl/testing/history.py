"""The forms in which the test kit takes events, all read as one: the rows that they mean."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from streamdsl.errors import QueryError, shortened
from streamdsl.expr.schema import as_payload
from streamdsl.temporal import CHT, CHTRow, Cti, Event, EventReader, Insert, Retract
from streamdsl.temporal.events import PhysicalEvent
from streamdsl.testing.event_tables import events as read_table
from streamdsl.testing.marbles import marbles
from streamdsl.udm.bases import IntervalEvent

Row: TypeAlias = tuple[int, int, Any] | IntervalEvent[Any]
History: TypeAlias = str | CHT[Any] | Iterable[Row | PhysicalEvent[Any]]
"""Text (an event table or a marble diagram), a CHT, physical events, or rows: `(le, re, payload)` or `IntervalEvent`s."""


def rows_of(history: History) -> list[CHTRow[Any]]:
    """Return the rows that events mean, whatever their form; payloads as modules see them, a `dict` as a `Record`.

    Raises `QueryError` for what is no event, and `EventError` for a malformed stream.

    >>> rows_of("a-b==)") == rows_of([(0, 1, "a"), IntervalEvent(2, 5, "b")])
    True
    """
    given = history if isinstance(history, (str, CHT)) else list(history)
    events = arrivals_of(given)
    rows = given if events is None else CHT.from_events(events)
    return [_row(number, row) for number, row in enumerate(rows)]


def arrivals_of(history: History) -> list[Event[Any]] | None:
    """Return physical events in order of arrival, or None where there is none: rows come in no order.

    >>> arrivals_of("a|"), arrivals_of([(0, 1, "a")])
    ([Insert(id='a', le=0, re=1, payload='a'), Cti(time=1)], None)
    """
    if isinstance(history, str):
        return read_table(history) if history.split(maxsplit=1)[:1] == ["kind"] else marbles(history)
    if isinstance(history, CHT):
        return None
    found = list(history)
    events = [event for event in found if isinstance(event, (Insert, Retract, Cti))]
    if events and len(events) < len(found):
        raise QueryError("these are physical events and rows at once", hint="give either the one or the other")
    return events or None


def _row(number: int, row: Any) -> CHTRow[Any]:
    if isinstance(row, IntervalEvent):
        row = (row.start_time, row.end_time, row.payload)
    try:
        le, re, payload = row
    except (TypeError, ValueError):
        raise QueryError(
            f"{shortened(row)} is no event",
            hint="events are rows (le, re, payload), IntervalEvents, physical events, a CHT, or text: an event table or marbles",
        ) from None
    return CHTRow(*EventReader().lifetime(number, le, re), as_payload(payload))
