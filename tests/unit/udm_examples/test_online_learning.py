from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Iterable
from random import Random
from statistics import fmean, pstdev
from typing import Any

import pytest
from hypothesis import given

import streamdsl as sd
from streamdsl.errors import QueryError
from streamdsl.testing import run_udm
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS
from tests.unit.udm_examples.law import Row, assert_law, random_rows
from udm_examples.online_learning import OnlineAnomalies, OnlineRegression, Prediction, Sample, Scored

pytest.importorskip("river", reason="river is not installed: pip install 'streamdsl[learning]'")


def sample(rng: Random) -> Sample:
    return Sample((float(rng.randint(0, 5)), rng.random()), float(rng.randint(-3, 3)))


def point(rng: Random) -> tuple[float, ...]:
    return (rng.choice([rng.random(), 0.5]), rng.random())


def predictions(rows: Iterable[Row], window: tuple[int, int], rate: float) -> list[Row]:
    """The definition: least squares by gradient descent, step by step; x standardized by mean and deviation so far."""
    members = sorted(
        (row for row in rows if row[0] < window[1] and window[0] < row[1]), key=lambda row: (row[0], row[2].x, row[2].y)
    )
    weights, bias = [0.0, 0.0], 0.0
    seen: list[tuple[float, ...]] = []
    answers: list[Row] = []

    def scaled(x: tuple[float, ...]) -> list[float]:
        columns = list(zip(*seen, strict=True)) or [(0.0,), (0.0,)]
        spread = [pstdev(column) for column in columns]
        return [(v - fmean(c)) / s if s > 1e-12 else 0.0 for v, c, s in zip(x, columns, spread, strict=True)]

    def guess(z: list[float]) -> float:
        return bias + sum(w * v for w, v in zip(weights, z, strict=True))

    for time in sorted({row[0] for row in members}):
        together = [row[2] for row in members if row[0] == time]
        if time >= window[0]:
            answers += [(time, time + 1, Prediction(s.y, guess(scaled(s.x)))) for s in together]
        for s in together:
            seen.append(s.x)
            z = scaled(s.x)
            step = 2 * rate * (guess(z) - s.y)
            weights = [w - step * v for w, v in zip(weights, z, strict=True)]
            bias -= step
    return answers


@examples(60)
@given(SEEDS)
def test_predictions_are_those_of_gradient_descent_written_out(seed: int) -> None:
    rng = Random(seed)
    rows, window = random_rows(rng, sample, most=20), rng.choice([(-9, 60), (5, 20)])
    found = run_udm(OnlineRegression(rate=0.05), rows, window, output=sd.Output.UNCHANGED, seed=seed)
    expected = predictions(rows, window, 0.05)
    assert [(row.le, row.re, row.payload.y) for row in found] == [(le, re, p.y) for le, re, p in expected]
    assert [row.payload.expected for row in found] == pytest.approx([p.expected for _, _, p in expected], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_nothing_that_comes_later_and_no_order_of_the_bag_changes_an_answer(seed: int) -> None:
    rng = Random(seed)
    modules: list[tuple[Any, Any]] = [(OnlineRegression(), sample), (OnlineAnomalies([(0, 1), (0, 1)], memory=8), point)]
    for module, payload in modules:
        rows = [(le, le + 1, payload(rng)) for le in range(60)] + [(30, 31, payload(rng)), (45, 46, payload(rng))]
        whole = run_udm(module, rows, (0, 100), output=sd.Output.UNCHANGED, seed=1)
        assert run_udm(module, rows, (0, 100), output=sd.Output.UNCHANGED, seed=2) == whole
        part = run_udm(module, [row for row in rows if row[0] < 40], (0, 100), output=sd.Output.UNCHANGED)
        assert part == [row for row in whole if row.le < 40]


def test_equal_seeds_give_equal_scores_and_the_first_block_is_not_judged() -> None:
    rng = Random(1)
    rows = [(t, t + 1, point(rng)) for t in range(100)]

    def scores(seed: int) -> list[float]:
        found = run_udm(OnlineAnomalies([(0, 1), (0, 1)], memory=20, seed=seed), rows, (0, 100), output=sd.Output.UNCHANGED)
        return [row.payload.score for row in found]

    assert scores(1) == scores(1) != scores(2)
    assert set(scores(1)[:20]) == {0.0}
    assert all(0 < score <= 1 for score in scores(1)[20:])


@examples(40)
@given(SEEDS)
def test_in_a_query_the_order_of_arrival_does_not_matter(seed: int) -> None:
    rng = Random(seed)
    policy: dict[str, Any] = {
        "clip": rng.choice(list(sd.Clip)),
        "output": rng.choice([sd.Output.TIME_BOUND, sd.Output.CLIP, sd.Output.ALIGN]),
    }
    anomalies = OnlineAnomalies([(0, 1), (0, 1)], trees=3, height=3, memory=3)
    choices: list[tuple[Any, Any]] = [(OnlineRegression(0.05), sample), (anomalies, point)]
    module, payload = rng.choice(choices)
    hop = rng.choice([12, 5])
    assert_law(lambda s: s.hopping_window(12, hop, **policy).apply(module), random_rows(rng, payload), rng)


def test_a_machine_that_runs_hot_is_noticed_also_when_its_reading_comes_late() -> None:
    rng = Random(3)
    readings = [
        (t, {"load": load, "heat": 20 + 0.6 * load + rng.gauss(0, 1)}) for t in range(240) if (load := rng.uniform(20, 80))
    ]
    events = [sd.point(t, t, reading) for t, reading in readings]
    late = sd.point("late", 200, {"load": 22.0, "heat": 95.0})
    windows = sd.source("machine").tumbling_window(240, output=sd.Output.TIME_BOUND)

    strange = windows.apply(OnlineAnomalies([(0, 100), (0, 120)], memory=50), lambda e: (e.load, e.heat))
    session = strange.where(lambda e: e.score > 0.95).open()
    assert session.push(events) == []
    [alarm] = session.push([late])
    assert isinstance(alarm, sd.Insert)
    assert (alarm.le, alarm.payload.x) == (200, (22.0, 95.0))

    expected = windows.apply(OnlineRegression(rate=0.05), lambda e: Sample((e.load,), e.heat))
    off = expected.where(lambda e: abs(e.y - e.expected) > 20).to_points()
    assert [row.le for row in off.run({"machine": [*events, late]}).cht() if row.le > 100] == [200]


@pytest.mark.parametrize("lost", [Sample((math.nan, 0.5), 1.0), Sample((1.0, math.inf), 1.0), Sample((1.0, 0.5), math.nan)])
def test_a_sample_that_is_no_number_teaches_nothing(lost: Sample) -> None:
    rng = Random(5)
    rows = [(t, t + 1, sample(rng)) for t in range(20)]
    found = run_udm(OnlineRegression(), [*rows, (9, 10, lost)], (0, 100), output=sd.Output.UNCHANGED)
    without = run_udm(OnlineRegression(), rows, (0, 100), output=sd.Output.UNCHANGED)
    assert [row for row in found if row.le != 9] == [row for row in without if row.le != 9]


def test_settings_that_mean_nothing_are_refused() -> None:
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: OnlineRegression(rate=0), "rate is a positive, finite number, not 0"),
        (lambda: OnlineAnomalies([]), "no ranges"),
        (lambda: OnlineAnomalies([(1, 0)]), "(?s)no ranges.*Hint: "),
        (lambda: OnlineAnomalies([(0, math.inf)]), "no ranges"),
        *((lambda name=name: OnlineAnomalies([(0, 1)], **{name: 0}), name) for name in ("trees", "height", "memory")),
        (lambda: OnlineAnomalies([(0, 1)], seed=-1), "seed"),
    ]
    for make, message in wrong:
        with pytest.raises(QueryError, match=message):
            make()
    with pytest.raises(ValueError, match="2 components, and there are 1 limits"):
        run_udm(OnlineAnomalies([(0, 1)]), [(0, 1, (0.5, 0.5))], (0, 10))


def test_a_missing_river_is_named_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("river.optim", "river.anomaly"):
        monkeypatch.setitem(sys.modules, module, None)
    for make in (OnlineRegression, lambda: OnlineAnomalies([(0, 1)])):
        with pytest.raises(QueryError, match=r"(?s)needs river.*Hint: pip install 'streamdsl\[learning\]'"):
            make()


def test_the_module_is_imported_without_river() -> None:
    code = "import sys, udm_examples.online_learning; print('river' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_results_are_plain_values() -> None:
    [row] = run_udm(OnlineAnomalies([(0, 1)]), [(1, 2, (0.5,))], (0, 10))
    assert row.payload == Scored((0.5,), 0.0)
    assert type(row.payload.score) is float
