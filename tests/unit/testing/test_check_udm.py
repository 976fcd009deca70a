"""`check_udm`: good modules of every kind pass, and every law finds its sabotaged modules, by its own name."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest

import streamdsl as sd
from streamdsl.engine.windows.results import WindowResults
from streamdsl.errors import QueryError, StreamDslError, UdmLawViolation
from streamdsl.testing import check_udm, events, marbles
from streamdsl.testing.laws import LAWS
from streamdsl.udm.builtin import Avg, Collect, Count, Max, Median, Sum, TimeWeightedAvg
from tests.unit.testing import modules
from tests.unit.testing.modules import Earliest, Echo, Fares, Mean, Number, Ordered, Spread, Through, Trip, Zones, middle, running
from tests.unit.testing.sabotaged import SABOTAGED, Approximates, Caches, ForgetsToCount, NeedsTwo, TakesFirst

ALWAYS = {"answers", "inputs_not_mutated", "deterministic", "result_not_aliased", "order_insensitive", "picklable"}
IN_A_QUERY = {"cti_progress", "arrival_order"}
OF_STATES = {"states_are_returned", "computing_keeps_state", "incremental_equals_recompute", "state_copyable"}
GOOD: list[tuple[Any, set[str]]] = [
    (modules.Spread, set()),
    (modules.Coverage, {"clipping"}),
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
ROWS: list[tuple[int, int, Any]] = [
    (0, 4, {"fare": 2.0, "tip": 1}),
    (3, 9, {"fare": 3.0, "tip": 2}),
    (5, 6, {"fare": 5.0, "tip": 3}),
]


def test_a_module_that_needs_order_is_given_it_in_every_arrival() -> None:
    report = check_udm(modules.Earliest)
    assert set(report.held) == (ALWAYS | IN_A_QUERY) - {"order_insensitive"}


def broken_law(module: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(UdmLawViolation) as raised:
        check_udm(module, *arguments, **options)
    return raised.value.law


@pytest.mark.parametrize(("module", "laws"), GOOD, ids=[getattr(m, "__name__", str(m)) for m, _ in GOOD])
def test_good_modules_of_every_kind_pass(module: Any, laws: set[str]) -> None:
    report = check_udm(module)
    assert set(report.held) == ALWAYS | IN_A_QUERY | laws
    assert set(report.held) | set(report.skipped) == {law.name for law in LAWS}
    assert min(report.held.values()) > 10


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("law", "module"),
    [(law, module) for law, found in SABOTAGED.items() for module in found],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_a_sabotaged_module_is_found_by_its_law(law: str, module: Any, seed: int) -> None:
    assert broken_law(module, seed=seed) == law


@pytest.mark.parametrize("seed", [0, 1])
def test_an_output_that_breaks_its_ctis_is_found(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes a broken engine too: as it is, it remembers a window's results for as long as its members stay."""
    assert broken_law(Approximates, seed=seed) == "arrival_order"
    monkeypatch.setattr(WindowResults, "_remembered", WindowResults._invoke)
    assert broken_law(Approximates, seed=seed) == "cti_progress"


def test_every_law_has_a_sabotaged_module() -> None:
    assert {*SABOTAGED, "cti_progress", "same_on_spark"} == {law.name for law in LAWS}
    assert len({law.name for law in LAWS}) == len(LAWS)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_every_law_says_what_it_says_and_what_to_do(law: Any) -> None:
    assert law.statement.endswith(".")
    assert len(law.hint) > 40


@pytest.mark.parametrize("cls", [Spread, Mean, modules.Coverage, Ordered])
@pytest.mark.parametrize("examples", [15, 60])
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
        "Hint: remove_event_from_state takes back exactly what add_event_to_state did; leave it out if that cannot be, "
        "and the engine computes such windows anew",
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


class Keyed(sd.UDA[Any, float]):
    """A module whose payloads only examples can tell."""

    reads: ClassVar[Sequence[str] | None] = ("fare",)

    def compute_result(self, payloads: Sequence[Any]) -> float:
        return float(sum(payload.fare for payload in payloads))


TABLE = """
    kind    id  le  re   re_new  fare  tip
    insert  a   1   inf  -       2.5   1
    retract a   1   inf  6
    insert  b   4   9    -       4.0   2
"""


@pytest.mark.parametrize(
    "given",
    [
        ROWS,
        sd.CHT.from_rows(ROWS),
        [sd.IntervalEvent(*row) for row in ROWS],
        events(TABLE),
        TABLE,
        marbles("a-b==)c===>", {name: {"fare": 1.0 + i, "tip": i} for i, name in enumerate("abc")}),
        iter(ROWS),
    ],
    ids=["rows", "CHT", "IntervalEvents", "physical events", "event table", "marbles", "an iterator"],
)
def test_events_may_be_given_in_any_form(given: Any) -> None:
    assert {"reads", "arrival_order"} <= set(check_udm(Keyed, given).held)


def test_events_that_are_given_are_all_that_a_module_sees() -> None:
    seen: set[str] = set()

    @sd.uda
    def spying(payloads: Sequence[str]) -> int:
        seen.update(payloads)
        return len(payloads)

    check_udm(spying, [(1, 5, "x"), (2, 9, "y")])
    assert seen == {"x", "y"}


def test_one_event_is_enough_for_most_laws() -> None:
    report = check_udm(Fares, [(1, 5, {"fare": 1.0})])
    assert report.skipped["order_insensitive"] == "it needs 2 events"
    assert "deterministic" in report.held


def test_events_of_a_calendar_unit_keep_it() -> None:
    start = datetime(2013, 1, 1, tzinfo=UTC)
    cht = sd.CHT.from_rows([(start, start.replace(day=2), 3), (start.replace(hour=5), start.replace(day=3), 4)], "s")
    assert "arrival_order" in check_udm(modules.Coverage, cht).held


def test_events_that_are_given_find_what_made_up_ones_do_not() -> None:
    class Longest(sd.UDA[str, int]):
        def compute_result(self, payloads: Sequence[str]) -> int:
            return max(map(len, payloads)) if "zz" not in payloads else payloads.index("zz")

    check_udm(Longest)
    assert broken_law(Longest, [(0, 3, "zz"), (1, 5, "b"), (2, 4, "c")]) == "order_insensitive"


def test_claims_excuse_from_laws() -> None:
    points = [(t, t + 1, payload) for t, payload in enumerate("cabd")]
    report = check_udm(Earliest, points)
    assert report.skipped["order_insensitive"] == "it claims order_insensitive = False"
    assert broken_law(TakesFirst, points) == "order_insensitive"
    assert "deterministic" in check_udm(Number).skipped
    assert broken_law(Caches) == "deterministic"


def test_output_and_clips_say_how_queries_use_a_module() -> None:
    assert broken_law(Echo) == "no_output_in_the_past"
    assert "Output.CLIP" in check_udm(Echo, output=sd.Output.CLIP).skipped["no_output_in_the_past"]
    assert "no_output_in_the_past" in check_udm(Echo, clips=[sd.Clip.LEFT, sd.Clip.FULL]).held

    class Duration(sd.TimeSensitiveUDA[int, int]):
        def compute_result(self, events: Sequence[sd.IntervalEvent[int]], window: sd.WindowDescriptor) -> int:
            assert all(event.end_time <= window.end_time for event in events)
            return sum(event.end_time - event.start_time for event in events)

    assert broken_law(Duration) == "clipping"
    assert "clipping" in check_udm(Duration, clips=[sd.Clip.FULL]).held


def test_the_window_may_be_chosen() -> None:
    seen: set[sd.WindowDescriptor] = set()

    class Sized(sd.TimeSensitiveUDA[int, int]):
        def compute_result(self, events: Sequence[sd.IntervalEvent[int]], window: sd.WindowDescriptor) -> int:
            seen.add(window)
            return len(events)

    check_udm(Sized, window=(200, 300))
    assert (200, 300) in seen
    check_udm(Sized, [(210, 220, 1), (250, 400, 2), (1000, 1001, 3)], window=(205, 300))
    assert (205, 300) in seen


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

    assert "picklable" in check_udm(Local).held
    assert "picklable" in check_udm(local).held
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
    check_udm(module, [(t, t + 1 + t % 3, t % 4 if t % 5 else None) for t in range(12)], window=(2, 9))


def test_an_example_of_the_gallery() -> None:
    from udm_examples import Busiest, Median

    check_udm(Median)
    check_udm(Busiest(2))


class NeedsSetting(sd.UDA[float, float]):
    def __init__(self, k: int) -> None:
        self.k = k

    def compute_result(self, payloads: Sequence[float]) -> float:
        return max(payloads) * self.k


@pytest.mark.parametrize(
    ("module", "options", "message"),
    [
        (NeedsSetting, {}, r"(?s)cannot be made without parameters.*check_udm\(NeedsSetting\(\.\.\.\)\)"),
        (max, {}, "(?s)no user-defined module.*@sd.uda"),
        (Mean().of(lambda e: e), {}, r"(?s)Hint: give the module itself, without \.of"),
        (3, {}, "one of the eight bases"),
        (Keyed, {}, r"(?s)no payloads of type .*Any can be made up.*events=\["),
        (Fares, {"events": [(0, 1, 2, 3)]}, "is no event"),
        (Fares, {"events": [sd.Cti(3), (0, 1, 2)]}, "physical events and rows at once"),
        (Spread, {"events": [(0, 1, 2.0)], "window": (5, 9)}, "no event overlaps"),
        (Spread, {"output": sd.Output.UNCHANGED}, "stamps no results"),
        (Spread, {"output": "align"}, "is not an output policy"),
        (Spread, {"clips": []}, "clips names no clipping"),
        (Through, {"spark": "no session"}, "not the active Spark session"),
    ],
    ids=range(12),
)
def test_what_cannot_be_checked_is_refused(module: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        check_udm(module, **options)


def test_dataclasses_are_made_up_field_by_field() -> None:
    seen: list[Trip] = []

    class Spy(Zones):
        def add_event_to_state(self, state: Any, payload: Trip) -> Any:
            seen.append(payload)
            return super().add_event_to_state(state, payload)

    check_udm(Spy)
    assert {type(trip.fare) for trip in seen} == {float, type(None)}
    assert all(isinstance(trip.zone, str) and isinstance(trip.at, datetime) for trip in seen)


def test_a_module_that_needs_the_fields_it_does_not_read_is_found_out() -> None:
    class Unpacked(Keyed):
        def compute_result(self, payloads: Sequence[Any]) -> float:
            return float(sum(fare for fare, _ in (tuple(dict(payload).values()) for payload in payloads)))

    assert broken_law(Unpacked, ROWS) == "reads"
