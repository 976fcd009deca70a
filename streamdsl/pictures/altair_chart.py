"""Timelines as charts of Altair, which zoom: lifetimes as bars and points, or a field's values as steps. It imports Altair."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import altair as alt
import numpy as np

from streamdsl.pictures.axis import TimeAxis
from streamdsl.pictures.bins import live, packed, said
from streamdsl.pictures.chart_steps import Levels, steps_of
from streamdsl.pictures.lanes import Lane
from streamdsl.pictures.svg import COLOURS
from streamdsl.temporal.time import CHRONON, INFINITY, PER_SECOND, format_time, is_calendar

if TYPE_CHECKING:
    from streamdsl.pictures.timeline_picture import Timeline

WIDTH: Final = 760
LINE: Final = 20
"""The height of a line of bars."""
BAR: Final = 14
STEPS: Final = 180
"""The height of a picture of steps."""
DENSITY: Final = 70
MOST_ROWS: Final = 2_000
"""The rows of a lane that are drawn one by one, if they do not need more than `MOST_LINES` lines."""
MOST_LINES: Final = 60
SAMPLE: Final = 40
"""The rows that are drawn of more than these."""
BINS: Final = 400
MEMBERS: Final = 8
"""The members of a window that are told when it is pointed at."""
CHARACTER: Final = 6.5
"""The width of a character of a label, before one zooms."""
QUIET: Final = "#7f8791"
"""A colour of lines that is seen on light pages and on dark ones."""


def _seen(on_light: str, on_dark: str) -> alt.ExprRef:
    """Return a colour by the background that a theme of Altair gives."""
    return alt.ExprRef(f"luminance(background || 'white') > 0.4 ? '{on_light}' : '{on_dark}'")


_TEXT: Final = _seen("#1f2328", "#e6edf3")
_COLOURS: Final = {"input": _seen(COLOURS[0], COLOURS[5]), "output": COLOURS[3], "windows": COLOURS[4]}
_DATES: Final = {
    "year": "%Y",
    "quarter": "%b %Y",
    "month": "%b %Y",
    "week": "%b %d",
    "date": "%b %d",
    "hours": "%H:%M",
    "minutes": "%H:%M",
}
"""How times are written below the axis, by what is new at them; seconds and less as Vega writes them."""
_TIP: Final = alt.Tooltip("tip:N", title="row")


def chart(timeline: Timeline, fields: Sequence[str], by: str | None) -> alt.VConcatChart:
    """Return a timeline as a chart, lane below lane on one axis of time; with `fields` the last lane's values are steps."""
    axis = TimeAxis.over(timeline.times, timeline.unit, 0, WIDTH, 24)
    panels = [panel for lane in timeline.lanes[:-1] for panel in _Panel(lane, axis).bars()]
    last = _Panel(timeline.lanes[-1], axis)
    panels += [last.steps(steps_of(last.lane, fields, by, axis, BINS), ", ".join(fields))] if fields else last.bars()
    return _zooming(panels).resolve_scale(x="shared")


def _zooming(panels: Sequence[Any]) -> Any:
    """Return panels one below the other: the wheel over any of them zooms them all."""
    zoom = alt.selection_interval(bind="scales", encodings=["x"], name="zoom")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Automatically deduplicated selection")  # one zoom is what is meant
        return alt.vconcat(*(panel.add_params(zoom) for panel in panels), spacing=8)


@dataclass(frozen=True)
class _Panel:
    """The charts of one lane."""

    lane: Lane
    axis: TimeAxis

    def bars(self) -> list[Any]:
        """Return the rows one by one, or how many live when, above some of them."""
        lines = self._lines(self.lane) if len(self.lane) <= MOST_ROWS else [MOST_LINES]
        if max(lines, default=0) < MOST_LINES:
            return [self._titled(self._rows(self.lane, lines))]
        counts = live(self.axis, self.lane.le, self.lane.re, BINS).tolist()
        sample = self.lane.sample(SAMPLE)
        note = f"{said(len(self.lane), BINS, np.array(counts))}; below, {len(sample)} of them"
        return [self._titled(self._density(counts), note), self._rows(sample, self._lines(sample))]

    def steps(self, steps: Levels, title: str) -> Any:
        """Return the values of fields as steps, or of many rows their mean and range by bin; the title is that of their axis."""
        names = list(steps.series)
        scale = alt.Scale(domain=names, range=[COLOURS[n % len(COLOURS)] for n in range(len(names))])
        legend = alt.Legend(title=steps.title, orient="top") if len(names) > 1 else None
        colour = alt.Color("series:N", scale=scale, legend=legend)
        levels = [
            {**each._asdict(), "series": names[each.series], "le": self._time(each.le), "re": self._time(each.re)}
            for each in steps.levels
        ]
        joins = [{**each._asdict(), "series": names[each.series], "at": self._time(each.at)} for each in steps.rises]
        base = self._base(levels, "le").encode(x2="re:Q", color=colour, tooltip=_TIP)
        layers = [
            base.mark_rule(strokeWidth=2.5).encode(y=_values("value", title)),
            self._base(joins, "at").mark_rule(strokeWidth=1).encode(y=_values("before", title), y2="after:Q", color=colour),
        ]
        if steps.is_binned:
            layers.insert(0, base.mark_rect(opacity=0.25).encode(y=_values("low", title), y2="high:Q"))
        return self._titled(alt.layer(*layers, *self._ctis()).properties(width=WIDTH, height=STEPS), steps.note)

    def _titled(self, panel: Any, note: str = "") -> Any:
        """Return a chart with the lane's title, and below it what is to be known of it."""
        below = "; ".join(filter(None, [note, self.lane.note]))
        if not below and not self.lane.title:
            return panel
        title = {"text": self.lane.title, "subtitle": below} if self.lane.title else {"text": below, "fontWeight": "normal"}
        return panel.properties(title=alt.TitleParams(**title, anchor="start", frame="group"))

    def _lines(self, lane: Lane) -> list[int]:
        """Return the line of each row, in which nothing overlaps it or its name."""
        places = [self.axis.xs(times).tolist() for times in (lane.le, lane.ever)]
        return packed(
            [
                (low - 6, max(high, low + 12 + CHARACTER * len(lane.name(row))) + 6)
                for row, (low, high) in enumerate(zip(*places, strict=True))
            ]
        )

    def _rows(self, lane: Lane, lines: Sequence[int]) -> Any:
        """Return bars, points and edges; what a correction has taken away is dashed."""
        n_lines = max(lines, default=0) + 1
        colour = alt.value(_COLOURS[lane.role])
        base = self._base([self._row(lane, row, line) for row, line in enumerate(lines)], "le")
        base = base.encode(y=alt.Y("line:O", axis=None, scale=alt.Scale(domain=list(range(n_lines)))), tooltip=_TIP)
        layers = [
            base.transform_filter("datum.re > datum.le")
            .mark_bar(height=BAR, cornerRadius=3, fillOpacity=0.3, strokeWidth=1.2)
            .encode(x2="re:Q", fill=colour, stroke=colour),
            base.transform_filter("datum.was > datum.re")
            .mark_bar(height=BAR, cornerRadius=3, fillOpacity=0, strokeDash=[3, 3], strokeWidth=1)
            .encode(x=self._x("re"), x2="was:Q", stroke=colour),
            base.transform_filter("datum.is_point").mark_point(filled=True, size=60, opacity=1).encode(color=colour),
            base.transform_filter("datum.is_edge")
            .mark_point(filled=True, size=90, shape="triangle-right", opacity=1)
            .encode(x=self._x("re"), color=colour),
            base.mark_text(align="left", dx=8, color=_TEXT).encode(text="name:N"),
        ]
        return alt.layer(*layers, *self._ctis()).properties(width=WIDTH, height=LINE * n_lines)

    def _row(self, lane: Lane, row: int, line: int) -> dict[str, Any]:
        le, re = int(lane.le[row]), int(lane.re[row])
        members = [] if lane.members is None else [lane.members[row].name(each) for each in range(len(lane.members[row]))]
        more = [f"{len(members) - MEMBERS} more"] if len(members) > MEMBERS else []
        is_point = re == le + CHRONON
        return {
            "line": line,
            "le": self._time(le),
            "re": self._time(le if is_point else re),
            "was": self._time(int(lane.ever[row])) if lane.ever[row] > re else None,
            "is_point": is_point,
            "is_edge": re == INFINITY,
            "name": lane.name(row),
            "tip": "; ".join([lane.tip(row, self.axis.unit), *members[:MEMBERS], *more]),
        }

    def _density(self, counts: Sequence[int]) -> Any:
        """Return how many rows live in each bin."""
        ends = self.axis.edges(BINS)
        rows = [
            {"le": self._time(low), "re": self._time(high), "rows": count, "tip": f"{count:,} rows"}
            for low, high, count in zip(ends, ends[1:], counts, strict=False)
            if count
        ]
        base = self._base(rows, "le").encode(x2="re:Q", y=alt.Y("rows:Q", title=None), y2=alt.datum(0), tooltip=_TIP)
        drawn = base.mark_rect(opacity=0.5).encode(color=alt.value(_COLOURS[self.lane.role]))
        return alt.layer(drawn, *self._ctis()).properties(width=WIDTH, height=DENSITY)

    def _ctis(self) -> Iterator[Any]:
        """Yield the lines of CTIs; of many those that can be told from one another before one zooms."""
        places = {round(self.axis.x(time)): time for time in self.lane.ctis.tolist()}
        if places:
            rows = [{"at": self._time(time), "tip": f"CTI {format_time(time, self.axis.unit)}"} for time in places.values()]
            yield self._base(rows, "at").mark_rule(strokeDash=[1, 3], strokeWidth=1.4, color=QUIET).encode(tooltip=_TIP)

    def _base(self, rows: Iterable[Mapping[str, Any]], x: str) -> Any:
        return alt.Chart(alt.Data(values=list(rows))).encode(x=self._x(x))

    def _x(self, name: str) -> Any:
        ends = [self._time(self.axis.first), self._time(INFINITY if self.axis.beyond else self.axis.last)]
        if is_calendar(self.axis.unit):
            return alt.X(f"{name}:T", title=None, axis=alt.Axis(format=_DATES), scale=alt.Scale(type="utc", domain=ends))
        whole = alt.Axis(format="d", tickMinStep=1)
        return alt.X(f"{name}:Q", title=None, axis=whole, scale=alt.Scale(domain=ends, nice=False, zero=False))

    def _time(self, time: int) -> float | int:
        """Return a time as charts take it: of a calendar in milliseconds; what has no end reaches a little over all others."""
        shown = self.axis.last + max(self.axis.span // 30, 1) if time == INFINITY else max(time, self.axis.first)
        return shown * 1000 / PER_SECOND[self.axis.unit or "us"] if is_calendar(self.axis.unit) else shown


def _values(name: str, title: str) -> Any:
    return alt.Y(f"{name}:Q", title=title, scale=alt.Scale(zero=False))
