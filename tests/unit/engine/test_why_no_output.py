"""`why_no_output`: what it names is what holds the output back, and doing what it says brings the output."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, TypeAlias

import pytest

import streamdsl as sd
from tests.laws.compositions import composition
from tests.laws.modules import Ends

Stream: TypeAlias = "sd.Stream[Any]"
S: Stream = sd.source("s")
T: Stream = sd.source("t")
COUNT = {"n": sd.count()}


def row(id: int, le: int, re: int | None = None, v: int = 1) -> sd.Insert[Any]:
    return sd.Insert(id, le, le + 1 if re is None else re, {"k": "a", "v": v})


def pushed(query: Stream, emit: Any, **pushes: list[Any]) -> Any:
    session = query.open(emit)
    for source, events in pushes.items():
        session.push(events, source=source)
    return session


def reason(query: Stream, emit: Any = "speculative", **pushes: list[Any]) -> str:
    return pushed(query, emit, **pushes).why_no_output() or ""


def inserts(events: list[Any]) -> int:
    return sum(isinstance(event, sd.Insert) for event in events)


def test_nothing_has_come() -> None:
    assert reason(S.where(lambda e: e.v > 1)) == "no events yet, and no CTI: source 's' has got nothing"


def test_no_cti_has_come() -> None:
    session = pushed(S.tumbling_window(10).aggregate(**COUNT), "final", s=[row(1, 3)])
    assert "source 's' has sent no CTI yet" in session.why_no_output()
    assert 'emit="final" holds back 1 row, of which the first ends at 10' in session.why_no_output()
    assert inserts(session.push([sd.Cti(10)])) == 1
    assert session.why_no_output() is None


def test_a_policy_of_progress_is_a_remedy_for_no_cti() -> None:
    ordered = sd.source("s", progress=sd.Progress.ordered())
    assert reason(S, s=[row(1, 3)]) != ""
    assert reason(ordered, s=[row(1, 3)]) == ""


@pytest.mark.parametrize("of", [S.union, lambda t: S.join(t, on="k"), lambda t: S.left_join(t, on="k")])
def test_an_idle_second_source_is_named_with_how_far_both_are(of: Callable[[Stream], Stream]) -> None:
    session = pushed(of(T), "final", s=[row(1, 3), sd.Cti(27)], t=[row(1, 3), sd.Cti(2)])
    told = session.why_no_output()
    assert "source 't' has only reached the CTI 2, while 's' is at 27" in told
    assert "push([sd.Cti(time)], source='t')" in told
    assert inserts(session.push([sd.Cti(27)], source="t")) > 0
    assert session.why_no_output() is None


def test_an_idle_source_and_the_window_above_it_are_both_named() -> None:
    session = pushed(S.union(T).tumbling_window(10).aggregate(**COUNT), "final", s=[row(1, 3), sd.Cti(27)], t=[sd.Cti(8)])
    told = session.why_no_output()
    assert "window_aggregate_1 has got the CTI 8, but is settled only up to 0: its window [0, 10) has not ended" in told
    assert "source 't' has only reached the CTI 8, while 's' is at 27" in told
    assert inserts(session.push([sd.Cti(20)], source="t")) == 1


def test_a_window_that_has_not_ended() -> None:
    session = S.tumbling_window(10).aggregate(**COUNT).open("watermark")
    assert session.push([row(1, 3), sd.Cti(7)]) == [sd.Cti(0)]
    told = session.why_no_output() or ""
    assert "window_aggregate_1" in told
    assert "7" in told
    assert "holds back its windows from 0 on" in told or "its window [0, 10) has not ended" in told
    assert inserts(session.push([sd.Cti(10)])) == 1
    assert session.why_no_output() is None


def test_final_rows_wait_until_they_cannot_change() -> None:
    session = pushed(S, "final", s=[row(1, 3, 100), sd.Cti(75)])
    assert session.why_no_output() == (
        "emit=\"final\" holds back 1 row, of which the first ends at 100; source 's' has only reached the CTI 75"
    )
    assert inserts(session.push([sd.Cti(100)])) == 0
    assert inserts(session.push([sd.Cti(101)])) == 1


def test_a_final_row_without_end_waits_for_the_close() -> None:
    session = pushed(S, "final", s=[row(1, 3, sd.INFINITY), sd.Cti(75)])
    assert "1 row without end until the session is closed (hint: clip_duration(d) ends rows)" in session.why_no_output()
    assert inserts(pushed(S.clip_duration(9), "final", s=[row(1, 3, sd.INFINITY)]).push([sd.Cti(75)])) == 1
    assert inserts(session.close()) == 1
    assert session.why_no_output() is None


def test_a_filter_that_lets_nothing_pass_is_named() -> None:
    query = S.where(lambda e: e.v > 0).where(lambda e: e.v > 5).tumbling_window(10).aggregate(**COUNT)
    session = pushed(query, "speculative", s=[row(1, 3), row(2, 4), sd.Cti(10)])
    assert session.why_no_output() == "where_2 has let none of 2 rows pass: e.v > 5"
    session.push([row(3, 12, v=9), sd.Cti(20)])
    assert session.why_no_output() is None


def test_a_source_that_drops_everything_is_named() -> None:
    dropping: Stream = sd.source("s", on_violation="drop")
    session = pushed(dropping.shift(1), "speculative", s=[sd.Cti(9), row(1, 3), row(2, 4)])
    told = "source 's' has dropped its 2 events, which broke its CTI: session.rejected() lists them"
    assert session.why_no_output() == told
    assert len(session.rejected()) == 2
    session.push([row(3, 10), sd.Cti(11)])
    assert session.why_no_output() is None


def test_a_count_window_names_the_group_that_waits() -> None:
    def count(**policy: Any) -> Stream:
        return S.group_by("k").count_window(3, **policy).aggregate(**COUNT)

    busy = [sd.Insert(i, i, i + 1, {"k": "b", "v": 1}) for i in range(40, 70)]
    events = [row(1, 3), row(2, 4), *busy, sd.Cti(70)]
    told = reason(count(), s=events)
    assert (
        "settled only up to 3: in group 'a' count(3, by=start) waits for later rows (hint: output=sd.Output.POINT_AT_END)" in told
    )
    assert reason(count(output=sd.Output.POINT_AT_END), s=events) == ""


def test_a_session_that_goes_on() -> None:
    events = [row(i, i) for i in range(90)]
    told = reason(S.session_window(5).aggregate(**COUNT), s=[*events, sd.Cti(90)])
    assert "settled only up to 0: a session goes on (hint: max_duration=... cuts it)" in told
    grouped = reason(S.group_by("k").session_window(5).aggregate(**COUNT), s=[*events, sd.Cti(90)])
    assert "settled only up to 0: in group 'a' a session goes on" in grouped
    cut = reason(S.session_window(5, max_duration=20).aggregate(**COUNT), s=[*events, sd.Cti(90)])
    assert "settled only up to 80" in cut


def test_a_module_that_sees_ends() -> None:
    def ends(**policy: Any) -> Stream:
        return S.tumbling_window(10, **policy).aggregate(Ends(), lambda e: e.v)

    events = [row(1, 3, sd.INFINITY), sd.Cti(70)]
    told = reason(ends(), s=events)
    assert "settled only up to 0: its module sees ends beyond the window, and a row's may still change" in told
    assert "(hint: clip=sd.Clip.RIGHT)" in told
    assert reason(ends(clip=sd.Clip.RIGHT), s=events) == ""
    assert "its window [70, 80) has not ended" in reason(ends(), s=[row(1, 3), sd.Cti(75)])


def test_lifetimes_that_no_cti_passes() -> None:
    events = [row(1, 3), sd.Cti(70)]
    assert reason(S.alter_lifetime(lambda e, life: life.le + 1, 5), s=events).startswith("alter_lifetime_1 reads RE or computes")
    assert reason(S.where(lambda e, life: life.re > 1), s=events).startswith("where_1 reads RE")
    assert reason(S.shift(-5), s=events) == ""


def test_times_are_shown_as_dates_where_they_are_dates() -> None:
    told = reason(sd.source("s", unit="s"), "final", s=[row(1, 3, 100), sd.Cti(75)])
    assert "of which the first ends at 1970-01-01T00:01:40Z" in told


def test_a_session_that_has_failed_or_is_closed_has_no_reason() -> None:
    session = S.select(lambda e: 1 // e.v).open()
    with pytest.raises(sd.errors.UserCodeError):
        session.push([row(1, 3, v=0)])
    assert session.why_no_output() is None


@pytest.mark.parametrize("seed", range(120))
def test_no_reason_means_that_the_cti_follows_and_a_reason_that_it_does_not(seed: int) -> None:
    _, query = composition(Random(seed))
    session = query.open()
    out = []
    for source in session.sources:
        out += session.push([row(1, 0, 5), row(2, 2, 7, v=2)], source=source)
    for source in session.sources:
        out += session.push([sd.Cti(1000)], source=source)
    reached = max((event.time for event in out if isinstance(event, sd.Cti)), default=sd.MIN_TIME)
    told = session.why_no_output()
    if told is None:
        assert reached >= 1000 - 50
    else:
        behind = [each["output_cti"] < each["input_cti"] for label, each in session.stats().items() if label in told]
        assert any(behind) or "has let none" in told
        assert [label for label in session.stats() if label in told], told


def test_rows_that_wait_for_a_while_are_told_with_the_time_at_which_they_go() -> None:
    session = sd.source("s").open(emit=sd.emit.Emit(hold=5))
    session.push([sd.Insert("a", 3, 20, "x"), sd.Insert("b", 4, 20, "y")])
    assert session.why_no_output() == (
        "sd.emit.Emit(hold=...) holds back 2 rows, the first until an event or a CTI of the input reaches 8; "
        "source 's' has sent no CTI yet; give it one, or a progress policy (progress=sd.Progress.slack(...))"
    )
    assert len(session.push([sd.point("c", 8, "z")])) == 1


def test_an_as_of_join_that_looks_forward_waits_for_the_right_row() -> None:
    session = sd.source("a").asof_join(sd.source("b"), direction="forward").open()
    session.push([sd.point("x", 7, "x"), sd.Cti(20)], source="a")
    session.push([sd.Cti(20)], source="b")
    why = str(session.why_no_output())
    assert "asof_join_1 has got the CTI 20, but the left row at 7 may still have a nearer right row" in why
    assert "tolerance" in why
