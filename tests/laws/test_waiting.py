"""Rows wait where only final results go out: what is sent, and when, is as if every push had run at once."""

from __future__ import annotations

from functools import cache
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import note

import streamdsl as sd
from streamdsl.engine.input_buffer import final_windows
from streamdsl.engine.query_session import Session
from streamdsl.errors import SessionError, StreamDslError, UserCodeError
from streamdsl.temporal import INFINITY, MIN_TIME, Cti, Insert, Retract
from streamdsl.windows import Hopping
from tests.laws.choices import Random, given
from tests.laws.harness import pushes_for
from tests.laws.operators import Variant, operators
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, scenario


def counts(s: Any, size: int) -> Any:
    return s.tumbling_window(size).aggregate(k=sd.max(lambda e: e.k), v=sd.count())


OWN = [
    Variant(f"behind windows {number}", build, unending=False)
    for number, build in enumerate(
        [
            lambda s: (
                counts(s.where(lambda e: e.v > -2).select(k=lambda e: e.k, v=lambda e: -e.v), 6)
                .snapshot_window()
                .top_k(1, by="v")
            ),
            lambda s: counts(counts(s, 4), 12),
            lambda s: counts(s, 4).union(counts(s.where(lambda e: e.v > 0), 10)),
            lambda s: counts(s, 5).join(counts(s, 7), on="k", select=lambda a, b: {"k": a.k, "v": a.v - b.v}),
            lambda s: counts(s.group_by("k").tumbling_window(3).aggregate(v=sd.sum(lambda e: e.v)), 9).shift(4).distinct(),
            lambda s: counts(s, 6).anti_join(counts(s, 9), on="k").stitch(),
        ]
    )
]
COUNTS = sd.source("s").where(lambda e: e > 0).tumbling_window(10).aggregate(n=sd.count())


@cache
def all_that_wait() -> list[Variant]:
    """Return what waits of all operators, and compositions of windows."""
    variants = (variant for variants in operators().values() for variant in variants)
    return [variant for variant in variants if final_windows(variant.query().open(emit="final")._graph)] + OWN


def at_once(query: Any) -> Session[Any]:
    session: Session[Any] = query.open(emit="final")
    session._waiting = None
    return session


def progress(session: Session[Any]) -> list[list[int]]:
    return [[figures[name] for name in ("in", "out", "input_cti", "output_cti")] for figures in session.stats().values()]


def test_windows_in_columns_let_rows_wait() -> None:
    assert len(all_that_wait()) > 15
    assert all(final_windows(variant.query().open(emit="final")._graph) for variant in OWN)
    assert COUNTS.open()._waiting is None


@examples(150)
@given(SEEDS)
def test_every_push_sends_what_it_sends_without_waiting(seed: int) -> None:
    rng = Random(seed)
    variant = rng.choice(all_that_wait())
    note(variant.name)
    sessions = variant.query().open(emit="final"), at_once(variant.query())
    for source, events in pushes_for(variant.query(), scenario(rng, variant.inputs, variant.unending, rng.choice((8, 40)))):
        waiting, plain = (session.push(list(events), source=source) for session in sessions)
        assert waiting == plain
        if rng.random() < 0.1:
            assert progress(sessions[0]) == progress(sessions[1])
    end = rng.choice((INFINITY, rng.randint(-15, 30)))
    waiting, plain = (session.end(end) for session in sessions)
    assert waiting == plain
    assert progress(sessions[0]) == progress(sessions[1])


@examples(200)
@given(SEEDS)
def test_points_that_wait_in_columns_are_sent_as_if_they_had_not(seed: int) -> None:
    rng = Random(seed)
    query, most = points(rng), rng.choice((5, 2**17))
    note(f"{query}, {most}")
    with patch("streamdsl.engine.input_buffer._MOST_POINTS", most):
        sessions, time = (query.open(emit="final"), at_once(query)), 0
        for _ in range(rng.randint(1, 12)):
            time += rng.choice((0, 1, 5, 30))
            pushed: Any = [Cti(time)] if rng.random() < 0.2 else [sd.point(time, time, {"k": 1, "v": 2})]
            if rng.random() < 0.8:
                le = sorted(time + rng.randint(-3, 12) for _ in range(rng.randint(1, 9)))
                rng.shuffle(le if rng.random() < 0.3 else [])
                pushed = pa.table({"le": le, "k": [rng.randint(0, 3) for _ in le], "v": [rng.randint(-3, 3) for _ in le]})
            waiting, plain = (taken(session, pushed) for session in sessions)
            assert waiting == plain
            if rng.random() < 0.1:
                assert progress(sessions[0]) == progress(sessions[1])
        waiting, plain = (session.close() for session in sessions)
        assert waiting == plain
        assert progress(sessions[0]) == progress(sessions[1])


def points(rng: Random) -> Any:
    """Return a query of windows over points of which those that are late are dropped."""
    source = sd.source("s", progress=rng.choice((sd.Progress.slack(rng.randint(0, 9)), None)), on_violation="drop")
    size, hop = rng.choice(((10, 10), (12, 4), (9, 2), (7, 20)))
    rows = source.where(lambda e: e.v > -2) if rng.random() < 0.3 else source
    windows = (rows.group_by("k") if rng.random() < 0.7 else rows).hopping_window(size, hop, offset=rng.randint(-3, 3))
    found = windows.aggregate(n=sd.count(), v=rng.choice((sd.sum, sd.max, sd.avg))(lambda e: e.v))
    return rng.choice((found, found.where(lambda e: e.n > 1), found.shift(3), found.snapshot_window().aggregate(n=sd.count())))


def taken(session: Session[Any], pushed: Any) -> Any:
    """Return what a push sends, or the kind of error that it raises."""
    try:
        return session.push(pushed)
    except StreamDslError as error:
        return type(error)


@examples(150)
@given(SEEDS)
def test_below_the_cti_that_is_waited_for_no_window_ends_and_no_cti_rises(seed: int) -> None:
    rng = Random(seed)
    hop = rng.randint(1, 9)
    windows = Hopping(rng.randint(1, 30), hop, rng.randint(-5, 5))
    query = sd.source("s").hopping_window(windows.size, hop, offset=windows.offset).aggregate(n=sd.count())
    (operator,) = final_windows(query.open(emit="final")._graph)
    cti = rng.randint(-40, 40)
    until = operator.quiet_until(cti)
    for later in range(cti, until) if until != MIN_TIME else ():
        assert operator.output_cti([later]) == operator.output_cti([cti])
        assert windows.first_ending_after(later) == windows.first_ending_after(cti)
    assert (
        operator.output_cti([cti + 1]) > operator.output_cti([cti])
        or until > cti + 1
        or windows.first_ending_after(cti) < windows.first_ending_after(cti + 1)
    )


def test_a_row_waits_until_its_window_can_close() -> None:
    session = COUNTS.open(emit="final")
    sent = [session.push([sd.point(n, n, 1), Cti(n)]) for n in range(25)]
    assert [n for n, events in enumerate(sent) if events] == [0, 10, 20]
    assert session.stats()["where_1"]["in"] == 25
    assert session.why_no_output() is not None


def test_an_id_that_comes_again_is_another_row() -> None:
    session = sd.source("s").tumbling_window(10).aggregate(v=sd.median(lambda e: e)).open(emit="final")
    session.push([Cti(0)])
    for time, value in ((1, 5), (3, 7), (6, 9)):
        session.push([Insert("a", time, time + 1, value), Cti(time + 2)])
    session.push([Insert("a", 8, 20, 100)])
    session.push([Retract("a", 8, 20, 8, 100)])
    assert session.push([Cti(10)]) == [Insert(("window_aggregate_1", 0, 0), 0, 10, sd.Record(v=7)), Cti(10)]


def test_who_looks_at_a_session_sees_the_rows_that_wait(tmp_path: Any) -> None:
    session = COUNTS.open(emit="final", engine_options={"attach": "on"})
    for n in range(5):
        session.push([sd.point(n, n, 1), Cti(n)])
    session.checkpoint(tmp_path / "saved")
    attached = session.attach(COUNTS)
    later = COUNTS.restore(tmp_path / "saved")
    assert session.push([Cti(10)]) == later.push([Cti(10)])
    assert [event.payload.n for event in attached.pull() if isinstance(event, Insert)] == [5]


def test_an_exception_of_user_code_comes_when_its_row_runs() -> None:
    session = sd.source("s").where(lambda e: 1 / e > 0).tumbling_window(10).aggregate(n=sd.count()).open(emit="final")
    session.push([Cti(0)])
    assert session.push([sd.point("bad", 3, 0)]) == []
    with pytest.raises(UserCodeError, match="bad"):
        session.push([Cti(10)])
    with pytest.raises(SessionError, match="has failed"):
        session.push([Cti(20)])
    assert session.stats()


def test_no_row_waits_when_a_session_ends_or_a_run_does() -> None:
    query = sd.source("s").where(lambda e: 1 / e > 0).tumbling_window(10).aggregate(n=sd.count())
    session = query.open(emit="final")
    session.push([Cti(0)])
    with pytest.raises(UserCodeError, match="bad"):
        session.end_with({"s": [sd.point("bad", 3, 0)]}, 5)
    with pytest.raises(UserCodeError):
        query.run({"s": [sd.point("bad", 3, 0)]}, until=5)
