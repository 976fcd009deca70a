"""The public contract, section 1: refused pushes, failing user code, dropped and adjusted events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import streamdsl as sd
from streamdsl import Cti, Insert, Progress, Retract
from streamdsl.errors import SchemaError, SessionError, StreamDslError, UserCodeError
from tests.laws.stops import figures
from tests.unit.contract.common import ENGINES, X, refused, rows


def test_a_push_refused_for_its_input_changes_nothing() -> None:
    session = sd.source("x", progress=Progress.slack(2), on_violation="drop").where(lambda e: e.v > 0).open()
    session.push([Insert("a", 10, 19, {"v": 1}), Insert("late", 1, 19, {"v": 1})])
    before = (figures(session), list(session.rejected()), session.why_no_output(), session.unit)
    good = [
        Insert("later", 1, 19, {"v": 1}),
        Insert("b", 12, 50, {"v": 1}),
        Cti(11),
        Insert("c", "1970-01-01T00:00:00.000012Z", 15, {"v": 1}),
    ]
    bad: list[Any] = [
        Insert("a", 12, 42, {"v": 1}),
        Insert("d", 12, 42, {"w": 1}),
        Insert("d", "x", 9, {"v": 1}),
        Insert([], 12, 42, {"v": 1}),  # type: ignore[arg-type]
        "d",
    ]
    for last in bad:
        with pytest.raises(StreamDslError):
            session.push([*good, last])
        assert (figures(session), list(session.rejected()), session.why_no_output(), session.unit) == before
    with pytest.raises(StreamDslError):
        session.push(pd.DataFrame({"le": [40, 41], "re": [50, 20], "v": [1, 1]}))
    assert session.push([Insert("b", 11, 19, {"v": 1})]) == [Insert("b", 11, 19, {"v": 1}), Cti(9)]


def test_what_a_first_refused_push_shows_is_forgotten() -> None:
    session = X.open()
    with pytest.raises(SchemaError):
        session.push([Insert("a", "2013-01-01", "2013-01-02", {"v": 1}), Insert("b", 1, 2, {"w": 1})])
    assert session.unit is None
    assert session.push([Insert("a", 1, 2, (5,))]) == [Insert("a", 1, 2, (5,))]
    assert session.unit == "tick"


def _raise(*arguments: Any) -> Any:
    raise ValueError("boom")


def _stop(*arguments: Any) -> Any:
    return next(iter([]))


FAILING: list[tuple[sd.Stream[Any], tuple[str, ...]]] = [
    (X.where(lambda e: 1 / (e - 2)), ("ZeroDivisionError", "operator where_1", "event 'bad'")),
    (X.where(lambda e: np.array([1, e])), ("ValueError", "operator where_1", "event")),
    (X.select(lambda e: 1 // (e - 2)), ("ZeroDivisionError", "operator select_1", "event 'bad'")),
    (X.shift(1).select_many(lambda e: e), ("TypeError", "operator select_many_1", "event")),
    (X.alter_duration(lambda e: _raise(e)), ("boom", "operator alter_lifetime_1", "event")),
    (X.group_by(lambda e: 1 / (e - 2)).snapshot_window().aggregate(n=sd.count()), ("group_apply", "event 'bad'")),
    (X.tumbling_window(10).aggregate(sd.uda(_raise)), ("boom", "operator window_aggregate_1", "window [0, 10)")),
    (X.snapshot_window().apply(sd.udo(_stop)), ("StopIteration", "operator window_apply_1", "window [1, 3)")),
    (X.tumbling_window(10).aggregate(lambda w: 1 / (w.count() - 2)), ("ZeroDivisionError", "window [0, 10)")),
    (X.count_window(1).aggregate(n=sd.count(where=lambda e: 1 / (e - 2))), ("ZeroDivisionError", "event 'bad'")),
    (X.join(X, where=lambda a, b: 1 / (a - 2)), ("ZeroDivisionError", "operator join_1", "'bad'")),
    (X.to_edges(lambda e: e.nothing), ("AttributeError", "operator to_edges_1", "event")),
]


@pytest.mark.parametrize(("query", "texts"), FAILING)
def test_an_exception_from_user_code_names_operator_window_and_event_and_ends_the_session(
    query: sd.Stream[Any], texts: tuple[str, ...]
) -> None:
    events = [Insert("a", 1, 5, 1), Insert("bad", 3, 12, 2)]
    session = query.open()
    with refused(UserCodeError, *texts):
        session.push(events)
    with refused(SessionError, "the session has failed", "rejected() and stats()"):
        session.push([])
    with refused(SessionError, "the session has failed"):
        session.close()
    assert session.stats()
    assert list(session.rejected()) == []
    with refused(UserCodeError, *(text.split("event")[0] for text in texts if "bad'" not in text)):
        query.run({"x": events}, engine="reference")


@pytest.mark.parametrize("policy", ["drop", "adjust"])
def test_a_run_tells_what_its_sources_have_dropped_or_adjusted(policy: Any) -> None:
    events = [Insert("a", 1, 9, "x"), Cti(5), Insert("b", 3, 8, "y"), Retract("b", 3, 8, 6), Insert("c", 1, 2, "z")]
    source = sd.source("x", on_violation=policy)
    session = source.open()
    session.push(events)
    both = source.union(sd.from_events(events, on_violation="drop"))
    for engine in ENGINES:
        assert source.run({"x": events}, engine=engine).rejected() == list(session.rejected())
        assert len(both.run({"x": events}, engine=engine).rejected()) == len(session.rejected()) + 3
        assert rows("a").run(engine=engine).rejected() == []


def test_dropped_and_adjusted_events_come_out_of_rejected() -> None:
    session = sd.source("x", on_violation="drop").open()
    out = session.push(
        [
            Insert("a", 1, 9, "x"),
            Cti(5),
            Insert("b", 3, 8, "y"),
            Retract("b", 3, 8, 6),
            Retract("a", 1, 9, 4),
            Retract("a", 1, 9, 7),
        ]
    )
    assert out == [Insert("a", 1, 9, "x"), Cti(5), Retract("a", 1, 9, 7, "x")]
    assert [(r.event.id, r.cti) for r in session.rejected()] == [("b", 5), ("b", 5), ("a", 5)]
    session = sd.source("x", on_violation="adjust").open()
    out = session.push([Insert("a", 1, 9, "x"), Cti(5), Insert("b", 3, 8, "y"), Retract("b", 3, 8, 6), Retract("a", 1, 9, 4)])
    assert out == [Insert("a", 1, 9, "x"), Cti(5), Retract("a", 1, 9, 5, "x"), Insert("b", 5, 6, "y")]
    assert len(session.rejected()) == 2


@pytest.mark.parametrize("policy", ["drop", "adjust"])
@pytest.mark.parametrize("progress", [None, Progress.slack(2)], ids=["by a CTI", "by slack"])
def test_late_rows_of_a_frame_are_dropped_or_adjusted_as_events_are(policy: Any, progress: Progress | None) -> None:
    lives = [(11, 19), (7, 30), (14, 15), (3, 10), (9, 12), (13, 20)]
    frame = pd.DataFrame([{"le": le, "re": re, "v": v} for v, (le, re) in enumerate(lives)])
    sent: list[Any] = []
    for push in (frame, [Insert(f"e{v}", le, re, {"v": v}) for v, (le, re) in enumerate(lives)]):
        session = sd.source("x", on_violation=policy, progress=progress).open()
        session.push([Insert("first", 12, 40, {"v": 9}), *([Cti(10)] if progress is None else [])])
        out = [*session.push(push), *session.close()]
        told = [(each.event.le, each.cti, each.reason) for each in session.rejected()]
        sent.append((sorted((e.le, e.re, e.payload["v"]) for e in out if isinstance(e, Insert)), told))
    assert sent[0] == sent[1]
    assert len(sent[0][1]) > 2


class Length(sd.UDA[Any, int]):
    def compute_result(self, payloads: Any) -> int:
        return len(payloads)


class Broken(sd.UDA[Any, float]):
    def compute_result(self, payloads: Any) -> float:
        return len(payloads) / 0


def test_of_several_modules_the_error_names_that_which_has_failed() -> None:
    rows = sd.from_rows([(1, 2, {"v": 1})])
    query = rows.tumbling_window(10).aggregate(n=Length().of(lambda e: e.v), ratio=Broken().of(lambda e: e.v))
    with pytest.raises(UserCodeError, match=r"window \[0, 10\), Broken.compute_result in test_refusals.py, line \d+"):
        query.run()
