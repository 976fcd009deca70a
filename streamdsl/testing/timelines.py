"""Histories and physical streams drawn as text, in the notation that `marbles` reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from streamdsl.pictures.text_lines import TimelineLine, as_name, draw
from streamdsl.temporal import CHT, CHTRow, Cti, Event, Retract, format_time
from streamdsl.testing.history import History, arrivals_of, rows_of

_NAME: Final = 16
"""The longest payload that is a name; a longer one is a comment."""


def timeline(history: History, window: tuple[int, int] | None = None) -> str:
    """Draw a history, one row a line named by its payload, or a physical stream, one event a line in order of arrival.

    The drawing is to scale, one column a tick, if it is not too wide; `marbles` then reads what is drawn of a physical stream as
    the same events. Else the columns are the distinct times, and a comment has the lifetime.

    >>> from streamdsl.temporal import INFINITY
    >>> print(timeline([(1, 5, "P1"), (4, 9, "P2"), (7, INFINITY, "P3"), (8, 9, "P4")], window=(0, 10)))
    time  : 0    5    10
    window: [=========)
    P1    : -[===)
    P2    : ----[====)
    P3    : -------[===>
    P4    : --------*
    >>> from streamdsl.temporal import edge_end, edge_start, point
    >>> print(timeline([edge_start("e0", 1, "P1"), Cti(3), point("e1", 5, 7), edge_end("e0", 1, 4)]))
    time: 0    5
    e0  : -[=====>  # 'P1'
    cti : ---|
    e1  : -----*    # 7
    e0  : -[==)     # RE inf -> 4
    >>> print(timeline([(10**6, 3 * 10**6, "x"), (2 * 10**6, INFINITY, "y")]))
    time: not to scale
    x   : [=======)      # [1000000, 3000000)
    y   : ----[=======>  # [2000000, inf)
    """
    events = arrivals_of(history)
    if events is not None:
        lines = lines_of_events(events)
    else:
        lines = [line_of_row(row) for row in rows_of(history)]
    frame = [] if window is None else [TimelineLine("window", *window)]
    return draw([*frame, *lines], history.unit if isinstance(history, CHT) else None)


def line_of_row(row: CHTRow[Any], mark: str = "") -> TimelineLine:
    """Return the line of a row: named by its payload, after a mark of what is done with it; a long payload is the comment."""
    text = as_name(row.payload)
    name, comment = (text, "") if len(text) <= _NAME else (type(row.payload).__name__, repr(row.payload))
    return TimelineLine(f"{mark} {name}".strip(), row.le, row.re, comment)


def lines_of_events(events: Iterable[Event[Any]]) -> list[TimelineLine]:
    """Return a line for each physical event; a retraction shows the lifetime that it leaves."""
    return [_event_line(event) for event in events]


def _event_line(event: Event[Any]) -> TimelineLine:
    if isinstance(event, Cti):
        return TimelineLine("cti", event.time, event.time, cti=True)
    if isinstance(event, Retract):
        return TimelineLine(
            as_name(str(event.id)), event.le, event.re_new, f"RE {format_time(event.re)} -> {format_time(event.re_new)}"
        )
    is_named = isinstance(event.payload, str) and event.payload == event.id
    return TimelineLine(as_name(str(event.id)), event.le, event.re, "" if is_named else repr(event.payload))
