"""The law of checkpoints: a session that is stopped anywhere and restored sends the same events as one that is not."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, note

import streamdsl as sd
from streamdsl.engine.keys import KeyTable
from streamdsl.engine.session import Session, restored
from streamdsl.temporal import Event
from tests.laws.compositions import composition
from tests.laws.harness import EMITS, Emit, pushes_for
from tests.laws.operators import operators
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, Scenario, scenario

OPERATORS = operators()
GENERAL = {"window": "general"}
HOLD = sd.Emit(hold=6)


class Pair:
    """A session that is never stopped, and one that is stopped and restored now and then: both send the same."""

    def __init__(self, query: sd.Stream[Any], emit: Emit, options: Mapping[str, str] | None) -> None:
        self.query = query
        self.whole = query.open(emit=emit, engine_options=options)
        self.stopped = query.open(emit=emit, engine_options=options)

    def stop(self) -> None:
        """Save one session and let a new one go on in its place."""
        saved = self.stopped.snapshot()
        self.stopped = restored(self.query.plan(), None, saved)
        assert self.stopped.snapshot() == saved, "a restored session does not save what it was made of"
        assert self.stopped.stats() == self.whole.stats(), "a restored session has other figures"

    def push(self, source: str, events: tuple[Event[Any], ...]) -> None:
        assert_same(self.whole.push(list(events), source=source), self.stopped.push(list(events), source=source))

    def close(self) -> None:
        assert_same(self.whole.close(), self.stopped.close())


def assert_same(expected: list[Event[Any]], actual: list[Event[Any]]) -> None:
    """Raise unless two outputs are the same, event by event: ids, order, and the types of payloads."""
    assert repr(actual) == repr(expected)


def check(query: sd.Stream[Any], scenario: Scenario, emit: Emit, options: Mapping[str, str] | None, rng: Random) -> None:
    pair = Pair(query, emit, options)
    pushes = pushes_for(query, scenario)
    stops = {rng.randint(0, len(pushes)) for _ in range(rng.randint(1, 3))}
    for place, (source, events) in enumerate(pushes):
        if place in stops:
            pair.stop()
        pair.push(source, events)
    if len(pushes) in stops:
        pair.stop()
    pair.close()


@pytest.mark.parametrize("name", OPERATORS)
def test_a_restored_session_sends_the_same_events(name: str) -> None:
    @examples(max(40, 6 * len(OPERATORS[name])))
    @given(SEEDS)
    def law(seed: int) -> None:
        rng = Random(seed)
        variant, emit = rng.choice(OPERATORS[name]), rng.choice([*EMITS, HOLD])
        note(variant.name)
        options = rng.choice([None, GENERAL])
        with patch.object(KeyTable, "least", rng.choice([0, KeyTable.least])):
            check(variant.query(), scenario(rng, variant.inputs, variant.unending), emit, options, rng)

    law()


@examples(150)
@given(SEEDS)
def test_a_restored_composition_sends_the_same_events(seed: int) -> None:
    rng = Random(seed)
    made, query = composition(rng)
    note(made)
    check(query, scenario(rng, 2, unending=False, max_size=6), rng.choice([*EMITS, HOLD]), None, rng)
