"""Traces as a picture: tuples on the time line, and under it what each profile looks at and reports; SVG written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, Final

from streamdsl.secret.simulation import Step
from streamdsl.secret.trace import Trace
from streamdsl.secret.tuples import HEARTBEAT, Tuple

LEFT, ROW, TOP, WIDE, TEXT = 20, 18, 46, 700, 230
MOST: Final = 60
"""Reports of a profile that are drawn."""
COLOURS: Final = ("#3b6fb6", "#e08a2e", "#3f9b6c", "#c9534f", "#8a6bb8", "#b8862b")
STYLE: Final = (
    "text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;font-size:12px;fill:#24292f}"
    ".paper{fill:#fff}.quiet{fill:#57606a}.grid{stroke:#57606a;stroke-opacity:.22}.name{font-weight:600}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.paper{fill:#0d1117}.quiet{fill:#9da7b3}.grid{stroke:#9da7b3}}"
)


def draw(traces: Sequence[Trace]) -> str:
    """Return the picture of one input under several profiles: a bar is the interval (o, t] of a report, its output beside it.

    >>> from streamdsl.secret import CORAL8, simulate
    >>> draw([simulate(CORAL8, 2, 1, [("a", 2), ("b", 3)])]).count("<rect")
    2
    """
    lanes = [trace.reported() for trace in traces]
    shown = [(trace, step) for trace, lane in zip(traces, lanes, strict=True) for step in lane[:MOST]]
    tuples = [each for each in (traces[0].tuples if traces else []) if each.value is not HEARTBEAT]
    scale = _Scale([*(each.t_app for each in tuples), *(t for each in shown for t in _interval(*each))])
    parts, y = [*_times(scale, tuples)], TOP + 10
    for trace, lane, colour in zip(traces, lanes, COLOURS * len(traces), strict=False):
        parts.extend(_lane(scale, trace, lane, colour, y))
        y += ROW * (min(len(lane), MOST) + 1 + (len(lane) > MOST)) + 8
    lines = (f'<line class="grid" x1="{scale.x(t):.1f}" x2="{scale.x(t):.1f}" y1="{TOP}" y2="{y}"/>' for t in scale.marks)
    return _svg([*lines, *parts], y + 6)


class _Scale:
    """Where a time lies."""

    def __init__(self, times: Sequence[int]) -> None:
        self.first, self.last = min(times, default=0) - 1, max(times, default=0) + 1
        step = max(1, -(-(self.last - self.first) // 24))
        self.marks = range(self.first, self.last + 1, step)

    def x(self, time: float) -> float:
        return LEFT + (time - self.first) / (self.last - self.first) * WIDE


def _interval(trace: Trace, step: Step) -> tuple[int, int]:
    """Return an interval of time; of numbered tuples only the instant is shown."""
    return step.seen.interval if step.seen and trace.by == "time" else (step.t, step.t)


def _times(scale: _Scale, tuples: Sequence[Tuple]) -> list[str]:
    parts = [_text(scale.x(t), 14, str(t), "quiet", "middle") for t in scale.marks]
    at: dict[int, int] = {}
    for each in tuples:
        at[each.t_app] = at.get(each.t_app, 0) + 1
    for t, count in at.items():
        parts.append(f'<circle cx="{scale.x(t):.1f}" cy="30" r="4.5" fill="#57606a"/>')
        if count > 1:
            parts.append(_text(scale.x(t) + 7, 34, f"x{count}", "quiet"))
    return parts


def _lane(scale: _Scale, trace: Trace, lane: Sequence[Step], colour: str, y: int) -> list[str]:
    parts = [_text(LEFT, y + 13, trace.profile.name, "name")]
    for number, (step, output) in enumerate(zip(lane[:MOST], trace.outputs, strict=False), 1):
        top = y + number * ROW
        low, high = (scale.x(t) for t in _interval(trace, step))
        place = f'x="{low:.1f}" y="{top + 3}" width="{max(3.0, high - low):.1f}" height="{ROW - 7}"'
        parts.append(f'<rect {place} rx="3" fill="{colour}" fill-opacity=".35"/>')
        ends = f'x1="{scale.x(step.t):.1f}" x2="{scale.x(step.t):.1f}" y1="{top + 1}" y2="{top + ROW - 3}"'
        parts.append(f'<line {ends} stroke="{colour}" stroke-width="2.5"/>')
        parts.append(_text(LEFT + WIDE + 16, top + 13, f"t={step.t}: {_short(output)}"))
    if len(lane) > MOST:
        parts.append(_text(LEFT, y + (MOST + 1) * ROW + 13, f"... {len(lane) - MOST} reports more", "quiet"))
    return parts


def _short(output: Any) -> str:
    text = repr(output)
    return text if len(text) <= 28 else f"{text[:25]}..."


def _text(x: float, y: float, text: str, css: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{css}">{escape(text)}</text>'


def _svg(parts: Sequence[str], height: int) -> str:
    wide = LEFT + WIDE + TEXT
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {height}" width="{wide}" height="{height}" role="img">'
    return f'{head}<style>{STYLE}</style><rect class="paper" width="{wide}" height="{height}"/>{"".join(parts)}</svg>'
