"""What went out is remembered, so a module that gives another answer each time is still retracted exactly as it was sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import pytest

import streamdsl as sd
from streamdsl.temporal import Cti, Event, problems
from tests.laws.choices import Random, given
from tests.laws.operators import KINDS, UNENDING
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, scenario


class Dice(sd.UDO[int, float]):
    """As many random numbers as it likes."""

    deterministic: ClassVar[bool] = False

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def compute_result(self, payloads: Sequence[int]) -> Iterable[float]:
        return [self.rng.random() for _ in range(self.rng.randint(0, 3))]


class IncrementalDice(sd.IncrementalUDA[int, int, float]):
    """A random number from a state."""

    deterministic: ClassVar[bool] = False

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def create_state(self) -> int:
        return 0

    def add_event_to_state(self, state: int, payload: int) -> int:
        return state + 1

    def remove_event_from_state(self, state: int, payload: int) -> int:
        return state - 1

    def compute_result(self, state: int) -> float:
        return self.rng.random() * state


@pytest.mark.parametrize("kind", KINDS)
@examples(30)
@given(SEEDS)
def test_random_results_make_a_well_formed_output(kind: str, seed: int) -> None:
    rng = Random(seed)
    windowed: Any = rng.choice(KINDS[kind])(sd.source("s0"))
    applied = windowed.apply(Dice(rng), lambda e: e.v)
    aggregated = windowed.aggregate(IncrementalDice(rng), lambda e: e.v)
    for query in (applied, aggregated):
        session = query.open()
        out: list[Event[Any]] = []
        for source, events in scenario(rng, unending=kind in UNENDING).pushes:
            out += session.push(list(events), source=source)
        out += session.close()
        assert not problems(out), "every retraction matches what went out, and no CTI is broken"
        assert out[-1] == Cti(sd.INFINITY)
