"""Results that are held back for a while: what is out at any time, and what is corrected."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, note

import streamdsl as sd
from streamdsl.errors import QueryError
from streamdsl.plan.properties import fixed_end
from streamdsl.temporal import CHT, INFINITY, MIN_TIME, Cti, Insert
from streamdsl.testing import assert_cht_equal
from tests.laws.harness import Run, pushes_for
from tests.laws.operators import operators
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, scenario

VARIANTS = [variant for variants in operators().values() for variant in variants]
HOLDS = (0, 1, 4, 15, INFINITY)


@examples(100)
@given(SEEDS)
def test_a_row_is_out_once_it_has_waited_or_is_final(seed: int) -> None:
    rng = Random(seed)
    variant, hold = rng.choice(VARIANTS), rng.choice(HOLDS)
    note(f"{variant.name}, hold={hold}")
    at_once, held = Run(variant.query(), "speculative"), Run(variant.query(), sd.Emit(hold))
    now, ends = MIN_TIME, fixed_end(variant.query().plan())
    for source, events in pushes_for(variant.query(), scenario(rng, variant.inputs, variant.unending)):
        for run in (at_once, held):
            run.push(source, events)
        now = max([now, *(event.time if isinstance(event, Cti) else event.le for event in events)])
        cti = at_once.output.cti
        expected = [
            row
            for row in at_once.output.cht()
            if row.le + hold <= now or cti == INFINITY or row.re < cti or (ends and row.re == cti)
        ]
        assert_cht_equal(held.output.cht(), CHT(expected))
        waiting = [row.le for row in at_once.output.cht() if row not in expected]
        assert held.output.cti == min([cti, *waiting])
    for run in (at_once, held):
        run.close()
    assert_cht_equal(held.output.cht(), at_once.output.cht())


def corrections(hold: sd.Emit) -> int:
    session = sd.source("s", unit="s").tumbling_window("10s").aggregate(n=sd.count()).open(emit=hold)
    out: list[Any] = []
    for t in range(200):
        out += session.push([Insert(t, t ^ 7, (t ^ 7) + 1, t)])
    return sum(isinstance(event, sd.Retract) for event in [*out, *session.close()])


def test_the_longer_results_wait_the_fewer_are_corrected() -> None:
    counts = [corrections(sd.Emit(hold)) for hold in ("0s", "5s", "12s", "1m")]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 150
    assert counts[-1] == 0


def test_a_hold_is_a_duration() -> None:
    query = sd.source("s").to_points()
    with pytest.raises(QueryError, match="a duration >= 0, not -1"):
        query.open(emit=sd.Emit(-1))
    with pytest.raises(QueryError, match=r'"watermark"|Emit\(hold'):
        query.open(emit="soon")  # type: ignore[arg-type]
    assert query.open(emit=sd.Emit("5s")).push([sd.point("a", 7_000_000, 1)]) == []
