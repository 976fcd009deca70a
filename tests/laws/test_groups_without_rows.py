"""A group of which nothing is kept counts as not yet seen, whatever the way to emit."""

from __future__ import annotations

from typing import Any

import pytest

import streamdsl as sd
from streamdsl.temporal import Cti, Event, Insert, Retract
from tests.laws.harness import EMITS, Emit, run_law
from tests.laws.modules import Ends
from tests.laws.scenarios import Scenario

ROW = {"k": "a", "v": 1}


@pytest.mark.parametrize("emit", EMITS)
def test_the_last_event_of_a_group_is_retracted_after_a_cti(emit: Emit) -> None:
    query = sd.source("s0").group_by("k").snapshot_window(clip=sd.Clip.RIGHT).aggregate(Ends(), lambda e: e.v)
    events: list[Event[Any]] = [
        Insert("done", 13, 25, ROW),
        Insert("gone", 31, sd.INFINITY, ROW),
        Cti(31),
        Retract("gone", 31, sd.INFINITY, 31),
    ]
    run_law(query, Scenario(tuple(("s0", (event,)) for event in events)), emit)
