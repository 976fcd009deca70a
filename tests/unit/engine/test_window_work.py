"""What one change makes a window operator do: windows that a CTI has closed are not computed again; stats() counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.temporal import Cti, Insert, Retract


class Covered(sd.TimeSensitiveUDA[Any, int]):
    """The sum of the lifetimes of the members, as the module sees them."""

    def compute_result(self, events: Sequence[sd.IntervalEvent[Any]], window: sd.WindowDescriptor) -> int:
        return sum(event.end_time - event.start_time for event in events)


ROW = {"v": 1}
EVENTS = [Insert("early", 0, 8, ROW), Insert("long", 20, 90, ROW), *(Insert(n, n, n + 1, ROW) for n in range(10, 80, 5))]


@pytest.mark.parametrize(
    ("clip", "open_windows", "computed"),
    [(sd.Clip.NONE, 8, 7), (sd.Clip.LEFT, 8, 7), (sd.Clip.RIGHT, 2, 1), (sd.Clip.FULL, 2, 1)],
)
def test_a_late_change_touches_at_most_the_windows_that_are_not_closed(clip: sd.Clip, open_windows: int, computed: int) -> None:
    """An event that may still change keeps a window open where the module sees its end; clipped to the right, only the last."""
    session = sd.source("s").tumbling_window(10, clip=clip).aggregate(Covered()).open()
    session.push([*EVENTS, Insert("last", 95, 96, ROW), Cti(80)])
    before = session.stats()["window_aggregate_1"]
    assert before["windows"] == open_windows
    session.push([Retract("long", 20, 90, 88)])
    after = session.stats()["window_aggregate_1"]
    assert after["udm_calls"] - before["udm_calls"] == computed
