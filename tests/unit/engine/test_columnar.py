"""The columnar window operator: where it runs, what it sends, what it keeps, and its errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import streamdsl as sd
from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.lower import lower
from streamdsl.engine.operator import Operator, Piece
from streamdsl.engine.operators.columnar_windows import ColumnarWindowOperator
from streamdsl.engine.query_session import Session
from streamdsl.errors import TimeOverflow, UnboundedOutputError, UserCodeError
from streamdsl.expr.table import Table, object_column
from streamdsl.temporal import INFINITY, MIN_TIME, Cti, Event, Insert, Retract


def windows_of(query: sd.Stream[Any]) -> Operator:
    return next(found for found in lower(query.plan()).operators if found.kind.startswith("window"))


def stats(session: Session[Any]) -> dict[str, int]:
    return next(figures for label, figures in session.stats().items() if label.startswith("window"))


def opened(query: sd.Stream[Any], **settings: Any) -> Any:
    """Return a session whose events are looked into without asking what they are."""
    return query.open(**settings)


def counted(**settings: Any) -> sd.Stream[Any]:
    return sd.source("s").tumbling_window(10, **settings).aggregate(n=sd.count(), total=sd.sum(lambda e: e.v))


def test_the_plan_chooses_and_explain_says_so() -> None:
    assert windows_of(counted()).kind == "window (columnar)"
    assert "<window (columnar)>" in counted().explain()
    assert windows_of(sd.source("s").tumbling_window(10).aggregate(m=sd.median(lambda e: e.v))).kind == "window (framed)"


@sd.udo
def each(values: Sequence[int]) -> Sequence[int]:
    return values


def row(id: str, le: int, re: int, v: Any = 1, k: Any = "a") -> Event[Any]:
    return Insert(id, le, re, {"k": k, "v": v})


def test_a_late_event_corrects_the_result_and_the_id_gets_a_version() -> None:
    session = opened(counted())
    assert [event.payload for event in session.push([row("a", 1, 3), row("b", 12, 13)])] == [{"n": 1, "total": 1}] * 2
    gone, come = session.push([row("c", 2, 3, 5)])
    assert (gone.id, gone.le, gone.re_new) == (("window_aggregate_1", 0, 0), 0, 0)
    assert (come.id.id, come.id.version, come.payload) == (("window_aggregate_1", 0, 0), 1, {"n": 2, "total": 6})
    assert session.push([row("d", 3, 4, 0), Retract("a", 1, 3, 1)])[-1].payload == {"n": 2, "total": 5}
    assert session.push([row("e", 3, 4, 0), Retract("d", 3, 4, 3)]) == []


def test_a_window_that_loses_its_last_row_goes_and_its_group_when_it_closes() -> None:
    query = sd.source("s").group_by("k").tumbling_window(10).aggregate(n=sd.count())
    graph = lower(query.plan())
    enter, windows, _ = graph.operators

    def step(re_old: int, re_new: int) -> Piece:
        le, old, new = (np.array([time]) for time in (5, re_old, re_new))
        batch = Batch(object_column(["a"]), le, old, new, Table.from_payloads([{"k": "x", "v": 1}]))
        return windows.step([enter.step([Piece(batch, MIN_TIME)])])

    assert len(step(5, 25).batch) == 1
    assert windows.state()["windows"] == 1
    assert windows.state()["events"] == 2
    assert step(25, 5).batch.re_new.tolist() == [0]
    assert (windows.state()["windows"], windows.state()["events"]) == (0, 0)
    assert len(list(windows.held_groups())) == 1
    windows.step([Piece(EMPTY, 10)])
    assert list(windows.held_groups()) == []


def test_windows_far_apart_cost_nothing_and_unending_rows_are_one_entry() -> None:
    session = opened(sd.source("s").hopping_window(4, 1).aggregate(n=sd.count()))
    session.push([row("a", 0, 1), row("b", 10**15, 10**15 + 1), Cti(10**15 + 1)])
    assert stats(session)["windows"] == 3
    session.push([row("c", 2 * 10**15, INFINITY), row("d", 2 * 10**15, 2 * 10**15 + 9)])
    session.push([Retract("c", 2 * 10**15, INFINITY, 2 * 10**15 + 9)])
    assert stats(session)["events"] == 2
    session.push([Cti(10**17)])
    assert (stats(session)["windows"], stats(session)["events"]) == (0, 0)


def test_a_row_in_ten_thousand_waiting_windows_is_two_entries() -> None:
    session = opened(sd.source("s").hopping_window(10_000, 1).aggregate(n=sd.count()), emit="watermark")
    session.push([row("a", 0, 1), row("b", 0, 1)])
    assert stats(session)["events"] == 2
    assert len(session.push([Cti(10_000)])) == 10_001


def test_an_unending_row_is_named_at_the_end_but_not_if_it_ends_with_it() -> None:
    session = opened(counted())
    session.push([row("a", 0, INFINITY), row("b", 3, INFINITY), Retract("a", 0, INFINITY, 3)])
    with pytest.raises(UnboundedOutputError, match=r"(?s)'b' never ends.*tumbling\(10\).*Hint: .*until"):
        session.push([Cti(INFINITY)])
    session = opened(counted())
    session.push([row("a", 0, INFINITY)])
    assert len(session.push([Retract("a", 0, INFINITY, 25), Cti(INFINITY)])) == 3


@pytest.mark.parametrize(("le", "re"), [(MIN_TIME, MIN_TIME + 1), (INFINITY - 2, INFINITY - 1)])
def test_windows_beyond_the_range_of_times_are_refused(le: int, re: int) -> None:
    with pytest.raises(TimeOverflow):
        counted().run({"s": sd.from_events([row("a", le, re)])})


def test_a_change_that_changes_nothing_raises_the_watermark() -> None:
    session = opened(counted())
    session.push([row("a", 5, 15)])
    assert [event.le for event in session.push([row("b", 12, 20), Retract("b", 12, 20, 12)])] == [10]


def test_equal_results_of_other_types_are_not_sent_again() -> None:
    session = opened(counted())
    session.push([row("a", 1, 2, 2)])
    assert session.push([Retract("a", 1, 2, 1), row("b", 1, 2, 2.0)]) == []
    gone, come = session.push([row("c", 1, 2, None)])
    assert (repr(gone.payload), repr(come.payload)) == ("Record(n=1, total=2)", "Record(n=2, total=2.0)")


def test_a_sum_that_is_no_number_still_is_not_sent_again() -> None:
    session = opened(counted())
    session.push([row("a", 1, 2, math.nan)])
    assert session.push([Retract("a", 1, 2, 1), row("b", 1, 2, math.nan)]) == []


def test_large_pushes_are_taken_in_slices_with_one_net_change() -> None:
    with patch("streamdsl.engine.batch.SLICE", 3):
        session = opened(counted())
        (only,) = session.push([row(f"e{i}", 1, 2, i) for i in range(10)])
        assert only.payload == {"n": 10, "total": 45}
        assert session.push([Retract(f"e{i}", 1, 2, 1) for i in range(9)] + [row(f"f{i}", 1, 2, 4) for i in range(9)]) == []


def test_errors_of_user_code_name_event_or_window() -> None:
    session = opened(sd.source("s").tumbling_window(10).aggregate(lambda w: 1 / (w.count() - 1)))
    with pytest.raises(UserCodeError, match=r"(?s)ZeroDivisionError.*window_aggregate_1, window \[10, 20\)"):
        session.push([row("a", 3, 4), row("b", 3, 4), row("c", 12, 13)])
    session = opened(sd.source("s").tumbling_window(10).aggregate(total=sd.sum(lambda e: 1 // e.v)))
    with pytest.raises(UserCodeError, match=r"(?s)ZeroDivisionError.*window_aggregate_1, event 'b'"):
        session.push([row("a", 3, 4), row("b", 3, 4, 0)])
    with pytest.raises(UserCodeError, match=r"(?s)TypeError.*window \[0, 10\)"):
        opened(counted()).push([row("a", 3, 4, "text")])
    with pytest.raises(UserCodeError, match=r"(?s)OverflowError.*window \[0, 10\)"):
        opened(sd.source("s").tumbling_window(10).aggregate(sd.avg(lambda e: e.v))).push([row("a", 3, 4, 10**400)])


def test_a_where_that_leaves_all_rows_out_leaves_the_window() -> None:
    query = (
        sd.source("s")
        .tumbling_window(10)
        .aggregate(n=sd.count(where=lambda e: e.v > 9), total=sd.sum(lambda e: e.v, where=lambda e: e.v > 9))
    )
    (only,) = opened(query).push([row("a", 3, 4)])
    assert only.payload == {"n": 0, "total": None}


def test_windows_over_windows_agree_with_the_reference() -> None:
    inner = sd.source("s").hopping_window(6, 2).aggregate(top=sd.max(lambda e: e.v))
    query = inner.tumbling_window(8).aggregate(n=sd.count(), total=sd.sum(lambda e: e.top), mean=sd.avg(lambda e: e.top))
    events = [row("a", 1, 9, 2), row("b", 1, 9, 2.0), Retract("a", 1, 9, 1), row("c", 4, 5, 2.5), Retract("b", 1, 9, 6), Cti(30)]
    for size in (1, 2, len(events)):
        session = opened(query)
        out = [event for start in range(0, len(events), size) for event in session.push(events[start : start + size])]
        rows = sd.CHT.from_events(out + session.close())
        assert rows == query.run({"s": sd.from_events(events)}, engine="reference").cht()


def test_a_window_without_aggregates_shows_its_key() -> None:
    query = sd.source("s").group_by("k").tumbling_window(10).aggregate(lambda w: w.key)
    assert windows_of(query).kind == "window (columnar)"
    assert [event.payload for event in opened(query).push([row("a", 3, 4, k="x"), row("b", 3, 4, k="y")])] == ["x", "y"]


def test_state_bytes_stay_bounded() -> None:
    session = opened(sd.source("s").group_by("k").hopping_window(10, 5).aggregate(n=sd.count(), total=sd.sum(lambda e: e.v)))
    sizes = []
    for turn in range(40):
        session.push([row(f"{turn}.{k}", 5 * turn, 5 * turn + 7, 0.1, k) for k in range(50)] + [Cti(5 * turn)])
        sizes.append(stats(session)["state_bytes"])
    assert 150 * 8 < max(sizes[10:]) < 1.05 * min(sizes[10:])


def test_it_is_made_for_its_node() -> None:
    (operator,) = lower(counted().plan()).operators
    assert isinstance(operator, ColumnarWindowOperator)
