"""Answers of a trace as timelines: what an answer was made of, and what an event has changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from streamdsl.pictures.lanes import Lane, rows_lane, windows_lane
from streamdsl.pictures.timeline_picture import Timeline
from streamdsl.temporal.cht import CHTRow, Row

if TYPE_CHECKING:
    from streamdsl.debugger.answers import Effects, Why


def timeline_of_why(why: Why) -> Timeline:
    """Return the input rows of an answer by source, the windows on the way, and the answer; what was taken back is struck."""
    causes = {cause.number: cause for cause in (*why.inputs, *why.changed_by)}.values()
    sources = dict.fromkeys(cause.source for cause in causes)
    lanes = [rows_lane(name, [cause.row for cause in causes if cause.source == name]) for name in sources]
    if why.windows:
        lives = dict.fromkeys((window.le, window.re) for window in why.windows)
        windows = windows_lane("windows", [(CHTRow(*life, "window"), ()) for life in lives])
        lanes.append(replace(windows, members=None))
    there = [] if why.tree is None else [why.row]
    return Timeline([*lanes, _corrected("answer", there, [] if why.gone is None else [why.gone], "output")], why.unit)


def timeline_of_effects(effects: Effects) -> Timeline:
    """Return, operator by operator, the rows that are there because of an event, and struck those that it took away."""
    return Timeline(_steps(effects), effects.unit)


def _steps(effects: Effects) -> Iterator[Lane]:
    for number, step in enumerate(effects.operators):
        role = "output" if number == len(effects.operators) - 1 else "input"
        yield _corrected(step.operator, step.made, step.prevented, role)


def _corrected(title: str, there: Iterable[Row], gone: Iterable[Row], role: str) -> Lane:
    """Return a lane of rows that are there, and of others, struck through, that are not."""
    kept, lost = list(there), list(gone)
    lane = rows_lane(title, [*kept, *lost], role)
    re = np.where(np.arange(len(lane)) < len(kept), lane.re, lane.le)
    return replace(lane, re=re, was=lane.re)
