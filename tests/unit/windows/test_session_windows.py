"""Session windows as users meet them, and what users of other engines found wrong with theirs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import QueryError, TimestampViolation, UnboundedOutputError
from streamdsl.plan.node import Windowed
from streamdsl.temporal import INFINITY, Cti, Event, Insert, Lifetime, Retract
from streamdsl.windows import Session

Stream = sd.Stream[Any]


def visit(id: str, le: int, re: int, user: str = "ann") -> Insert[dict[str, str]]:
    return Insert(id, le, re, {"user": user})


COUNT = sd.source("s").session_window(5).aggregate(n=sd.count())
PER_USER = sd.source("s").group_by(lambda e: e.user).session_window(5).aggregate(n=sd.count())


def shown(events: Iterable[Event[Any]]) -> list[Any]:
    """Return what events say, without ids."""
    found: list[Any] = []
    for event in events:
        if isinstance(event, Cti):
            found.append(event.time)
        elif isinstance(event, Retract):
            found.append((event.le, event.re, event.re_new))
        else:
            found.append((event.le, event.re, tuple(event.payload.values())))
    return found


# How a query is written.


def spec(query: Stream) -> Session:
    (node,) = (node for node in query.plan().walk() if isinstance(node, Windowed))
    assert isinstance(node.windows, Session)
    return node.windows


def test_gaps_are_durations() -> None:
    calendar = sd.source("s", unit="s").session_window("10m", timedelta(hours=2)).aggregate(n=sd.count())
    assert spec(calendar) == Session(600, 7200)
    assert spec(sd.source("s").session_window("10m").aggregate(n=sd.count())) == Session(600_000_000)
    assert spec(COUNT) == Session(5)


@pytest.mark.parametrize(("gap", "longest"), [(0, None), ("-1s", None), (5, 0)])
def test_durations_are_positive(gap: Any, longest: Any) -> None:
    with pytest.raises(QueryError, match=r"a session's (gap|max_duration) is a positive duration, not -?\d+\nHint: "):
        sd.source("s").session_window(gap, longest)


def test_explain_shows_gap_and_longest_duration() -> None:
    text = sd.source("s").session_window(5, max_duration=60).aggregate(n=sd.count()).explain()
    assert text.startswith("window_aggregate_1 session(5, max_duration=60), ")
    assert "<window (framed)>" in text


# Leaks: sessions, keys and state of sessions that are over are freed.


def state(session: Any) -> tuple[int, int]:
    (figures,) = (f for label, f in session.stats().items() if label.startswith("window"))
    return figures["windows"], figures["events"]


def test_sessions_that_are_over_are_freed() -> None:
    session = PER_USER.open()
    for day in range(50):
        session.push([visit(f"{day} {i}", day * 100 + i, day * 100 + i + 1, f"user {day} {i}") for i in range(20)])
        assert state(session) == (20, 20)
        session.push([Cti(day * 100 + 90)])
        assert state(session) == (0, 0)


def test_a_session_that_goes_on_keeps_its_events_and_one_that_is_over_does_not() -> None:
    session = COUNT.open()
    session.push([visit("a", 0, 1), visit("b", 10, 11), Cti(12)])
    assert state(session) == (1, 1)
    session.push([Cti(15)])
    assert state(session) == (1, 1), "an event at 15 joins"
    session.push([Cti(16)])
    assert state(session) == (0, 0)


def test_a_session_without_pause_holds_only_what_its_last_window_needs_if_it_is_cut() -> None:
    session = sd.source("s").session_window(5, 20).aggregate(n=sd.count()).open()
    for time in range(0, 1000, 2):
        session.push([visit(f"{time}", time, time + 2), Cti(time)])
        windows, events = state(session)
        assert windows == 1
        assert events <= 10, "one every other tick of a window of 20"


def test_what_a_cut_session_has_forgotten_still_holds_it_together() -> None:
    session = sd.source("s").session_window(100, 10).aggregate(n=sd.count()).open()
    session.push([visit("a", 3, 5), Cti(17)])
    assert state(session) == (0, 0)
    assert shown(session.push([visit("b", 20, 21)])) == [(13, 23, (1,))], "cut from 3 on"
    assert shown(session.push([Retract("b", 20, 21, 20)])) == [(13, 23, 13)]
    assert shown(session.push([visit("c", 104, 105), visit("d", 300, 301)])) == [(103, 113, (1,)), (300, 310, (1,))]


# Results: corrected with retractions, one per session at the end, closed by time and not by the next event.


def test_a_merge_takes_back_both_results() -> None:
    session = COUNT.open()
    assert shown(session.push([visit("a", 0, 1), visit("b", 10, 11)])) == [(0, 6, (1,)), (10, 16, (1,))]
    assert shown(session.push([visit("late", 5, 6)])) == [(0, 6, 0), (10, 16, 10), (0, 16, (3,))]


def test_a_longer_session_with_the_same_result_is_lengthened_and_not_replaced() -> None:
    session = sd.source("s").session_window(5).aggregate(user=sd.max(lambda e: e.user)).open()
    session.push([visit("a", 0, 1)])
    assert shown(session.push([visit("b", 4, 5)])) == [(0, 6, 10)]
    assert shown(session.push([Retract("b", 4, 5, 4)])) == [(0, 10, 6)]


def test_one_row_per_session_when_it_is_over() -> None:
    session = COUNT.open(emit="final")
    assert session.push([visit("a", 0, 1), visit("b", 4, 5), visit("c", 3, 4), Cti(9)]) == [Cti(0)]
    assert shown(session.push([Cti(11)])) == [(0, 10, (3,)), 11]
    assert shown(session.close()) == [INFINITY]


def test_a_quiet_key_is_closed_by_a_cti_alone() -> None:
    session = PER_USER.open(emit="final")
    session.push([visit("a", 0, 1, "quiet"), visit("b", 40, 41, "busy")])
    assert shown(session.push([Cti(30)])) == [(0, 6, ("quiet", 1)), 30]


def test_under_watermarks_a_session_that_grows_again_is_taken_back() -> None:
    session = COUNT.open(emit="watermark")
    assert session.push([visit("a", 0, 1)]) == []
    assert shown(session.push([visit("b", 6, 7)])) == [(0, 6, (1,))], "the watermark has passed its end"
    assert shown(session.push([visit("c", 3, 4)])) == [(0, 6, 0)], "it goes on to 12"
    assert shown(session.push([Cti(12)])) == [(0, 12, (3,)), 12]


# What modules see, and where sessions lie.


class Span(sd.TimeSensitiveUDA[Any, tuple[int, ...]]):
    """The window, and where its members begin."""

    def compute_result(self, events: Sequence[sd.IntervalEvent[Any]], window: sd.WindowDescriptor) -> tuple[int, ...]:
        return (window.start_time, window.end_time, *sorted(event.start_time for event in events))


def test_a_module_sees_the_session_that_it_is_computed_for() -> None:
    rows = [(0, 2, "x"), (4, 6, "y"), (30, 31, "z")]
    found = sd.from_rows(rows).session_window(5).aggregate(Span()).run().cht()
    assert [row.payload for row in found] == [(0, 11, 0, 4), (30, 36, 30)]


def test_an_event_is_in_every_cut_that_it_overlaps() -> None:
    found = sd.from_rows([(0, 25, "x"), (27, 28, "y")]).session_window(5, 10).aggregate(Span()).run().cht()
    assert [row.payload for row in found] == [(0, 10, 0), (10, 20, 0), (20, 30, 0, 27)]


def test_a_session_is_counted_from_ends_and_not_from_starts() -> None:
    long = sd.from_rows([(0, 100, "a long call"), (103, 104, "a short one")])
    assert [(row.le, row.re) for row in long.session_window(5).aggregate(n=sd.count()).run().cht()] == [(0, 109)]


@pytest.mark.parametrize("far", [-(10**17), -1, 10**17])
def test_sessions_lie_where_their_events_do_however_far_from_the_epoch(far: int) -> None:
    rows = [(0, 1, "a"), (3, 9, "b"), (13, 14, "c"), (40, 41, "d")]
    query = sd.source("s").session_window(5, 12).aggregate(n=sd.count())
    here = query.run({"s": sd.from_rows(rows)}).cht()
    there = query.run({"s": sd.from_rows([(le + far, re + far, p) for le, re, p in rows])}).cht()
    assert [(row.le + far, row.re + far, row.payload) for row in here] == list(there)


def test_events_at_one_time_share_a_session_whatever_their_order() -> None:
    for rows in itertools.permutations([(3, 4, "b"), (3, 9, "a"), (13, 14, "c"), (3, 3, "never lived")]):
        found = sd.from_rows(rows).session_window(5).aggregate(all=sd.collect(lambda e: e)).run().cht()
        assert [(row.le, row.re, row.payload["all"]) for row in found] == [(3, 19, ["a", "b", "c"])]


# Events without end.


def test_a_session_with_an_event_without_end_has_no_end() -> None:
    found = sd.from_rows([(0, 2, "a"), (4, INFINITY, "b"), (900, 901, "c")]).session_window(5).aggregate(n=sd.count()).run().cht()
    assert [(row.le, row.re, row.payload.n) for row in found] == [(0, INFINITY, 3)]


def test_a_cut_session_without_end_is_refused_with_the_event_and_a_hint_unless_it_is_bounded() -> None:
    query = sd.from_events([Insert("forever", 3, INFINITY, {"v": 1})]).session_window(5, 10).aggregate(n=sd.count())
    with pytest.raises(UnboundedOutputError, match=r"(?s)forever.*session\(5, max_duration=10\).*Hint: .*until"):
        query.run()
    assert [(row.le, row.re) for row in query.run(until=25).cht()] == [(3, 13), (13, 23)]


def test_the_windows_of_a_cut_session_without_end_are_made_as_time_goes_on() -> None:
    session = sd.source("s").session_window(5, 10).aggregate(n=sd.count()).open()
    assert shown(session.push([Insert("forever", 3, INFINITY, {"v": 1})])) == [(3, 13, (1,))]
    assert shown(session.push([Cti(12)])) == [3]
    assert shown(session.push([Cti(30)])) == [(13, 23, (1,)), (23, 33, (1,)), 23]
    assert state(session) == (1, 1)
    assert shown(session.push([Retract("forever", 3, INFINITY, 31)])) == []
    assert shown(session.close()) == [INFINITY]


def test_a_bounded_run_takes_ctis_beyond_the_bound() -> None:
    events = [visit("a", 0, 2), visit("b", 20, 22), Cti(100), visit("c", 200, 201), Cti(300)]
    found = sd.from_events(events).session_window(5).aggregate(n=sd.count()).run(until=10).cht()
    assert [(row.le, row.re) for row in found] == [(0, 7)]


# A session as tests and docs look at it.


def test_describe_and_output_cti() -> None:
    rows = sd.from_rows([(0, 4, "a"), (7, 10, "b"), (20, 24, "c")])
    windowed, cht = rows.session_window(4, 8), rows.run().cht()
    assert [(w, [row.payload for row in members]) for w, members in windowed.describe(cht)] == [
        ((0, 8), ["a", "b"]),
        ((8, 14), ["b"]),
        ((20, 28), ["c"]),
    ]
    assert [windowed.output_cti(cht, c) for c in (6, 8, 13, 14, 21, 28)] == [0, 8, 8, 14, 20, 28]


class Through(sd.TimeSensitiveUDO[Any, Any]):
    """Every event as it is."""

    def compute_result(self, events: Sequence[sd.IntervalEvent[Any]], window: sd.WindowDescriptor) -> Any:
        return events


def test_an_event_that_began_before_a_cut_needs_clipping_where_its_own_stamps_are_kept() -> None:
    rows = sd.from_rows([(0, 15, "a")])
    with pytest.raises(TimestampViolation, match=r"Output\.CLIP"):
        rows.session_window(5, 10, output=sd.Output.UNCHANGED).apply(Through()).run()
    clipped = rows.session_window(5, 10, clip=sd.Clip.LEFT, output=sd.Output.UNCHANGED).apply(Through()).run().cht()
    assert [Lifetime(row.le, row.re) for row in clipped] == [(0, 15), (10, 15)]
