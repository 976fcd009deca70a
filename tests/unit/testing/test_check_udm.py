"""`check_udm`: good modules of every kind pass, and every law finds its sabotaged modules, by its own name."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pytest

import streamdsl as sd
from streamdsl.engine.frames.snapshot import SnapshotFrame
from streamdsl.errors import StreamDslError, UdmLawViolation
from streamdsl.testing import check_udm
from streamdsl.testing.laws import LAWS
from streamdsl.udm.builtin import Avg, Collect, Count, Max, Median, Sum, TimeWeightedAvg
from tests.laws.profiles import some
from tests.unit.testing import modules
from tests.unit.testing.broken import broken_law
from tests.unit.testing.forgetful import FORGETFUL, KeepsFive, OfSmallNumbers, Rounded
from tests.unit.testing.modules import Mean, Ordered, Spread, Trip, Zones, middle, running
from tests.unit.testing.sabotaged import SABOTAGED, Approximates, ForgetsToCount, NeedsTwo
from udm_examples import IncrementalTimeWeightedAverage, LinearTrend, SlidingMedian, Vwap

ALWAYS = {"answers", "inputs_not_mutated", "deterministic", "result_not_aliased", "order_insensitive", "picklable"}
IN_A_QUERY = {"cti_progress", "arrival_order"}
SEEDS = some(range(5), 1)
OF_STATES = {
    "states_are_returned",
    "computing_keeps_state",
    "incremental_equals_recompute",
    "what_has_gone_leaves_no_trace",
    "state_copyable",
}
GOOD: list[tuple[Any, set[str]]] = [
    (modules.Spread, set()),
    (modules.Coverage, {"clipping", "ignores_ends_beyond_window"}),
    (modules.Distinct, set()),
    (modules.Through, {"clipping", "no_output_in_the_past", "time_bound"}),
    (modules.Mean, {*OF_STATES, "remove_undoes_add", "merge_agrees"}),
    (modules.Largest, OF_STATES),
    (modules.Ordered, {*OF_STATES, "remove_undoes_add", "merge_agrees", "sets_equal_singles"}),
    (modules.Uptime, {*OF_STATES, "remove_undoes_add", "clipping"}),
    (modules.Zones, {*OF_STATES, "remove_undoes_add", "merge_agrees", "reads", "commutes_with_filter_on"}),
    (modules.Lasting, {*OF_STATES, "remove_undoes_add", "clipping", "no_output_in_the_past"}),
    (modules.Norm, set()),
    (modules.Power, OF_STATES),
    (middle, set()),
    (running, {"clipping", "no_output_in_the_past"}),
]


def test_a_module_that_needs_order_is_given_it_in_every_arrival() -> None:
    report = check_udm(modules.Earliest)
    assert set(report.held) == (ALWAYS | IN_A_QUERY) - {"order_insensitive"}


@pytest.mark.parametrize(("module", "laws"), GOOD, ids=[getattr(m, "__name__", str(m)) for m, _ in GOOD])
def test_good_modules_of_every_kind_pass(module: Any, laws: set[str]) -> None:
    report = check_udm(module, examples=15)
    assert set(report.held) == ALWAYS | IN_A_QUERY | laws
    assert set(report.held) | set(report.skipped) == {law.name for law in LAWS}
    assert min(report.held.values()) > 5


@pytest.mark.parametrize(
    ("law", "module"),
    [(law, module) for law, found in SABOTAGED.items() for module in found],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_a_sabotaged_module_is_found_by_its_law(law: str, module: Any) -> None:
    for seed in SEEDS[:2]:
        assert broken_law(module, seed=seed) == law


@pytest.mark.parametrize("module", FORGETFUL, ids=lambda module: module.__name__)
def test_a_module_is_found_that_is_right_until_numbers_windows_or_removals_are_unlike_those_of_a_small_test(module: Any) -> None:
    for seed in SEEDS[:3]:
        assert broken_law(module, seed=seed)


def test_what_is_found_in_a_large_window_is_shown_by_the_fewest_members() -> None:
    with pytest.raises(UdmLawViolation) as raised:
        check_udm(KeepsFive)
    assert (raised.value.law, raised.value.example.count("  + "), raised.value.example.count("  - ")) == (
        "what_has_gone_leaves_no_trace",
        6,
        5,
    )


@pytest.mark.parametrize(
    "module", [Vwap(), LinearTrend(), SlidingMedian(), IncrementalTimeWeightedAverage(), Rounded()], ids=lambda m: m.label
)
def test_exact_states_and_those_that_say_how_far_they_are_off_pass_at_all_magnitudes(module: Any) -> None:
    for seed in SEEDS:
        assert "what_has_gone_leaves_no_trace" in check_udm(module, seed=seed).held


def test_a_module_need_not_take_numbers_of_all_magnitudes() -> None:
    assert "what_has_gone_leaves_no_trace" in check_udm(OfSmallNumbers).held


def test_an_output_that_breaks_its_ctis_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes a broken engine too: as it is, it computes a window's results again only when its members change."""
    monkeypatch.setattr(SnapshotFrame, "differ", lambda frame, changed, found: np.ones(len(found.le), dtype=np.bool_))
    assert broken_law(Approximates, seed=1) == "cti_progress"


def test_every_law_has_a_sabotaged_module() -> None:
    assert {*SABOTAGED, "cti_progress", "same_on_spark"} == {law.name for law in LAWS}
    assert len({law.name for law in LAWS}) == len(LAWS)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_every_law_says_what_it_says_and_what_to_do(law: Any) -> None:
    assert law.statement.endswith(".")
    assert len(law.hint) > 40


@pytest.mark.parametrize(("cls", "examples"), [(Spread, 60), (Mean, 15), (modules.Coverage, 10), (Ordered, 15)])
def test_a_check_asks_a_module_for_at_most_a_hundred_results_per_example(
    cls: type[Any], examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[None] = []
    compute = cls.compute_result

    def counted(*arguments: Any) -> Any:
        calls.append(None)
        return compute(*arguments)

    monkeypatch.setattr(cls, "compute_result", counted)
    check_udm(cls, examples=examples)
    assert examples < len(calls) <= 100 * examples


def test_a_violation_shows_a_minimal_example_and_a_hint() -> None:
    with pytest.raises(UdmLawViolation) as raised:
        check_udm(ForgetsToCount())
    violation = raised.value
    assert isinstance(violation, StreamDslError)
    assert isinstance(violation, AssertionError)
    assert (violation.module, violation.law) == ("ForgetsToCount", "remove_undoes_add")
    assert str(violation).splitlines() == [
        "ForgetsToCount breaks the law remove_undoes_add: Removing a member that was added leaves the state as it was.",
        "  a member that was added and removed has left a trace",
        "  time  : 0    5    10",
        "  window: [=========)",
        "  + 1.0 : [=========)",
        "  - 1.0 : [=========)",
        "  + 1.0 : [=========)",
        "  expected: 1.0",
        "  found   : 0.5",
        "Hint: remove_event_from_state takes back exactly what add_event_to_state did; a float sum does not "
        "((1.0 + 1e16) - 1e16 is 0.0): keep fractions, integers or counts; leave it out, and the engine computes such windows "
        "anew; or claim how far floats may be off: float_error = 1e-6",
    ]


def test_a_violation_in_a_query_shows_the_query_and_the_order_of_arrival() -> None:
    with pytest.raises(UdmLawViolation) as raised:
        check_udm(SABOTAGED["arrival_order"][0])
    assert "  events." in raised.value.example
    assert "_window(" in raised.value.example
    assert ".aggregate(Differences)" in raised.value.example
    assert "[" in raised.value.example.partition("time: ")[2]


def test_what_a_module_raises_is_shown_and_is_the_cause() -> None:
    with pytest.raises(UdmLawViolation, match=r"(?s)StatisticsError: stdev requires.*events=\[\(le, re, payload\)") as raised:
        check_udm(NeedsTwo)
    assert "StatisticsError" in repr(raised.value.__cause__)


def test_what_a_module_raises_in_a_query_only_is_found_there() -> None:
    class BetweenWindows(sd.TimeSensitiveUDA[int, int]):
        def compute_result(self, events: Sequence[sd.IntervalEvent[int]], window: sd.WindowDescriptor) -> int:
            if window.start_time % 10:
                raise ValueError("not this window")
            return len(events)

    with pytest.raises(UdmLawViolation, match=r"(?s)law arrival_order.*UserCodeError: ValueError in user code: not this window"):
        check_udm(BetweenWindows)


def test_the_same_seed_gives_the_same_examples() -> None:
    def calls(seed: int) -> list[list[float]]:
        seen: list[list[float]] = []

        @sd.uda
        def spy(payloads: Sequence[float]) -> float:
            seen.append(list(payloads))
            return max(payloads)

        check_udm(spy, seed=seed, examples=5)
        return seen

    assert calls(3) == calls(3)
    assert calls(3) != calls(4)


def test_the_report_says_what_was_checked_and_what_was_not() -> None:
    text = repr(check_udm(Spread))
    assert text.startswith("<UdmReport Spread: 8 laws hold>\n  on 30 examples: answers, inputs_not_mutated, deterministic")
    assert "  skipped, as it is time-insensitive: clipping" in text
    assert check_udm(Spread, examples=4).held["answers"] == 4


def test_modules_that_no_other_process_finds_by_name_are_stored_with_their_code() -> None:
    class Local(Mean):
        pass

    @sd.uda
    def local(values: Sequence[int]) -> int:
        return max(values)

    lock = threading.Lock()

    @sd.uda
    def locked(values: Sequence[int]) -> int:
        with lock:
            return max(values)

    assert "picklable" in check_udm(Local, examples=5).held
    assert "picklable" in check_udm(local, examples=5).held
    pytest.importorskip("pyspark")
    assert broken_law(locked) == "picklable"


def test_to_check_a_local_module_leaves_its_code_alone() -> None:
    calls: list[int] = []

    class Local(sd.UDA[int, int]):
        def compute_result(self, payloads: Sequence[int]) -> int:
            calls.append(len(payloads))
            return max(payloads)

    before = Local.compute_result
    check_udm(Local)
    assert Local.compute_result is before
    assert Local().compute_result([1, 2, 3, 4, 5, 6, 7, 8, 9]) == 9
    assert calls[-1] == 9


def test_without_pyspark_code_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.cloudpickle", None)
    assert "picklable" in check_udm(middle).held
    assert broken_law(SABOTAGED["picklable"][0]) == "picklable"


@pytest.mark.parametrize("module", [Count(), Sum(), Avg(), Max(), Median(), Collect(), TimeWeightedAvg()], ids=lambda m: m.label)
def test_built_in_aggregates_keep_the_laws(module: Any) -> None:
    check_udm(module, [(t, t + 1 + t % 3, t % 4 if t % 5 else None) for t in range(12)], window=(2, 9), examples=10)


def test_dataclasses_are_made_up_field_by_field() -> None:
    seen: list[Trip] = []

    class Spy(Zones):
        def add_event_to_state(self, state: Any, payload: Trip) -> Any:
            seen.append(payload)
            return super().add_event_to_state(state, payload)

    check_udm(Spy, examples=10)
    assert {type(trip.fare) for trip in seen} == {float, type(None)}
    assert all(isinstance(trip.zone, str) and isinstance(trip.at, datetime) for trip in seen)
