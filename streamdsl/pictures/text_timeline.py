"""Timelines as text: a line for each row, or, where there are many, a line of densities and some rows of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from streamdsl.pictures.axis import TimeAxis
from streamdsl.pictures.bins import live, said
from streamdsl.pictures.lanes import Lane
from streamdsl.pictures.text_lines import WIDTH, AxisScale, ExactScale, TimelineLine, as_name, on_scale
from streamdsl.temporal.time import INFINITY, MIN_TIME, format_time

if TYPE_CHECKING:
    from streamdsl.pictures.timeline_picture import Timeline
    from streamdsl.temporal.time import Unit

MOST_LINES: Final = 40
"""The rows of a lane that are drawn one by one."""
SAMPLE: Final = 12
"""The rows that are drawn of more than these."""
MEMBERS: Final = 6
"""The members of a window that are drawn."""
MOST_WINDOWS: Final = 16
"""The windows that are drawn with their members."""
_BLOCKS: Final = " ▁▂▃▄▅▆▇█"


def text(timeline: Timeline) -> str:
    """Return a timeline as text; a single lane has no title."""
    axis = TimeAxis.over(timeline.times, timeline.unit, 0, WIDTH, 1)
    scale = ExactScale.of([axis.first, axis.last]) if _near(timeline) else None
    several = len(timeline.lanes) > 1
    lines = [line for lane in timeline.lanes for line in _lane(lane, axis, timeline.unit, several)]
    return on_scale(lines, scale or AxisScale(axis), timeline.unit)


def _near(timeline: Timeline) -> bool:
    """Say whether a column may be a tick; without any time there is no axis, and the columns are ticks."""
    finite = [part for column in timeline.times if len(part := column[(column != INFINITY) & (column != MIN_TIME)])]
    starts_early = any(len(column) and column.min() == MIN_TIME for column in timeline.times)
    counts = any(len(lane) > (MOST_LINES if lane.members is None else MOST_WINDOWS) for lane in timeline.lanes)
    return not starts_early and not counts and (not finite or max(map(np.max, finite)) - min(map(np.min, finite)) <= WIDTH)


def _lane(lane: Lane, axis: TimeAxis, unit: Unit | None, titled: bool) -> Iterator[TimelineLine]:
    indent = "  " if titled else ""
    if titled:
        yield TimelineLine(as_name(lane.title), 0, 0, lane.note, drawing="")
    shown = lane
    if len(lane) > (MOST_LINES if lane.members is None else MOST_WINDOWS):
        yield _density(lane, axis, indent)
        shown = lane.sample(SAMPLE)
        yield TimelineLine(f"{indent}{len(shown)} of them", 0, 0, drawing="")
        indent += "  "
    for row in range(len(shown)):
        yield _row(shown, row, indent, unit)
        if shown.members is not None:
            yield from _members(shown.members[row], indent + "  ", unit)
    if len(lane.ctis):
        yield TimelineLine(f"{indent}cti", 0, 0, ctis=tuple(lane.ctis.tolist()))


def _row(lane: Lane, row: int, indent: str, unit: Unit | None) -> TimelineLine:
    le, re, was = (int(column[row]) for column in (lane.le, lane.re, lane.ever))
    comment = f"RE {format_time(was, unit)} -> {format_time(re, unit)}" if was > re else ""
    return TimelineLine(f"{indent}{as_name(lane.name(row))}", le, re, comment, was=was if was > re else None)


def _members(members: Lane, indent: str, unit: Unit | None) -> Iterator[TimelineLine]:
    shown = members.sample(MEMBERS)
    yield from (replace(_row(shown, row, indent, unit), inner=True) for row in range(len(shown)))
    if len(shown) < len(members):
        yield TimelineLine(f"{indent}{len(members) - len(shown)} members more", 0, 0, drawing="")


def _density(lane: Lane, axis: TimeAxis, indent: str) -> TimelineLine:
    counts = live(axis, lane.le, lane.re, WIDTH)
    levels: Sequence[int] = np.ceil(counts / max(int(counts.max()), 1) * (len(_BLOCKS) - 1)).astype(int).tolist()
    drawing = "".join(_BLOCKS[level] for level in levels)
    return TimelineLine(f"{indent}rows", 0, 0, said(len(lane), WIDTH, counts), drawing=drawing)
