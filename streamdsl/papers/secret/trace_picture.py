"""Traces as a picture: tuples on the time line, and under it what each profile looks at and reports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from html import escape
from math import inf
from typing import TYPE_CHECKING, Final

from streamdsl.papers.secret.simulation import Step
from streamdsl.papers.secret.tuples import HEARTBEAT, Tuple
from streamdsl.pictures import COLOURS, TimeAxis, bar, cut, grid_line, label, picture

if TYPE_CHECKING:
    from streamdsl.papers.secret.profile_trace import Trace

LEFT, ROW, TOP, WIDE, TEXT = 20, 18, 46, 700, 230
MOST: Final = 60
"""Reports of a profile that are drawn."""


def draw(traces: Sequence[Trace]) -> str:
    """Return the picture of one input under several profiles: a bar is the interval (o, t] of a report, its output beside it.

    The tuples are above all, or above each profile if what they do to their input is not the same.

    >>> from streamdsl.secret import CORAL8, simulate
    >>> draw([simulate(CORAL8, 2, 1, [("a", 2), ("b", 3)])]).count("<rect")
    2
    """
    lanes = [trace.reported() for trace in traces]
    shown = [(trace, step) for trace, lane in zip(traces, lanes, strict=True) for step in lane[:MOST]]
    last = _horizon(traces, lanes)
    read = [[each for each in trace.tuples if each.value is not HEARTBEAT and each.t_app <= last] for trace in traces]
    shared = all(_where(each) == _where(read[0]) for each in read)
    scale = _axis([*(each.t_app for tuples in read for each in tuples), *(t for each in shown for t in _interval(*each))])
    marks = scale.marks(24)
    parts = [label(scale.x(mark.time), 14, mark.text, "quiet", "middle") for mark in marks]
    parts.extend(_dots(scale, read[0], 30) if shared and read else ())
    top = y = TOP + 10 if shared else TOP - 20
    for trace, lane, tuples, colour in zip(traces, lanes, read, COLOURS * len(traces), strict=False):
        parts.extend(() if shared else _dots(scale, tuples, y + 9, colour))
        parts.extend(_lane(scale, trace, lane, colour, y))
        y += ROW * (min(len(lane), MOST) + 1 + (len(lane) > MOST)) + 8
    lines = (grid_line(scale.x(mark.time), top - 10, y) for mark in marks)
    return picture([*lines, *parts], LEFT + WIDE + TEXT, y + 6)


def _axis(times: Sequence[int]) -> TimeAxis:
    """Return the axis of some times, with room for a tick before and after."""
    return TimeAxis(min(times, default=0) - 1, max(times, default=0) + 1, None, LEFT, LEFT + WIDE)


def _horizon(traces: Sequence[Trace], lanes: Sequence[Sequence[Step]]) -> float:
    """Return the time up to which tuples are drawn: where reports are left out, that of the last ones that are drawn."""
    if all(len(lane) <= MOST for lane in lanes):
        return inf
    return max(_interval(trace, step)[1] for trace, lane in zip(traces, lanes, strict=True) for step in lane[:MOST])


def _where(tuples: Sequence[Tuple]) -> list[tuple[str, int]]:
    return sorted((repr(each.value), each.t_app) for each in tuples)


def _interval(trace: Trace, step: Step) -> tuple[int, int]:
    """Return an interval of time; of numbered tuples only the instant is shown."""
    return step.seen.interval if step.seen and trace.by == "time" else (step.t, step.t)


def _dots(scale: TimeAxis, tuples: Sequence[Tuple], y: int, colour: str = "currentColor") -> list[str]:
    """Return a dot for each instant with tuples that can be told from the others; pointed at, it says which."""
    at: dict[int, list[Tuple]] = defaultdict(list)
    for each in tuples:
        at[round(scale.x(each.t_app))].append(each)
    parts = []
    for x, same in at.items():
        shown = ", ".join(f"{cut(each.value)} at {each.t_app}" for each in same[:MOST])
        parts.append(f'<circle cx="{x}" cy="{y}" r="4.5" fill="{colour}"><title>{escape(shown)}</title></circle>')
        if len(same) > 1:
            parts.append(label(x + 7, y + 4, f"x{len(same)}", "quiet"))
    return parts


def _lane(scale: TimeAxis, trace: Trace, lane: Sequence[Step], colour: str, y: int) -> list[str]:
    parts = [label(LEFT, y + 13, trace.profile.name, "name")]
    for number, (step, output) in enumerate(zip(lane[:MOST], trace.outputs, strict=False), 1):
        top = y + number * ROW
        low, high = (scale.x(t) for t in _interval(trace, step))
        parts.append(bar(low, high, top + 3, ROW - 7, colour))
        ends = f'x1="{scale.x(step.t):.1f}" x2="{scale.x(step.t):.1f}" y1="{top + 1}" y2="{top + ROW - 3}"'
        parts.append(f'<line {ends} stroke="{colour}" stroke-width="2.5"/>')
        parts.append(label(LEFT + WIDE + 16, top + 13, f"t={step.t}: {cut(output)}"))
    if len(lane) > MOST:
        parts.append(label(LEFT, y + (MOST + 1) * ROW + 13, f"... {len(lane) - MOST} reports more", "quiet"))
    return parts
