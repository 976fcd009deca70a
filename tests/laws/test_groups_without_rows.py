"""A group of which nothing is kept counts as not yet seen, whatever the way to emit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest

import streamdsl as sd
from streamdsl.engine.keys import KeyTable
from streamdsl.temporal import Cti, Event, Insert, Retract
from tests.laws.choices import Random, given
from tests.laws.harness import EMITS, Emit, run_law
from tests.laws.modules import Ends
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, Scenario

ROW = {"k": "a", "v": 1}


def events_of_groups(rng: Random) -> Iterator[Event[Any]]:
    """Yield points of groups that come, go again, and come back, and CTIs."""
    there: dict[int, int] = {}
    for le in range(40):
        for id in [id for id, start in there.items() if start + 3 >= le and rng.random() < 0.3]:
            start = there.pop(id)
            yield Retract(id, start, start + 1, start)
        there[le] = le
        yield Insert(le, le, le + 1, {"k": rng.choice("abcdefgh")})
        if rng.random() < 0.1:
            yield Cti(max(le - 3, 0))


@examples(50)
@given(SEEDS)
def test_a_group_that_has_lost_all_rows_of_a_window_is_known_until_the_window_closes(seed: int) -> None:
    rng = Random(seed)
    with patch.object(KeyTable, "least", 0):
        session = sd.source("s").group_by("k").tumbling_window(rng.choice([5, 100])).aggregate(n=sd.count()).open()
        ids = [event.id for each in events_of_groups(rng) for event in session.push([each]) if isinstance(event, Insert)]
    assert len(ids) == len(set(ids))


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
