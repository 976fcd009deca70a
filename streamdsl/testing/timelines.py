"""Histories and physical streams drawn as text, in the notation that `marbles` reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from streamdsl.temporal import CHRONON, CHT, INFINITY, CHTRow, Cti, Event, Retract, Unit, format_time
from streamdsl.testing.history import History, arrivals_of, rows_of
from streamdsl.testing.marbles import RULER

_WIDTH: Final = 72
"""The longest drawing in columns; what spans more ticks is not drawn to scale."""
_STEP: Final = 5
"""Ticks between two numbers of the ruler."""
_NAME: Final = 16
"""The longest payload that is a name; a longer one is a comment."""


@dataclass(frozen=True)
class TimelineLine:
    """One line of a timeline: a lifetime, or a CTI (`le == re` and `cti`), its name, and a comment."""

    name: str
    le: int
    re: int
    comment: str = ""
    cti: bool = False


def timeline(history: History, window: tuple[int, int] | None = None) -> str:
    """Draw a history, one row a line named by its payload, or a physical stream, one event a line in order of arrival.

    The drawing is to scale, one column a tick, if it is not too wide; `marbles` then reads what is drawn of a physical stream as
    the same events. Else the columns are the distinct times, and a comment has the lifetime.

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
    text = _text(row.payload)
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
            _text(str(event.id)), event.le, event.re_new, f"RE {format_time(event.re)} -> {format_time(event.re_new)}"
        )
    is_named = isinstance(event.payload, str) and event.payload == event.id
    return TimelineLine(_text(str(event.id)), event.le, event.re, "" if is_named else repr(event.payload))


def draw(lines: Sequence[TimelineLine], unit: Unit | None = None) -> str:
    """Return the drawing of some lines, with a ruler above it."""
    times = sorted({time for line in lines for time in (line.le, line.re) if time != INFINITY})
    scale = _TimeScale(times)
    names = [line.name for line in lines]
    pictures = [scale.picture(line) for line in lines]
    comments = [_comment(line, scale.exact, unit) for line in lines]
    left = max([len(RULER), *map(len, names)])
    right = max([*map(len, pictures), 0])
    drawn = [
        f"{name:{left}}: {picture:{right}}  {comment}".rstrip()
        for name, picture, comment in zip(names, pictures, comments, strict=True)
    ]
    return "\n".join([f"{RULER:{left}}: {scale.ruler()}".rstrip(), *drawn])


def _comment(line: TimelineLine, exact: bool, unit: Unit | None) -> str:
    if exact:
        return f"# {line.comment}" if line.comment else ""
    life = format_time(line.le, unit) if line.cti else f"[{format_time(line.le, unit)}, {format_time(line.re, unit)})"
    return f"# {life} {line.comment}".rstrip()


def _text(payload: Any) -> str:
    """Return a payload as a name: without what begins a comment, and without the end of a name."""
    shown = payload if isinstance(payload, str) and payload else repr(payload)
    return shown.replace("\n", " ").replace("#", " ").replace(":", "=")


class _TimeScale:
    """Which column shows which time."""

    def __init__(self, times: Sequence[int]) -> None:
        first, last = (min(times[0], 0), times[-1]) if times else (0, 0)
        if times and times[0] > _WIDTH // 2:
            first = times[0] - times[0] % _STEP
        self.exact = last - first <= _WIDTH
        self.first = first
        self.last = last if self.exact else 4 * (len(times) - 1)
        self._columns = {} if self.exact else {time: 4 * i for i, time in enumerate(times)}

    def column(self, time: int) -> int:
        """Return the column of a finite time."""
        return time - self.first if self.exact else self._columns[time]

    def picture(self, line: TimelineLine) -> str:
        """Return a line's drawing."""
        if line.cti:
            return "|>" if line.le == INFINITY else "-" * self.column(line.le) + "|"
        start = self.column(line.le)
        if line.re == line.le:
            shape = "[!"
        elif line.re == line.le + CHRONON:
            shape = "*"
        else:
            edge = self.last - self.first + CHRONON if self.exact else self.last + 4
            end = edge if line.re == INFINITY else self.column(line.re)
            shape = f"[{'=' * (end - start - 1)}{'>' if line.re == INFINITY else ')'}"
        return "-" * start + shape

    def ruler(self) -> str:
        """Return the first tick and every fifth one, or that there is no scale."""
        if not self.exact:
            return "not to scale"
        text = str(self.first)
        for time in range(self.first - self.first % -_STEP, self.last + 1, _STEP):
            if time != self.first and self.column(time) > len(text):
                text = f"{text:{self.column(time)}}{time}"
        return text
