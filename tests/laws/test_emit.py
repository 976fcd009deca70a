"""Results that are held back for a while: what is out at any time, and what is corrected."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import note

import streamdsl as sd
from streamdsl.errors import QueryError
from streamdsl.temporal import CHT, INFINITY, MIN_TIME, Cti, Insert
from streamdsl.testing import assert_cht_equal
from tests.laws.choices import Random, given
from tests.laws.harness import Run, pushes_for
from tests.laws.operators import operators
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, scenario

VARIANTS = [variant for variants in operators().values() for variant in variants]
HOLDS = (0, 1, 4, 15, INFINITY)


@examples(60)
@given(SEEDS)
def test_a_row_is_out_once_it_has_waited_or_is_final(seed: int) -> None:
    rng = Random(seed)
    variant, hold = rng.choice(VARIANTS), rng.choice(HOLDS)
    note(f"{variant.name}, hold={hold}")
    at_once, held = Run(variant.query(), "speculative"), Run(variant.query(), sd.emit.Emit(hold))
    now = MIN_TIME
    for source, events in pushes_for(variant.query(), scenario(rng, variant.inputs, variant.unending)):
        for run in (at_once, held):
            run.push(source, events)
        now = max([now, *(event.time if isinstance(event, Cti) else event.le for event in events)])
        cti = at_once.output.cti
        expected = [row for row in at_once.output.cht() if row.le + hold <= now or row.re <= held.final]
        assert_cht_equal(held.output.cht(), CHT(expected))
        waiting = [row.le for row in at_once.output.cht() if row not in expected]
        assert held.output.cti == min([cti, *waiting])
    for run in (at_once, held):
        run.close()
    assert_cht_equal(held.output.cht(), at_once.output.cht())


@examples(60)
@given(SEEDS)
def test_smooth_results_are_final_ones_that_leave_a_few_at_a_time(seed: int) -> None:
    rng = Random(seed)
    variant, every, delay = rng.choice(VARIANTS), rng.choice((1, 2, 5)), rng.choice((0, 3, 20, INFINITY))
    note(f"{variant.name}, every={every}, max_delay={delay}")
    smooth = Run(variant.query(), sd.emit.Emit(every=every, max_delay=delay))
    at_once = Run(variant.query(), "speculative")
    for source, events in pushes_for(variant.query(), scenario(rng, variant.inputs, variant.unending)):
        before = len(smooth.output.cht())
        for run in (at_once, smooth):
            run.push(source, events)
        cti, out = at_once.output.cti, list(smooth.output.cht())

        def is_final(re: int, final: int = smooth.final) -> bool:
            return re <= final

        rows = list(at_once.output.cht())
        overdue = [row for row in rows if is_final(row.re) and is_final(min(row.re + delay, INFINITY))]
        missing = Counter(map(repr, rows)) - Counter(map(repr, out))
        assert not Counter(map(repr, out)) - Counter(repr(row) for row in rows if is_final(row.re))
        assert not Counter(map(repr, overdue)) - Counter(map(repr, out))
        assert len(out) - before <= len(events) // every + 1 + len(overdue)
        assert smooth.output.cti == min([cti, *(row.le for row in rows if missing[repr(row)])])
    for run in (at_once, smooth):
        run.close()
    assert_cht_equal(smooth.output.cht(), at_once.output.cht())


def test_with_every_second_row_a_result_leaves() -> None:
    query = sd.source("s").group_by(lambda e: e).tumbling_window(10).aggregate(n=sd.count())
    session = query.open(emit=sd.emit.Emit(every=2, max_delay=100))
    session.push([sd.point(n, 3, n) for n in range(5)] + [Cti(10)])
    left = [sum(isinstance(each, Insert) for each in session.push([sd.point((n,), 12, 0)])) for n in range(12)]
    assert left == [1, 0] * 5 + [0, 0]
    assert session.why_no_output() == (
        "sd.emit.Emit(every=...) holds back 1 row, of which the first ends at 20; source 's' has only reached the CTI 10"
    )


def test_how_results_leave_smoothly_is_checked() -> None:
    query = sd.source("s").to_points()
    with pytest.raises(QueryError, match="a whole number of input rows >= 1, not 0"):
        query.open(emit=sd.emit.Emit(every=0))
    with pytest.raises(QueryError, match="so hold does not apply"):
        query.open(emit=sd.emit.Emit("5s", every=2))
    with pytest.raises(QueryError, match="max_delay applies only with every"):
        query.open(emit=sd.emit.Emit(max_delay="5s"))


def corrections(hold: sd.emit.Emit) -> int:
    session = sd.source("s", unit="s").tumbling_window("10s").aggregate(n=sd.count()).open(emit=hold)
    out: list[Any] = []
    for t in range(200):
        out += session.push([Insert(t, t ^ 7, (t ^ 7) + 1, t)])
    return sum(isinstance(event, sd.Retract) for event in [*out, *session.close()])


def test_the_longer_results_wait_the_fewer_are_corrected() -> None:
    counts = [corrections(sd.emit.Emit(hold)) for hold in ("0s", "5s", "12s", "1m")]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 150
    assert counts[-1] == 0


def test_a_hold_is_a_duration() -> None:
    query = sd.source("s").to_points()
    with pytest.raises(QueryError, match="a duration >= 0, not -1"):
        query.open(emit=sd.emit.Emit(-1))
    with pytest.raises(QueryError, match=r'"watermark"|Emit\(hold'):
        query.open(emit="soon")  # type: ignore[arg-type]
    assert query.open(emit=sd.emit.Emit("5s")).push([sd.point("a", 7_000_000, 1)]) == []
