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
    assert held["window_aggregate_1"][6:] == ("", "")
    held = after(sd.point("F", 12, {"zone": "F", "fare": 1}), sd.Cti(11))
    assert held["window_aggregate_1"][:4] == (1, 1, 1, "'F'")
    assert held["window_aggregate_1"][6:] == ("11", "10")
    assert held["source:trips"][:4] == (0, 1, 0, "")
    held = after(sd.Cti(30))
    assert [each[:3] for each in held.values()] == [(0, 0, 0)] * 3


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
