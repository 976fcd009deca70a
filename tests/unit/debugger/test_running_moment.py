"""A recording that is run once, push by push, has the rows of a run from its beginning, and holds what a session holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.debugger.moment import Moment
from streamdsl.debugger.pushes import Push
from streamdsl.debugger.running_moment import HeldState, RunningMoment
from streamdsl.udm import UDSO
from tests.laws.choices import Random
from tests.laws.compositions import composition
from tests.laws.scenarios import scenario


@given(st.integers(0, 10**6))
def test_rows_at_operators_are_those_of_a_run_from_the_beginning_and_state_is_that_of_a_session_for_random_queries(
    seed: int,
) -> None:
    rng = Random(seed)
    _, query = composition(rng)
    session = query.open(engine_options={"rewrite": "off"})
    trace = session.trace(last=None)
    running = RunningMoment(trace.recording)
    for source, events in scenario(rng, 2, unending=True, max_size=5).pushes:
        if source not in session.sources:
            continue
        session.push(list(events), source=source)
        running.take(trace.recording.pushes[-1])
        assert rows_at(running) == rows_at(Moment(trace.recording, list(trace.recording.pushes)))
        assert sizes(running.held()) == {
            label: (figures["windows"], figures["events"], figures["in"], figures["out"])
            for label, figures in session.stats().items()
            if label in running.held()
        }


def rows_at(moment: RunningMoment | Moment) -> list[list[Any]]:
    lineage = moment.lineage
    return [list(lineage.rows[id(node)]) for node in moment.plan.walk()]


def sizes(held: Mapping[str, HeldState]) -> dict[str, tuple[int, int, int, int]]:
    return {label: (each.windows, each.rows, each.came, each.went) for label, each in held.items()}


def test_an_operator_holds_the_windows_rows_and_groups_that_a_change_can_still_need() -> None:
    query = sd.source("trips").group_by("zone").tumbling_window(10).aggregate(most=sd.max(lambda e: e.fare))
    session = query.open()
    running = RunningMoment(session.trace().recording)

    def after(*events: sd.Insert[Any] | sd.Cti) -> Mapping[str, HeldState]:
        session.push(list(events))
        running.take(newest(session.traced))
        return running.held()

    held = after(*(sd.point(n, n, {"zone": zone, "fare": n}) for n, zone in enumerate("ABCABE")))
    assert held["window_aggregate_1"][:4] == (4, 6, 4, "'A', 'B', 'C', 'E'")
    assert held["window_aggregate_1"][6:8] == ("", "")
    held = after(sd.point("F", 12, {"zone": "F", "fare": 1}), sd.Cti(11))
    assert held["window_aggregate_1"][:4] == (1, 1, 1, "'F'")
    assert held["window_aggregate_1"][6:8] == ("11", "10")
    assert held["source:trips"][:4] == (0, 1, 0, "")
    held = after(sd.Cti(30))
    assert [each[:3] for each in held.values()] == [(0, 0, 0)] * 3


class Longest(UDSO[str, str, str]):
    def create_state(self) -> str:
        return ""

    def process(self, state: str, payload: str, le: int) -> tuple[str, list[str]]:
        return (payload, [payload]) if len(payload) > len(state) else (state, [])


class Spread(sd.IncrementalUDA[int, list[int], int]):
    def create_state(self) -> list[int]:
        return []

    def add_event_to_state(self, state: list[int], payload: int) -> list[int]:
        return sorted([*state, payload])

    def remove_event_from_state(self, state: list[int], payload: int) -> list[int]:
        state.remove(payload)
        return state

    def compute_result(self, state: list[int]) -> int:
        return state[-1] - state[0]


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        (
            lambda t: (
                t.group_by("zone").tumbling_window(10).aggregate(n=sd.count(lambda e: e.fare), v=sd.variance(lambda e: e.fare))
            ),
            [
                "'A' [0, 10): count(e.fare) values=1; variance(e.fare) values=1 sum=4 squares=16",
                "'B' [0, 10): count(e.fare) values=1; variance(e.fare) values=1 sum=0.5 squares=0.25",
            ],
        ),
        (
            lambda t: t.alter_duration(5).snapshot_window().aggregate(total=sd.sum(lambda e: e.fare)),
            ["[1, 3): sum(e.fare) values=1 sum=4", "[3, 4): sum(e.fare) values=2 sum=4.5"],
        ),
        (
            lambda t: t.group_by("zone").apply(lambda g: g.select(lambda e: e.zone).scan(Longest())),
            ["'A': Longest A", "'B': Longest B"],
        ),
    ],
)
def test_totals_of_windows_and_states_of_modules_are_shown(query: Any, kept: list[str]) -> None:
    session = query(sd.source("trips")).open()
    running = RunningMoment(session.trace().recording)
    session.push([sd.point("a", 1, {"zone": "A", "fare": 4}), sd.point("x", 2, {"zone": "A", "fare": 7})])
    running.take(newest(session.traced))
    session.push(
        [sd.point("b", 3, {"zone": "B", "fare": 0.5}), sd.Retract("x", 2, 3, 2), sd.point("n", 4, {"zone": "B", "fare": None})]
    )
    running.take(newest(session.traced))
    found = [line for held in running.held().values() for line in held.kept]
    assert found[: len(kept)] == kept


def test_the_bytes_of_an_operator_are_those_of_its_state() -> None:
    session = sd.source("words").scan(Longest()).open()
    running = RunningMoment(session.trace().recording)
    found = []
    for event in (sd.point(1, 1, "a"), sd.point(2, 2, "b" * 100_000), sd.Cti(9)):
        session.push([event])
        running.take(newest(session.traced))
        found.append(running.held()["scan_1"].bytes)
    small, large, kept = found
    assert 500 < small < 5_000
    # The word is a row of the source too, which comes first; when it is final there it is the scan's alone.
    assert large < 10_000 < 100_000 < kept < 105_000


def test_of_many_windows_some_totals_are_shown_and_states_of_incremental_modules_too() -> None:
    query = sd.source("fares").session_window(50).aggregate(spread=Spread().of(lambda e: e))
    session = query.open()
    running = RunningMoment(session.trace().recording)
    for n in range(3):
        session.push([sd.point(n, n, n * n)])
        running.take(newest(session.traced))
    assert running.held()["window_aggregate_1"].kept == ["[0, 53): Spread [0, 1, 4]"]
    counted = sd.source("fares").tumbling_window(1).aggregate(n=sd.count()).open()
    running = RunningMoment(counted.trace().recording)
    counted.push([sd.point(n, n, n) for n in range(9)])
    running.take(newest(counted.traced))
    kept = running.held()["window_aggregate_1"].kept
    assert kept == [*(f"[{n}, {n + 1}): count() values=1" for n in range(4)), "…"]


def newest(trace: Any) -> Push:
    push: Push = trace.recording.pushes[-1]
    return push


def test_the_keys_of_a_few_groups_are_named() -> None:
    query = sd.source("trips").group_by(lambda e: (e.a, e.b)).tumbling_window(10).aggregate(n=sd.count())
    trace = query.open().trace()
    running = RunningMoment(trace.recording)
    trace._recorder.session.push([sd.point(n, 1, {"a": n, "b": "x"}) for n in range(6)])  # type: ignore[union-attr]
    running.take(newest(trace))
    keys = running.held()["window_aggregate_1"].keys
    assert keys == "(0, 'x'), (1, 'x'), (2, 'x'), (3, 'x'), …"


@pytest.mark.parametrize("until", [None, 25])
def test_the_end_of_a_run_is_the_last_push(until: int | None) -> None:
    trips, zones = sd.source("trips"), sd.source("zones")
    query = trips.join(zones).tumbling_window(10).aggregate(n=sd.count())
    rows = {"trips": [(1, 14, "A"), (5, 7, "B")], "zones": [(0, 30, "Z")]}
    trace = query.trace(rows) if until is None else query.trace(rows, until=until)
    running = RunningMoment(trace.recording)
    for push in trace.recording.pushes:
        running.take(push)
    assert rows_at(running) == rows_at(Moment(trace.recording, list(trace.recording.pushes)))
