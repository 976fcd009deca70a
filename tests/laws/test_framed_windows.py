"""The law of the framed window operator: after every push the output means what the reference says."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.emit import EmitMode
from streamdsl.engine.buffered.modules import ExtremumAggregate
from streamdsl.engine.lower import lower
from streamdsl.errors import TimestampViolation, UnboundedOutputError, UserCodeError
from streamdsl.temporal import CHT, INFINITY, Cti, Event, Insert, Record, Retract
from streamdsl.testing import assert_cht_equal
from tests.laws.harness import EMITS, check_until, follow, of_pushes
from tests.laws.incremental import IncrementalEnds, IncrementalSpans, TimedIncrementalValues
from tests.laws.modules import Ends, EndsInside, Halves, Latest, Through
from tests.laws.profiles import examples
from tests.laws.test_buffered_windows import (
    Adding,
    Each,
    InOrder,
    Kept,
    Merging,
    Ordered,
    Twice,
    keeping,
)
from tests.laws.test_window_operators import GROUPS, Query, assert_ids_differ, cti_of, pushes, small
from tests.laws.test_window_operators import RESULTS as SUMS

WINDOWS: list[Callable[[Any], Any]] = [
    lambda s: s.snapshot_window(),
    lambda s: s.session_window(1),
    lambda s: s.session_window(3),
    lambda s: s.session_window(20),
    lambda s: s.session_window(2, max_duration=5),
    lambda s: s.session_window(20, max_duration=7),
    lambda s: s.session_window(9, max_duration=30),
    lambda s: s.count_window(1),
    lambda s: s.count_window(2),
    lambda s: s.count_window(3, by="end"),
]
STATES: list[Query] = [
    lambda w: w.aggregate(Kept(), lambda e: e.v),
    lambda w: w.aggregate(kept=Merging().of(lambda e: e.v), some=sd.Agg(Merging(), lambda e: e.v, lambda e: e.k == "a")),
    lambda w: w.aggregate(kept=Kept().of(lambda e: e.v), some=sd.Agg(Kept(), lambda e: e.v, lambda e: e.k == "a"), n=sd.count()),
    lambda w: w.aggregate(adding=Adding().of(lambda e: e.k), kept=Kept().of(lambda e: e.v), low=sd.min(lambda e: e.k)),
]
MANY: list[Query] = [
    lambda w: w.apply(Twice(), lambda e: e.v),
    lambda w: w.apply(Each(), lambda e: e.v),
    lambda w: w.top_k(2, by=lambda e: e.v),
    lambda w: w.top_k(1, by="k", rank=True),
]


def extrema(w: Any) -> sd.Stream[Any]:
    return w.aggregate(n=sd.count(), low=sd.min(lambda e: e.v), high=sd.max(lambda e: e.v))  # type: ignore[no-any-return]


AGGREGATES: list[Query] = [
    *STATES,
    extrema,
    lambda w: w.aggregate(mid=sd.median(lambda e: e.v), total=sd.sum(lambda e: e.v), mean=sd.avg(lambda e: e.v)),
    lambda w: w.aggregate(kinds=sd.count_distinct(lambda e: e.v), all=sd.count_distinct()),
    lambda w: w.aggregate(first=sd.first(lambda e: e.v), last=sd.last(lambda e: e.k), all=sd.collect(lambda e: e.v)),
    lambda w: w.aggregate(low=sd.min(lambda e: e.v, where=lambda e: e.k == "a"), n=sd.count(where=lambda e: e.k == "b")),
    lambda w: w.aggregate(total=sd.sum(lambda e: e.v, where=lambda e: e.k != "a"), high=sd.max(lambda e: e.v)),
    lambda w: w.aggregate(Ordered(), lambda e: e.v),
    lambda w: w.aggregate(InOrder(), lambda e: e.v),
    lambda w: w.aggregate(dev=sd.stddev(lambda e: e.v), total=sd.sum(lambda e: e.v)),
]
RESULTS: list[Query] = [*AGGREGATES, *MANY]


CLIPS = [sd.Clip.NONE, sd.Clip.LEFT, sd.Clip.RIGHT, sd.Clip.FULL]
TIMED_WINDOWS: list[Callable[[Any, sd.Clip], Any]] = [
    lambda s, clip: s.snapshot_window(clip=clip),
    lambda s, clip: s.session_window(1, clip=clip),
    lambda s, clip: s.session_window(20, clip=clip),
    lambda s, clip: s.session_window(3, max_duration=7, clip=clip),
    lambda s, clip: s.count_window(1, clip=clip),
    lambda s, clip: s.count_window(3, clip=clip),
    lambda s, clip: s.count_window(2, by="end", clip=clip),
    lambda s, clip: s.tumbling_window(5, clip=clip),
    lambda s, clip: s.hopping_window(7, 3, offset=-2, clip=clip),
]
ANY_WINDOWS: list[Callable[..., Any]] = [
    lambda s, **how: s.snapshot_window(**how),
    lambda s, **how: s.session_window(1, **how),
    lambda s, **how: s.session_window(3, **how),
    lambda s, **how: s.session_window(20, **how),
    lambda s, **how: s.session_window(3, max_duration=7, **how),
    lambda s, **how: s.count_window(1, **how),
    lambda s, **how: s.count_window(3, **how),
    lambda s, **how: s.count_window(2, by="end", **how),
    lambda s, **how: s.tumbling_window(5, **how),
    lambda s, **how: s.hopping_window(7, 3, offset=-2, **how),
    lambda s, **how: s.hopping_window(3, 8, offset=1, **how),
]
COUNTED = ANY_WINDOWS[5:7]
BOUND_WINDOWS = [window for window in ANY_WINDOWS if window is not ANY_WINDOWS[7]]
OUTPUTS = (sd.Output.UNCHANGED, sd.Output.CLIP, sd.Output.ALIGN, sd.Output.POINT_AT_END)
TIME_BOUND = sd.Output.TIME_BOUND
STAMPING: list[tuple[Any, sd.Output]] = [
    *itertools.product([Through(), IncrementalSpans()], OUTPUTS),
    (Halves(), sd.Output.CLIP),
    (Latest(), sd.Output.CLIP),
]
TIMED: list[Query] = [
    lambda w: w.aggregate(Ends(), lambda e: e.v),
    lambda w: w.aggregate(
        ends=EndsInside().of(lambda e: e.v), some=sd.Agg(Ends(), lambda e: e.v, lambda e: e.k == "a"), n=sd.count()
    ),
    lambda w: w.aggregate(mean=sd.time_weighted_avg(lambda e: e.v), high=sd.max(lambda e: e.v)),
    lambda w: w.aggregate(mean=sd.time_weighted_avg(lambda e: e.v, where=lambda e: e.k == "a"), total=sd.sum(lambda e: e.v)),
    lambda w: w.aggregate(sd.time_weighted_avg(lambda e: e.v)),
]
TIMED_STATES: list[Query] = [
    lambda w: w.aggregate(IncrementalEnds(), lambda e: e.v),
    lambda w: w.aggregate(
        ends=IncrementalEnds().of(lambda e: e.v), some=sd.Agg(TimedIncrementalValues(), lambda e: e.v, lambda e: e.k == "a")
    ),
]


@st.composite
def timed_queries(draw: st.DrawFn) -> sd.Stream[Any]:
    """Queries that see lifetimes."""
    group, window, clip = draw(st.sampled_from(GROUPS)), draw(st.sampled_from(TIMED_WINDOWS)), draw(st.sampled_from(CLIPS))
    result = draw(st.sampled_from([*TIMED, *TIMED_STATES]))
    return group(sd.source("s"), lambda s: result(window(s, clip)))  # type: ignore[no-any-return]


@st.composite
def queries(draw: st.DrawFn, results: list[Query] = RESULTS) -> sd.Stream[Any]:
    group, window, result = draw(st.sampled_from(GROUPS)), draw(st.sampled_from(WINDOWS)), draw(st.sampled_from(results))
    if draw(st.integers(0, 3)) == 3:  # sums alone; those of snapshots have an operator of their own
        window, result = draw(st.sampled_from(WINDOWS[1:])), draw(st.sampled_from(SUMS))
    return group(sd.source("s"), lambda s: result(window(s)))  # type: ignore[no-any-return]


@st.composite
def at_ends(draw: st.DrawFn) -> sd.Stream[Any]:
    """Queries whose results are points at the ends of windows that move."""
    group, clip = draw(st.sampled_from(GROUPS)), draw(st.sampled_from(CLIPS))
    window, result = draw(st.sampled_from(ANY_WINDOWS[:-3])), draw(st.sampled_from([*SUMS, *AGGREGATES, *MANY, *TIMED]))
    return group(sd.source("s"), lambda s: result(window(s, clip=clip, output=sd.Output.POINT_AT_END)))  # type: ignore[no-any-return]


@st.composite
def stamped(draw: st.DrawFn) -> sd.Stream[Any]:
    """Queries with operators that see lifetimes, and give lifetimes of their own."""
    group, clip, (module, output) = draw(st.sampled_from(GROUPS)), draw(st.sampled_from(CLIPS)), draw(st.sampled_from(STAMPING))
    window = draw(st.sampled_from(ANY_WINDOWS))
    return group(sd.source("s"), lambda s: window(s, clip=clip, output=output).apply(module, lambda e: e.v))  # type: ignore[no-any-return]


@st.composite
def time_bound(draw: st.DrawFn) -> sd.Stream[Any]:
    """Queries with operators that are time-bound."""
    group, clip, window = draw(st.sampled_from(GROUPS)), draw(st.sampled_from(CLIPS)), draw(st.sampled_from(BOUND_WINDOWS))
    module: Any = Latest() if window in COUNTED else draw(st.sampled_from([Through(), IncrementalSpans()]))
    return group(sd.source("s"), lambda s: window(s, clip=clip, output=TIME_BOUND).apply(module, lambda e: e.v))  # type: ignore[no-any-return]


@contextmanager
def in_small_parts(data: st.DataObject) -> Iterator[None]:
    """Let what needs many rows happen with few: columns, an index of many pieces, rows in runs, state that is swept often."""
    spare = st.sampled_from([0, 1024])
    with (
        patch("streamdsl.engine.data_driven.sorted_index.PIECE", data.draw(st.sampled_from([1, 2, 512]))),
        patch("streamdsl.engine.ingress._FEW", data.draw(st.sampled_from([0, 16]))),
        patch("streamdsl.engine.data_driven.packing._BITS", data.draw(st.sampled_from([8, 10, 62]))),
        patch("streamdsl.engine.frames.arrangement._SPARE", data.draw(spare)),
        patch("streamdsl.engine.frames.arrangement._FEW", few := data.draw(st.sampled_from([0, 8192]))),
        patch("streamdsl.engine.frames.arrangement._SCANNED", few),
        patch("streamdsl.engine.frames.arrangement._FOUND", few),
        patch("streamdsl.engine.frames.frame._SPARE", data.draw(spare)),
        patch("streamdsl.engine.buffered.runs.SHORT", data.draw(st.sampled_from([0, 256]))),
        keeping(data),
    ):
        yield


@examples(120)
@given(st.one_of(queries(), timed_queries()), st.data(), st.sampled_from(EMITS))
def test_output_means_what_the_reference_says_after_every_push(
    query: sd.Stream[Any], data: st.DataObject, emit: EmitMode
) -> None:
    assert "window (framed)" in [operator.kind for operator in lower(query.plan()).operators]
    stream = data.draw(pushes())
    with in_small_parts(data):
        follow(query, stream, emit)


@st.composite
def dense_pushes(draw: st.DrawFn) -> list[list[Event[Any]]]:
    """Few rows that are moved often, in few places."""
    alive: dict[str, Insert[Any]] = {}
    parts: list[list[Event[Any]]] = [[] for _ in range(draw(st.integers(2, 5)))]
    cti = 0
    for n, part in enumerate(part for part in parts for _ in range(draw(st.integers(1, 3)))):
        movable = [row for row in alive.values() if row.re >= cti]
        what = draw(st.sampled_from(["new", "moved", "moved", "cti"]))
        if what == "cti":
            cti = draw(st.integers(cti, 25))
            part.append(Cti(cti))
        elif what == "moved" and movable:
            old = draw(st.sampled_from(movable))
            ends = [re for re in [old.le, *range(old.le + 1, 27), INFINITY] if re >= cti]
            part.append(Retract(old.id, old.le, old.re, re := draw(st.sampled_from(ends)), old.payload))
            del alive[str(old.id)]
            if re > old.le:
                alive[str(old.id)] = Insert(old.id, old.le, re, old.payload)
        else:
            le = draw(st.integers(cti, 25))
            row = Insert(f"e{n}", le, draw(st.sampled_from([*range(le + 1, 27), INFINITY])), Record(k="a", v=draw(small)))
            alive[f"e{n}"] = row
            part.append(row)
    return parts


@examples(160)
@given(queries([*STATES, extrema]), dense_pushes(), st.sampled_from(["speculative", "watermark"]), st.data())
def test_states_are_those_of_the_members(
    query: sd.Stream[Any], stream: list[list[Event[Any]]], emit: EmitMode, data: st.DataObject
) -> None:
    with keeping(data):
        follow(query, stream, emit)


def sums(w: Any) -> sd.Stream[Any]:
    return w.aggregate(kept=Kept().of(lambda e: e.v), total=sd.sum(lambda e: e.v))  # type: ignore[no-any-return]


@pytest.mark.parametrize("result", [*STATES, extrema, sums], ids=["kept", "merged", "some", "added", "extrema", "sums"])
def test_states_are_those_of_the_members_that_stay(result: Query) -> None:
    """Of a window that stays a row leaves, the least and not, and comes back."""
    rows = [Insert(f"e{n}", n, n + 30, Record(k="a", v=v)) for n, v in enumerate([3, 1, 2, 2])]
    gone = [Retract(row.id, row.le, row.re, row.le, row.payload) for row in rows[1:3]]
    query = result(sd.source("s").session_window(20))
    with (
        patch.object(ExtremumAggregate, "least_rows", 0),
        patch("streamdsl.engine.operators.framed_windows.LONG", 0),
        patch("streamdsl.engine.operators.framed_windows._MANY_MORE", 0),
    ):
        follow(query, [rows, gone[:1], gone[1:], [Insert("e9", 4, 34, Record(k="a", v=1))]], "speculative")


@examples(150)
@given(queries(MANY), dense_pushes(), st.sampled_from(["speculative", "watermark"]))
def test_results_of_operators_end_where_their_windows_do(
    query: sd.Stream[Any], stream: list[list[Event[Any]]], emit: EmitMode
) -> None:
    follow(query, stream, emit)


@examples(120)
@given(st.one_of(queries(), queries(MANY), stamped(), time_bound()), dense_pushes())
def test_no_two_results_have_one_id(query: sd.Stream[Any], stream: list[list[Event[Any]]]) -> None:
    assert_ids_differ(query, stream)


def test_what_single_rows_have_kept_does_not_stand_for_what_columns_bring() -> None:
    query = sd.source("s").session_window(10).aggregate(Kept(), lambda e: e.v)
    rows = [Insert(f"e{n}", le, le + 1, Record(k="a", v=n)) for n, le in enumerate([-70, *range(40), 70])]
    session = query.open(emit="watermark")
    out = [event for part in (rows[:1], rows[1:2], rows[2:], [Cti(100)]) for event in session.push(part)]
    assert_cht_equal(CHT.from_events(out), denote(query.plan(), {"s": CHT.from_events(rows)}))


@examples(80)
@given(st.one_of(queries(), timed_queries(), at_ends(), stamped(), time_bound()), st.data())
def test_it_gives_what_the_reference_gives(query: sd.Stream[Any], data: st.DataObject) -> None:
    stream = [event for part in data.draw(pushes(failing=False)) for event in part]
    with in_small_parts(data):
        try:
            found = query.run({"s": sd.from_events(stream)}).cht()
        except (UserCodeError, UnboundedOutputError, TimestampViolation):
            return  # a session raises for what is later retracted too; a row without end fills windows for ever
        assert_cht_equal(found, denote(query.plan(), {"s": CHT.from_events(stream)}))


@examples(60)
@given(st.one_of(queries(), timed_queries()), st.data())
def test_a_bounded_run_makes_the_windows_that_end_by_then(query: sd.Stream[Any], data: st.DataObject) -> None:
    stream, until = data.draw(pushes(failing=False)), data.draw(st.integers(-15, 40))
    with in_small_parts(data), suppress(UserCodeError):  # a session raises for what is later retracted too
        check_until(query, of_pushes(stream), max(until, cti_of(stream)))


@examples(100)
@given(time_bound(), st.data(), st.integers(-15, 40))
def test_results_of_time_bound_operators_in_a_bounded_run_are_those_of_the_reference(
    query: sd.Stream[Any], data: st.DataObject, until: int
) -> None:
    stream = [event for part in data.draw(pushes(failing=False)) for event in part]
    until = max(until, cti_of([stream]))
    with in_small_parts(data):
        found = query.run({"s": sd.from_events(stream)}, until=until).cht()
    assert_cht_equal(found, denote(query.plan(), {"s": CHT.from_events(stream)}, until))


@examples(120)
@given(st.one_of(at_ends(), stamped(), time_bound()), st.data(), st.sampled_from(EMITS))
def test_results_that_do_not_last_as_long_as_their_windows_are_those_of_the_reference(
    query: sd.Stream[Any], data: st.DataObject, emit: EmitMode
) -> None:
    kinds = {operator.kind for operator in lower(query.plan()).operators}
    assert kinds & {"window (framed)", "window (columnar)"}
    stream = data.draw(st.one_of(pushes(failing=False), dense_pushes()))
    with in_small_parts(data):
        follow(query, stream, emit)


def kept_of(windowed: Any) -> sd.Stream[Any]:
    """Return a query with a state for each window."""
    return windowed.aggregate(kept=Kept().of(lambda e: e.v))  # type: ignore[no-any-return]


def rows(*lifetimes: tuple[int, int]) -> list[Event[Any]]:
    """Return rows with their LE as payload and id."""
    return [Insert(le, le, re, Record(v=le)) for le, re in lifetimes]


def moved(le: int, re: int, re_new: int) -> Retract:
    """Return what ends such a row elsewhere."""
    return Retract(le, le, re, re_new, Record(v=le))


def test_a_partition_that_comes_back_is_new_though_its_rows_are_not_swept_yet() -> None:
    query = sd.source("s").group_by("v").snapshot_window().aggregate(mean=sd.time_weighted_avg(lambda e: e.v))
    gone, other, back = Insert("a", 0, 5, Record(v=1)), Insert("b", 3, 24, Record(v=2)), Insert("a", 25, INFINITY, Record(v=1))
    follow(query, [[gone, other, Cti(20)], [back, Cti(25)], [Cti(30)]], "watermark")


def test_a_partition_that_only_a_retracted_result_is_known_of_holds_no_cti_back() -> None:
    query = sd.source("s").group_by("v").snapshot_window().aggregate(mean=sd.time_weighted_avg(lambda e: e.v))
    gone, stays, other = (
        Insert("a", -3, 7, Record(v=1)),
        Insert("b", -2, 1, Record(v=1)),
        Insert("c", 5, 6, Record(v=2)),
    )
    parts: list[list[Event[Any]]] = [[gone, stays], [Retract("a", -3, 7, -3, Record(v=1)), other, Cti(5)]]
    follow(query, parts, "speculative")


def test_a_window_that_is_split_before_it_is_out_has_no_end_from_before() -> None:
    parts: list[list[Event[Any]]] = [
        rows((12, 24), (7, 21), (8, 15)),
        [moved(8, 15, 13), *rows((19, INFINITY))],
        [moved(12, 24, 15), *rows((20, 21))],
    ]
    follow(kept_of(sd.source("s").snapshot_window()), parts, "speculative")


def test_new_windows_between_others_do_not_hide_who_leaves_these() -> None:
    parts: list[list[Event[Any]]] = [rows((20, 23), (8, 15), (22, 99)), [*rows((15, 19), (11, 20)), moved(20, 23, 90)]]
    follow(kept_of(sd.source("s").count_window(2)), parts, "speculative")


def test_a_result_that_waits_again_has_no_state() -> None:
    parts: list[list[Event[Any]]] = [
        rows((5, 7), (15, 25)),
        [moved(5, 7, 16)],
        [moved(5, 16, 9), moved(15, 25, 16), *rows((6, 12))],
    ]
    follow(kept_of(sd.source("s").group_by(lambda e: e.v < 10).session_window(3)), parts, "watermark")


def test_windows_of_modules_that_see_ends_are_out_before_their_rows_are_let_go() -> None:
    first, again = rows((-2, 0)), moved(-2, 0, -1)
    query = sd.source("s").snapshot_window().aggregate(Ends(), lambda e: e.v)
    follow(query, [[*first, Cti(-1), again, Cti(0)]], "final")


def test_a_value_counts_once_where_one_that_lasts_began_before_another() -> None:
    query = sd.source("s").snapshot_window().aggregate(n=sd.count_distinct(lambda e: e.v))
    events = [Insert(le, le, re, Record(v=1)) for le, re in ((0, 100), (20, 30), (50, 60))]
    assert_cht_equal(query.run({"s": sd.from_events(events)}).cht(), denote(query.plan(), {"s": CHT.from_events(events)}))


def test_closed_windows_of_a_session_that_is_cut_stay_as_they_are_though_their_rows_go_on() -> None:
    query = sd.source("s").session_window(2, max_duration=5).aggregate(n=sd.count())
    parts: list[list[Event[Any]]] = [[*rows((-7, -2)), Cti(-2)], [moved(-7, -2, 7)], [Cti(3)], [Cti(20)]]
    with patch("streamdsl.engine.frames.arrangement._SPARE", 0), patch("streamdsl.engine.frames.frame._SPARE", 0):
        follow(query, parts, "final")


def test_windows_of_a_session_that_is_cut_begin_as_time_goes_on() -> None:
    query = sd.source("s").session_window(2, max_duration=5).aggregate(n=sd.count())
    parts: list[list[Event[Any]]] = [[*rows((0, 30))], [Cti(12)], [Cti(20)], [Cti(40)]]
    follow(query, parts, "speculative")


def test_a_single_row_that_joins_sessions_brings_together_what_is_kept_of_them() -> None:
    query = sd.source("s").session_window(10).aggregate(low=sd.min(lambda e: e.v), high=sd.max(lambda e: e.v))
    follow(query, [rows((1, 2)), rows((15, 16)), rows((8, 9)), rows((9, 11))], "speculative")


def test_a_session_that_is_cut_goes_on_from_its_start_whose_rows_are_forgotten() -> None:
    query = sd.source("s").session_window(20, max_duration=5).aggregate(n=sd.count())
    parts: list[list[Event[Any]]] = [[*rows((0, 2)), Cti(8)], rows((11, 30)), [moved(11, 30, 12)], [*rows((34, 35)), Cti(40)]]
    with patch("streamdsl.engine.frames.arrangement._SPARE", 0):
        follow(query, parts, "speculative")


def test_a_window_that_ends_where_a_row_starts_stays_when_that_row_ends_elsewhere() -> None:
    query = sd.source("s").group_by("k").snapshot_window().aggregate(ends=Ends().of(lambda e: e.v))
    row = Record(k="a", v=1)
    parts: list[list[Event[Any]]] = [
        [Insert("e0", 0, 1, row), Cti(1), Insert("e1", 1, INFINITY, row)],
        [Retract("e1", 1, INFINITY, 9, row), Cti(5)],
        [Retract("e1", 1, 9, INFINITY, row)],
    ]
    with patch("streamdsl.engine.frames.arrangement._SPARE", 0):
        follow(query, parts, "watermark")


@pytest.mark.parametrize("window", range(4))
def test_single_rows_that_come_together_all_have_places_among_windows(window: int) -> None:
    group = sd.source("s").group_by("k")
    windows = (group.count_window(2), group.session_window(20), group.snapshot_window(), group.snapshot_window())
    value: Any = sd.count() if window == 2 else sd.max(lambda e: e.v)
    places = [(-100, "b"), (6, "a"), (64, "b"), (-72, "b"), (90, "a")]
    far: list[Event[Any]] = [Insert(n, le, le + 9, Record(k=k, v=n)) for n, (le, k) in enumerate(places)]
    with patch("streamdsl.engine.data_driven.packing._BITS", 8):  # so that times lie far apart
        for size in range(2, 6):
            le, k = places[size - 1]
            again: Event[Any] = Retract(size - 1, le, le + 9, le + 8, Record(k=k, v=size - 1))
            follow(windows[window].aggregate(m=value), [[*far[:size], again]], "speculative")
