"""Timelines as text: a line for each lifetime, to scale where that is possible, in the notation that `marbles` reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from streamdsl.pictures.axis import TimeAxis
from streamdsl.temporal.time import CHRONON, INFINITY, Unit, format_time

WIDTH: Final = 72
"""The longest drawing in columns; what spans more ticks is not drawn a column a tick."""
RULER: Final = "time"
"""The name of the line that says which tick the first column is."""
_STEP: Final = 5
"""Ticks between two numbers of the ruler."""


@dataclass(frozen=True)
class TimelineLine:
    """One line of a timeline: a lifetime, or a CTI (`le == re` and `cti`), its name, and a comment.

    `was` is a larger RE that the row has had: what lies between is struck through. `ctis` are several CTIs, in one line.
    """

    name: str
    le: int
    re: int
    comment: str = ""
    cti: bool = False
    was: int | None = None
    ctis: tuple[int, ...] = ()
    inner: bool = False
    """Whether the line is a part of the one above, whose comment says enough."""
    drawing: str | None = None
    """What stands in the place of a lifetime, for a line that has none."""

    @property
    def times(self) -> tuple[int, ...]:
        """The times that have a place in the drawing."""
        return () if self.drawing is not None else self.ctis or (self.le, self.re, *(() if self.was is None else (self.was,)))


class Scale(Protocol):
    """Which column shows which time."""

    @property
    def exact(self) -> bool:
        """Whether a column is a tick, so that the drawing says all, and no comment needs to."""

    @property
    def edge(self) -> int:
        """The column of INFINITY."""

    def column(self, time: int) -> int:
        """Return the column of a finite time."""

    def ruler(self) -> str:
        """Return the line of numbers."""


def draw(lines: Sequence[TimelineLine], unit: Unit | None = None) -> str:
    """Return the drawing of some lines, with a ruler above it: to scale, or with a column for each distinct time."""
    times = sorted({time for line in lines for time in line.times if time != INFINITY})
    exact = ExactScale.of(times)
    return on_scale(lines, exact or RankScale(times), unit)


def on_scale(lines: Sequence[TimelineLine], scale: Scale, unit: Unit | None) -> str:
    """Return the drawing of some lines on a scale."""
    names = [line.name for line in lines]
    pictures = [_picture(line, scale) for line in lines]
    comments = [_comment(line, scale.exact, unit) for line in lines]
    left = max([len(RULER), *map(len, names)])
    right = max([*map(len, pictures), 0])
    drawn = [
        f"{name:{left}}: {picture:{right}}  {comment}".rstrip()
        for name, picture, comment in zip(names, pictures, comments, strict=True)
    ]
    return "\n".join([f"{RULER:{left}}: {scale.ruler()}".rstrip(), *drawn])


def as_name(payload: Any) -> str:
    """Return a payload as a name: without what begins a comment, and without the end of a name."""
    shown = payload if isinstance(payload, str) and payload else repr(payload)
    return shown.replace("\n", " ").replace("#", " ").replace(":", "=")


def _comment(line: TimelineLine, exact: bool, unit: Unit | None) -> str:
    if exact or line.inner or line.drawing is not None or line.ctis:
        return f"# {line.comment}" if line.comment else ""
    life = format_time(line.le, unit) if line.cti else f"[{format_time(line.le, unit)}, {format_time(line.re, unit)})"
    return f"# {life} {line.comment}".rstrip()


def _picture(line: TimelineLine, scale: Scale) -> str:
    if line.drawing is not None:
        return line.drawing
    if line.cti:
        return "|>" if line.le == INFINITY else "-" * scale.column(line.le) + "|"
    if line.ctis:
        places = {scale.column(time) for time in line.ctis if time != INFINITY}
        bars = "".join("|" if place in places else "-" for place in range(max(places, default=-1) + 1))
        return bars + "|>" * (INFINITY in line.ctis)
    start, end = scale.column(line.le), _end(line.re, scale)
    shape = "[!" if line.re == line.le else _shape(line, end - start, scale.exact)
    if line.was is not None and line.was > line.re:
        kept = shape if line.re > line.le else ""
        shape = kept + "x" * max(_end(line.was, scale) - start + 1 - len(kept), 1)
    return "-" * start + shape


def _end(re: int, scale: Scale) -> int:
    return scale.edge if re == INFINITY else scale.column(re)


def _shape(line: TimelineLine, width: int, exact: bool) -> str:
    if line.re == line.le + CHRONON or (width < 1 and not exact):
        return "*"
    return f"[{'=' * (width - 1)}{'>' if line.re == INFINITY else ')'}"


@dataclass(frozen=True)
class ExactScale:
    """A column a tick."""

    first: int
    last: int
    exact: bool = True

    @classmethod
    def of(cls, times: Sequence[int]) -> ExactScale | None:
        """Return the scale of sorted times, from 0 if they are near it; None if they are too far apart.

        >>> ExactScale.of([40, 80])
        ExactScale(first=40, last=80, exact=True)
        """
        first, last = (min(times[0], 0), times[-1]) if times else (0, 0)
        if times and times[0] > WIDTH // 2:
            first = times[0] - times[0] % _STEP
        return cls(first, last) if last - first <= WIDTH else None

    @property
    def edge(self) -> int:
        """The column of INFINITY: after the last time."""
        return self.last - self.first + CHRONON

    def column(self, time: int) -> int:
        """Return the column of a finite time."""
        return time - self.first

    def ruler(self) -> str:
        """Return the first tick and every fifth one."""
        text = str(self.first)
        for time in range(self.first - self.first % -_STEP, self.last + 1, _STEP):
            if time != self.first and self.column(time) > len(text):
                text = f"{text:{self.column(time)}}{time}"
        return text


class RankScale:
    """Four columns for each distinct time."""

    exact = False

    def __init__(self, times: Sequence[int]) -> None:
        self.edge = 4 * len(times)
        self._columns = {time: 4 * i for i, time in enumerate(times)}

    def column(self, time: int) -> int:
        """Return the column of a finite time."""
        return self._columns[time]

    def ruler(self) -> str:
        """Say that there is no scale."""
        return "not to scale"


class AxisScale:
    """A column for each equal part of an axis, with round numbers or dates above."""

    exact = False

    def __init__(self, axis: TimeAxis) -> None:
        self.axis = axis
        self.edge = int(axis.high) + 1

    def column(self, time: int) -> int:
        """Return the column of a finite time."""
        return int(self.axis.x(time))

    def ruler(self) -> str:
        """Return the times that are written on the axis, each where its column is."""
        text = ""
        marks = self.axis.marks(int(self.axis.high) // 12)
        dated = any(mark.date for mark in marks)
        for mark in marks:
            place = self.column(mark.time)
            if not text or place > len(text):
                joint = "-" if dated and len(mark.text) == 5 and ":" not in mark.text else " "
                shown = f"{mark.date}{joint}{mark.text}" if mark.date else mark.text
                text = f"{text:{place}}{shown}"
        return text
