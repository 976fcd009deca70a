"""Timelines as SVG: bars in lines that do not overlap, windows behind their members, or densities of many rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from streamdsl.pictures.axis import TimeAxis
from streamdsl.pictures.bins import live, packed, said
from streamdsl.pictures.lanes import Lane
from streamdsl.pictures.svg import COLOURS, grid_line, label, picture
from streamdsl.temporal.time import CHRONON, INFINITY, Unit, format_time

if TYPE_CHECKING:
    from streamdsl.pictures.timeline_picture import Timeline

WIDTH: Final = 960
LEFT: Final = 24
BEYOND: Final = 40
"""How far what has no end reaches over the last time."""
LINE: Final = 22
"""The height of a line of bars."""
BAR: Final = 16
SMALL_LINE, SMALL_BAR = 16, 12
"""The same of members inside of windows."""
TITLE: Final = 24
MOST_ROWS: Final = 300
"""The rows of a lane that are drawn one by one, if they do not need more than `MOST_LINES` lines."""
MOST_LINES: Final = 40
SAMPLE: Final = 24
"""The rows that are drawn of more than these."""
MEMBERS: Final = 8
"""The members of a window that are drawn."""
BINS: Final = 400
DENSITY: Final = 64
"""The height of a picture of density."""
CHARACTER: Final = 6.6
"""The width of a character; labels are placed by it, as no font is at hand to measure them."""
SMALL_CHARACTER: Final = 5.6
_COLOURS: Final = {"input": (COLOURS[0], COLOURS[2], COLOURS[5]), "output": (COLOURS[3],), "windows": (COLOURS[4],)}
_STYLE: Final = (
    ".sd .bar{fill-opacity:.4;stroke-width:1.2}.sd .density{fill-opacity:.45;stroke-width:.8}"
    ".sd .window{fill-opacity:.1;stroke-width:1;stroke-opacity:.8}.sd .gone{fill:none;stroke-dasharray:3 3;stroke-width:1}"
    ".sd .strike{stroke-width:1.6}.sd .struck{text-decoration:line-through}"
    ".sd .cti{stroke:currentColor;stroke-width:1.2;stroke-opacity:.6;stroke-dasharray:1 3;stroke-linecap:round}"
    ".sd .flag{fill:currentColor}.sd .axis{stroke:currentColor;stroke-opacity:.7}.sd .small{font-size:10px}"
)


class Bar(NamedTuple):
    """Where a row is drawn: its ends, up to where it is struck through, and where its label is."""

    low: float
    high: float
    struck: float
    text: str
    text_x: float
    anchor: str

    @property
    def span(self) -> tuple[float, float]:
        """What the bar and its label take."""
        long = len(self.text) * CHARACTER
        start = self.text_x - (long if self.anchor == "end" else 0)
        low, right = (self.low, self.high) if self.high > self.low else (self.low - 7, self.high + 7)
        right = max(right, self.struck)
        return (min(low, start), right if start + long <= right else start + long + 6) if self.text else (low, right)


@dataclass(frozen=True)
class Canvas:
    """What every lane is drawn on: the axis, and the unit of its times."""

    axis: TimeAxis
    unit: Unit | None

    @property
    def edge(self) -> float:
        """The right end of what can be drawn."""
        return self.axis.high + self.axis.beyond


def svg(timeline: Timeline) -> str:
    """Return a timeline as SVG."""
    axis = TimeAxis.over(timeline.times, timeline.unit, LEFT, WIDTH - LEFT, BEYOND)
    canvas = Canvas(axis, timeline.unit)
    marks = axis.marks((WIDTH - 2 * LEFT) // 80)
    y = 44.0 if any(mark.date for mark in marks) else 30.0
    top, parts = y, list[str]()
    used = dict.fromkeys(_COLOURS, 0)
    for lane in timeline.lanes:
        colours = _COLOURS[lane.role]
        part, height = _Lane(lane, canvas, colours[used[lane.role] % len(colours)], y).drawn()
        used[lane.role] += 1
        parts += part
        y += height + 10
    return picture([*_axis(axis, top, y), *parts], WIDTH, round(y + 4), _STYLE)


def _axis(axis: TimeAxis, top: float, bottom: float) -> Iterator[str]:
    marks = axis.marks((WIDTH - 2 * LEFT) // 80)
    dated = -1.0
    for mark in marks:
        x = axis.x(mark.time)
        yield grid_line(x, top - 6, bottom)
        yield label(x, top - 14, mark.text, "quiet", _anchor(x))
        if mark.date and x > dated:
            yield label(x, top - 29, mark.date, "name", _anchor(x, 5 * CHARACTER))
            dated = x + 12 * CHARACTER
    if axis.beyond:
        yield label(axis.high + axis.beyond, top - 14, "∞", "quiet", "middle")
    right = axis.high + axis.beyond
    yield f'<line class="axis" x1="{axis.low}" x2="{right:.1f}" y1="{top - 6}" y2="{top - 6}"/>'


def _anchor(x: float, half: float = 0.0) -> str:
    """Return where a label, so wide, is held, so that it stays in the picture."""
    reach = max(12.0, half)
    return "start" if x < LEFT + reach else "end" if x > WIDTH - LEFT - reach else "middle"


class _Lane:
    """One lane, drawn from `top` down."""

    def __init__(self, lane: Lane, canvas: Canvas, colour: str, top: float) -> None:
        self.lane = lane
        self.canvas = canvas
        self.colour = colour
        self.top = top
        self.y = top
        self.parts: list[str] = []

    def drawn(self) -> tuple[list[str], float]:
        """Return the parts of the picture, and their height."""
        if self.lane.title or self.lane.note:
            title = f'<tspan class="name">{escape(self.lane.title)}</tspan>'
            note = f'<tspan class="quiet" dx="8">{escape(self.lane.note)}</tspan>' if self.lane.note else ""
            self.parts.append(f'<text x="{LEFT}" y="{self.y + 15:.1f}">{title}{note}</text>')
            self.y += TITLE
        first = self.y
        draw_rows = self._windows if self.lane.members is not None else self._bars
        if len(self.lane) > MOST_ROWS or not draw_rows(self.lane):
            self._many()
        self.parts += _ctis(self.lane, self.canvas, first, self.y)
        return self.parts, self.y - self.top

    def _many(self) -> None:
        self._density()
        sample = self.lane.sample(SAMPLE)
        self.parts.append(label(LEFT, self.y + 14, f"{len(sample)} of them", "quiet"))
        self.y += 20
        if self.lane.members is not None:
            self._windows(sample)
        else:
            self._bars(sample)

    def _bars(self, lane: Lane) -> bool:
        """Draw rows one by one, in as many lines as they need; say whether these are not too many."""
        bars = [_bar(lane, row, self.canvas) for row in range(len(lane))]
        lines = packed([bar.span for bar in bars])
        if max(lines, default=0) >= MOST_LINES:
            return False
        for row, (bar, line) in enumerate(zip(bars, lines, strict=True)):
            self.parts.append(_drawn(bar, lane, row, self.canvas.unit, self.y + LINE * line, BAR, self.colour))
        self.y += LINE * (max(lines, default=-1) + 1)
        return True

    def _windows(self, lane: Lane) -> bool:
        """Draw windows, each around its members."""
        assert lane.members is not None
        places = [tuple(self.canvas.axis.xs(np.array(ends)).tolist()) for ends in zip(lane.le, lane.re, strict=True)]
        lines = packed([(low, high) for low, high in places])
        if max(lines, default=0) >= MOST_LINES // 2:
            return False
        boxes = [self._members(members, *place) for members, place in zip(lane.members, places, strict=True)]
        heights = [0.0] * (max(lines, default=-1) + 1)
        for line, (_, high) in zip(lines, boxes, strict=True):
            heights[line] = max(heights[line], high)
        tops = np.concatenate([[self.y], self.y + np.cumsum(heights)]).tolist()
        for row, (line, (low, high), (inside, _)) in enumerate(zip(lines, places, boxes, strict=True)):
            top, tall = tops[line], heights[line] - 6
            name = label(low + 5, top + 14, lane.label(row, (high - low - 8) / CHARACTER), "quiet")
            box = f'x="{low + 0.5:.1f}" y="{top:.1f}" width="{max(high - low - 1, 1):.1f}" height="{tall:.1f}"'
            tip = f"<title>{escape(lane.tip(row, self.canvas.unit))}</title>"
            rect = f'<rect class="window" {box} rx="4" fill="{self.colour}" stroke="{self.colour}"/>'
            self.parts.append(f"<g>{tip}{rect}{name}</g>{inside.replace('@', f'{top:.1f}')}")
        self.y = tops[-1]
        return True

    def _members(self, members: Lane, low: float, high: float) -> tuple[str, float]:
        """Return the members of a window, to be moved to its place, and the height of the window."""
        shown = members.sample(MEMBERS)
        bars = []
        for row in range(len(shown)):
            left, right = self.canvas.axis.xs(np.array([shown.le[row], shown.re[row]])).tolist()
            left, right = max(left, low + 3), min(left if _is_dot(shown, row, right - left) else right, high - 3)
            bars.append(Bar(left, right, right, shown.label(row, (right - left - 6) / SMALL_CHARACTER), left + 4, "start"))
        lines = packed([bar.span for bar in bars])
        unit, colour = self.canvas.unit, COLOURS[0]
        drawn = [
            _drawn(bar, shown, row, unit, 20.0 + SMALL_LINE * line, SMALL_BAR, colour)
            for row, (bar, line) in enumerate(zip(bars, lines, strict=True))
        ]
        height = 20 + SMALL_LINE * (max(lines, default=-1) + 1)
        if len(shown) < len(members):
            drawn.append(label(low + 5, height + 9, f"… {len(members) - len(shown)} more", "quiet small"))
            height += 14
        return f'<g transform="translate(0 @)">{"".join(drawn)}</g>', height + 10.0

    def _density(self) -> None:
        """Draw how many rows live in each part of the axis."""
        axis = self.canvas.axis
        counts = live(axis, self.lane.le, self.lane.re, BINS)
        floor = self.y + DENSITY
        wide = (axis.high - axis.low) / BINS
        steps = "".join(
            f"V{floor - count / max(int(counts.max()), 1) * (DENSITY - 18):.1f}H{axis.low + wide * (n + 1):.1f}"
            for n, count in enumerate(counts.tolist())
        )
        said_so = said(len(self.lane), BINS, counts)
        self.parts.append(label(LEFT, self.y + 11, said_so, "quiet"))
        path = f'd="M{axis.low:.1f},{floor:.1f}{steps}V{floor:.1f}Z" fill="{self.colour}" stroke="{self.colour}"'
        self.parts.append(f'<path class="density" {path}><title>{escape(said_so)}</title></path>')
        self.y = floor + 4


def _bar(lane: Lane, row: int, canvas: Canvas) -> Bar:
    """Return where a row is drawn. Its label is in the bar if there is room, else beside it."""
    low, high, struck = canvas.axis.xs(np.array([lane.le[row], lane.re[row], lane.ever[row]])).tolist()
    is_dot = _is_dot(lane, row, high - low)
    high = low if is_dot else high
    name = lane.name(row)
    long, right = len(name) * CHARACTER, max(high, struck if struck > high and lane.ever[row] > lane.re[row] else high)
    if long + 8 <= (high if high > low else right) - low:
        return Bar(low, high, right, name, low + 5, "start")
    if right + 10 + long <= WIDTH:
        return Bar(low, high, right, name, right + 8, "start")
    if low - 8 - long > 0:
        return Bar(low, high, right, name, low - 8, "end")
    return Bar(low, high, right, lane.label(row, (right - low - 8) / CHARACTER), low + 5, "start")


def _is_dot(lane: Lane, row: int, wide: float) -> bool:
    """Say whether a row is drawn as a dot at its LE: a point event, or what is too short to be seen."""
    return int(lane.re[row]) == int(lane.le[row]) + CHRONON or wide < 3


def _drawn(bar: Bar, lane: Lane, row: int, unit: Unit | None, top: float, tall: int, colour: str) -> str:
    le, re = int(lane.le[row]), int(lane.re[row])
    parts = [f"<title>{escape(lane.tip(row, unit))}</title>"]
    css = ""
    middle, paint = top + tall / 2, f'fill="{colour}" stroke="{colour}"'
    if re > le and bar.high - bar.low < 3:
        parts.append(f'<circle class="dot" cx="{bar.low:.1f}" cy="{middle:.1f}" r="{tall / 3:.1f}" fill="{colour}"/>')
    elif re == INFINITY:
        tip = f"M{bar.low:.1f},{top:.1f}H{bar.high - 8:.1f}L{bar.high:.1f},{middle:.1f}L{bar.high - 8:.1f},{top + tall:.1f}"
        parts.append(f'<path class="bar edge" d="{tip}H{bar.low:.1f}Z" {paint}/>')
    elif re > le:
        place = f'x="{bar.low:.1f}" y="{top:.1f}" width="{bar.high - bar.low:.1f}" height="{tall}"'
        parts.append(f'<rect class="bar" {place} rx="3" {paint}/>')
    if int(lane.ever[row]) > re:
        start = bar.high
        place = f'x="{start:.1f}" y="{top:.1f}" width="{max(bar.struck - start, 3):.1f}" height="{tall}"'
        parts.append(f'<rect class="gone" {place} rx="3" stroke="{colour}"/>')
        is_text = bar.high == bar.low and bar.anchor == "start" and bar.low < bar.text_x < bar.struck
        ends = f'x1="{start:.1f}" x2="{max(bar.struck, start + 3):.1f}" y1="{middle:.1f}" y2="{middle:.1f}"'
        parts.append("" if is_text else f'<line class="strike" {ends} stroke="{colour}"/>')
        css = "quiet struck" if is_text else ""
    if bar.text:
        css = css if tall == BAR else "small"
        parts.append(label(bar.text_x, middle + (4 if tall == BAR else 3.5), bar.text, css, bar.anchor))
    return f"<g>{''.join(parts)}</g>"


def _ctis(lane: Lane, canvas: Canvas, top: float, bottom: float) -> Iterator[str]:
    """Yield the lines of CTIs; of many those that can be told from one another."""
    places: dict[int, int] = {round(canvas.axis.x(time)): time for time in lane.ctis.tolist()}
    for x, time in places.items():
        tip = f"<title>CTI {format_time(time, canvas.unit)}</title>"
        line = f'<line class="cti" x1="{x}" x2="{x}" y1="{top - 4:.1f}" y2="{bottom:.1f}"/>'
        flag = f'<path class="flag" d="M{x},{top - 8:.1f}l6,3.5l-6,3.5z"/>'
        yield f"<g>{tip}{line}{flag}</g>"
