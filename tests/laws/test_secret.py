"""SECRET: the running simulation is the printed model, its Scope and Content are those of the temporal algebra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example

import streamdsl as sd
from streamdsl import secret
from streamdsl.papers.secret import content
from streamdsl.secret import HEARTBEAT, At, FromFirst, Grid, Profile, Report, Scope, Simulation, Tick, Tuple
from tests.laws import secret_definitions as printed
from tests.laws.choices import Random, given
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS

PAPER = [secret.STREAM, secret.CORAL8, secret.STREAMBASE, secret.ORACLE_CEP]


@contextmanager
def forgetting(most: int) -> Iterator[None]:
    """Let at most so many forgotten tuples stay, so that short streams are compacted too."""
    before, content.COMPACT = content.COMPACT, most
    try:
        yield
    finally:
        content.COMPACT = before


def stream(rng: Random, late: bool = True) -> list[Tuple]:
    """Return tuples with gaps and simultaneity; with `late` some out of order, heartbeats, and batches of several instants."""
    time, arrival, bid, found = rng.randint(-5, 9), rng.randint(-3, 3), rng.randint(0, 2), list[Tuple]()
    for n in range(rng.randint(0, 9)):
        step = rng.choice([0, 0, 0, 1, 1, 2, 3, 11])
        time, arrival = time + step, arrival + rng.choice([1, 1, 2, 7])
        bid += 1 if step and not (late and rng.random() < 0.2) else rng.randint(0, 1)
        odd = late and rng.random() < 0.15
        value = HEARTBEAT if late and rng.random() < 0.1 else n
        found.append(Tuple(value, time - (rng.randint(1, 6) if odd else 0), arrival, bid))
    return found


def profile(rng: Random) -> Profile:
    if rng.random() < 0.3:
        return rng.choice(PAPER)
    change, close, full = (rng.random() < 0.5 for _ in range(3))
    report = Report(change, close, full, rng.choice([None, 1, 2, 3]))
    t0: Any = rng.choice([Grid(rng.randint(-3, 2)), FromFirst(rng.randint(-2, 2), rng.random() < 0.5), At(rng.randint(-3, 12))])
    return Profile("any", t0, report, rng.choice(list(Tick)), rng.choice(list(Scope)))


@example(54)  # what is compared has been forgotten in few
@example(547)
@examples(360)
@given(SEEDS)
def test_the_running_simulation_reports_what_the_printed_model_does(seed: int) -> None:
    rng = Random(seed)
    tuples, given, size, slide = stream(rng), profile(rng), rng.randint(1, 6), rng.randint(1, 7)
    with forgetting(rng.choice([0, 2])):
        found = secret.simulate(given, size, slide, tuples).reports
    assert found == printed.simulate(given, size, slide, tuples)


@examples(180)
@given(SEEDS)
def test_windows_of_tuples_are_those_of_their_definition(seed: int) -> None:
    rng = Random(seed)
    tuples, given, size, slide = stream(rng), replace(profile(rng), scope=Scope.ACTIVE), rng.randint(1, 5), rng.randint(1, 5)
    with forgetting(rng.choice([0, 2])):
        found = secret.simulate(given, size, slide, tuples, by="tuples").reports
    assert found == printed.simulate(given, size, slide, tuples, by="tuples")


@examples(120)
@given(SEEDS)
def test_a_join_sees_what_its_definition_says(seed: int) -> None:
    rng = Random(seed)
    engine, closing = replace(profile(rng), scope=Scope.ACTIVE), rng.choice(["any", "all"])
    tuples = [each for each in stream(rng) if each.value is not HEARTBEAT]
    split = [rng.randint(0, 1) for _ in tuples]
    parts = [[each for each, side in zip(tuples, split, strict=True) if side == n] for n in (0, 1)]
    sides = tuple((part, rng.randint(1, 5), rng.randint(1, 5)) for part in parts)
    found = secret.simulate_join(engine, secret.Side(*sides[0]), secret.Side(*sides[1]), closing=closing)
    assert [each[:4] for each in found] == printed.join(engine, sides, closing == "all")
    assert all(each.pairs == [(a, b) for a in each.left for b in each.right] for each in found)


@examples(120)
@given(SEEDS)
def test_ticks_are_those_of_the_mapping_functions(seed: int) -> None:
    rng = Random(seed)
    tuples, t0, kind = stream(rng), rng.randint(-5, 9), rng.choice(list(Tick))
    assert secret.ticks(tuples, t0, kind) == [(each.t_sys, printed.tick(kind, each.t_sys, t0, tuples)) for each in tuples]


@examples(120)
@given(SEEDS)
def test_what_is_reported_is_among_the_steps(seed: int) -> None:
    rng = Random(seed)
    trace = secret.simulate(profile(rng), rng.randint(1, 6), rng.randint(1, 6), stream(rng))
    steps = [step for step in trace.steps() if step.reported]
    assert [(step.t_sys, step.t, [each.value for each in step.seen.content]) for step in steps if step.seen] == trace.reports


@examples(50)
@given(SEEDS)
def test_scope_and_content_are_lifetimes_of_the_algebra(seed: int) -> None:
    rng = Random(seed)
    tuples, t0, size, slide = stream(rng, late=False), rng.randint(-6, 6), rng.randint(1, 6), rng.randint(1, 7)
    rows = [(*life, each.value) for each in tuples if (life := secret.lifetime(each.t_app, t0, size, slide))]
    snapshots = sd.from_rows(rows).snapshot_window().aggregate(all=sd.collect(lambda e: e)).run().cht()
    for t in range(t0 - 1, t0 + 30):
        interval = printed.scopes(t, t0, size, slide, Scope.ACTIVE).get(0)
        inside = [each.value for each in printed.content(interval, 10**6, tuples)]
        assert [row.payload.all for row in snapshots if row.le <= t < row.re] == ([inside] if inside else [])


@examples(90)
@given(SEEDS)
def test_an_engine_that_reports_on_close_has_hopping_windows(seed: int) -> None:
    """Where each instant's tuples are there when its Report is invoked: time-driven, or no simultaneous tuples."""
    rng = Random(seed)
    tuples, size, slide = stream(rng, late=False), rng.randint(1, 6), rng.randint(1, 6)
    given = Profile("on close", Grid(-1), Report(window_close=True, non_empty=True), rng.choice(list(Tick)))
    given = replace(given, tick=Tick.TIME) if len({each.t_app for each in tuples}) < len(tuples) else given
    if not tuples:
        return
    bounded = secret.until(tuples, tuples[-1].t_app + size + slide + 2)
    points = sd.from_rows([(each.t_app, each.t_app + 1, each.value) for each in tuples])
    windows = points.hopping_window(size, slide).aggregate(lambda w: w.collect(lambda e: e)).run().cht()
    assert [(each.t + 1, each.values) for each in secret.simulate(given, size, slide, bounded).reports] == [
        (row.re, row.payload) for row in windows
    ]


def test_simultaneous_tuples_are_reported_more_than_once_where_the_algebra_has_one_snapshot() -> None:
    simultaneous = [("a", 5), ("b", 5), ("c", 6)]
    assert secret.simulate(secret.CORAL8, 3, 1, simultaneous).outputs == [["a"], ["a", "b"]]
    assert secret.simulate(replace(secret.CORAL8, tick=Tick.TIME), 3, 1, simultaneous).outputs == [["a", "b"]]


@examples(90)
@given(SEEDS)
def test_the_three_scopes_hold_the_same_when_a_window_closes(seed: int) -> None:
    rng = Random(seed)
    given = replace(profile(rng), report=Report(window_close=True, non_empty=rng.random() < 0.5))
    tuples, size, slide = stream(rng), rng.randint(1, 6), rng.randint(1, 7)
    active, last, every = (secret.simulate(replace(given, scope=kind), size, slide, tuples).reports for kind in Scope)
    assert active == last == every


@examples(90)
@given(SEEDS)
def test_backward_slides_end_windows_at_multiples_from_t0(seed: int) -> None:
    rng = Random(seed)
    given = replace(profile(rng), report=Report(window_close=True), scope=Scope.ACTIVE)
    tuples, size, slide = stream(rng, late=False), rng.randint(1, 6), rng.randint(1, 7)
    if tuples:
        start = given.start(tuples[0].t_app, size, slide)
        reports = secret.simulate(given.backward(), size, slide, tuples).reports
        assert all((each.t - start) % slide == 0 and each.t > start for each in reports)


ENGINES = [*PAPER, *(replace(secret.CORAL8, scope=kind) for kind in Scope)]


@pytest.mark.parametrize("by", ["time", "tuples"])
@pytest.mark.parametrize(("size", "slide"), [(5, 1), (5, 5), (6, 4), (3, 7)])
def test_memory_is_bounded_by_the_window_whatever_comes(size: int, slide: int, by: Any) -> None:
    for engine in ENGINES:
        if by == "time" or engine.scope is Scope.ACTIVE:
            running, most = Simulation(engine, size, slide, by=by), 0
            for n in range(1, 400):
                running.push((n, n, n, n))
                most = max(most, running.kept)
            assert most <= size + 2 * slide + 2, engine


@pytest.mark.parametrize("tick", Tick)
def test_late_tuples_are_not_kept_and_of_simultaneous_ones_a_window_of_tuples_keeps_the_last(tick: Tick) -> None:
    for size, slide in [(4, 1), (4, 4), (3, 5)]:
        late = Simulation(replace(secret.CORAL8, tick=tick), size, slide)
        simultaneous = Simulation(replace(secret.CORAL8, tick=tick), size, slide, by="tuples")
        for n in range(1, 1000):
            late.push((n, 100 if n < 9 else 1, n, n))
            simultaneous.push((n, 5, n, n))
        assert late.kept <= 9
        assert simultaneous.kept <= size + slide
