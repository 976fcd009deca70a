"""A status as Jupyter shows it: how far each source and the output have come, and what is behind what."""

from __future__ import annotations

from html import escape

import numpy as np

from streamdsl.monitoring.status import OutputStatus, SourceStatus, Status
from streamdsl.pictures.lanes import Lane
from streamdsl.pictures.timeline_picture import Timeline
from streamdsl.temporal.html import table
from streamdsl.temporal.time import CHRONON, MIN_TIME


def reach_timeline(status: Status) -> Timeline | None:
    """Return the picture: a lane for each source and output, with its CTI, and a bar as long as its lag; None before any event.

    Of what has no CTI yet the furthest time is a point.
    """
    if status.furthest == MIN_TIME:
        return None
    lanes = [_lane(status, each.name, each, f"{each.events_in:,} in") for each in status.sources]
    lanes += [_lane(status, name, each, f"{each.events_out:,} out") for name, each in status.named_outputs()]
    return Timeline(lanes, status.unit)


def _lane(status: Status, name: str, each: SourceStatus | OutputStatus, events: str) -> Lane:
    lag = status.lag_text(each)
    rows = [(each.cti, status.furthest, f"{lag} behind")] if lag else []
    if isinstance(each, SourceStatus) and each.cti == MIN_TIME < each.furthest:
        rows = [(each.furthest, each.furthest + CHRONON, "no CTI yet")]
    le, re = (np.array([row[end] for row in rows], dtype=np.int64) for end in (0, 1))
    ctis = np.array([each.cti] if each.cti != MIN_TIME else [], dtype=np.int64)
    role = "output" if isinstance(each, OutputStatus) else "input"
    return Lane(name, le, re, lambda row: rows[row][2], ctis=ctis, note=events, role=role)


def reach_table(status: Status) -> str:
    """Return the same as a table in HTML."""
    rows = [_row(status, each.name, each, f"{each.events_in:,} in", each.furthest) for each in status.sources]
    rows += [_row(status, name, each, f"{each.events_out:,} out", each.cti) for name, each in status.named_outputs()]
    titles = ["", "events", "furthest LE or CTI", "CTI", "behind by"]
    return table(titles, (map(escape, row) for row in rows))


def _row(status: Status, name: str, each: SourceStatus | OutputStatus, events: str, furthest: int) -> list[str]:
    return [name, events, status.time_text(furthest), status.time_text(each.cti), status.lag_text(each)]
