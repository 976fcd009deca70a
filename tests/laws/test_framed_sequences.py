"""The law of window sequences in columns: after every push the output means what the reference says."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl import astral
from streamdsl.denote import denote
from streamdsl.emit import EmitMode
from streamdsl.engine.lower import lower
from streamdsl.engine.operators.framed_windows import FramedWindowOperator
from streamdsl.temporal import CHT, Cti, Event, Insert, Record, Retract
from streamdsl.testing import assert_cht_equal
from streamdsl.testing.strategies import chts, physical_streams
from tests.laws.harness import EMITS, follow
from tests.laws.operators import SEQUENCES, Kind
from tests.laws.profiles import examples
from tests.laws.test_framed_windows import RESULTS, in_small_parts
from tests.laws.test_sequences import ENDLESS
from tests.laws.test_window_operators import GROUPS, Query, assert_ids_differ, pushes, small
from tests.laws.test_window_operators import RESULTS as SUMS


@st.composite
def linear(draw: st.DrawFn) -> Any:
    """Sequences whose bounds rise evenly; they never rise faster than windows come."""
    rate = draw(st.integers(1, 5))
    bounds = (draw(st.integers(0, 6)), draw(st.integers(-6, 6))), (draw(st.integers(0, rate)), draw(st.integers(-2, 6)))
    return draw(
        st.sampled_from(
            [
                astral.linear(*bounds, rate, draw(st.sampled_from(["time", "position"]))),
                astral.five_uplet(bounds[0][1], bounds[1][1], rate, bounds[0][0], bounds[1][0]),
                astral.fixed(bounds[0][1], bounds[1][1], draw(st.sampled_from(["time", "position"]))),
                astral.range_slide(rate + bounds[1][0], rate, draw(st.booleans())),
                astral.range_slide(rate),
                astral.rows_slide(rate, bounds[1][0] + 1, draw(st.booleans())),
                astral.last_n_every(rate, bounds[1][0] + 1),
            ]
        )
    )


@st.composite
def kinds(draw: st.DrawFn) -> Kind:
    start = draw(st.sampled_from([None, -4, 0, 3]))
    sequence = draw(linear())
    kind: Kind = draw(st.sampled_from([lambda s: s.windows(sequence, start), *SEQUENCES, *ENDLESS]))
    return kind


@st.composite
def queries(draw: st.DrawFn) -> sd.Stream[Any]:
    group, window = draw(st.sampled_from(GROUPS)), draw(st.one_of(kinds(), linear().map(_from_the_first_row)))
    result: Query = draw(st.sampled_from([*RESULTS, *SUMS]))
    return group(sd.source("s"), lambda s: result(window(s)))  # type: ignore[no-any-return]


def _from_the_first_row(sequence: Any) -> Kind:
    return lambda s: s.windows(sequence)


@examples(120)
@given(queries(), st.data(), st.sampled_from(EMITS))
def test_output_means_what_the_reference_says_after_every_push(
    query: sd.Stream[Any], data: st.DataObject, emit: EmitMode
) -> None:
    assert "window (framed)" in [operator.kind for operator in lower(query.plan()).operators]
    stream = data.draw(pushes())
    with in_small_parts(data):
        follow(query, stream, emit)


@st.composite
def crowded(draw: st.DrawFn) -> list[list[Any]]:
    """Many rows that start together: windows by position then begin further back than earlier ones."""
    rows = st.builds(lambda k, v: Record(k=k, v=v), st.sampled_from("ab"), small)
    stream = draw(physical_streams(chts(rows, 25, -2, 4, unending=False)))
    size = draw(st.sampled_from([3, 10, 40]))
    return [stream[at : at + size] for at in range(0, len(stream), size)]


@examples(80)
@given(queries(), crowded(), st.data(), st.sampled_from(EMITS))
def test_rows_that_start_together_come_together(
    query: sd.Stream[Any], stream: list[list[Any]], data: st.DataObject, emit: EmitMode
) -> None:
    with in_small_parts(data):
        follow(query, stream, emit)


def test_a_window_by_position_that_begins_before_the_first_row_is_as_long_as_others() -> None:
    last = sd.source("s").windows(astral.fixed(-2, 2, "position")).aggregate(all=sd.collect(lambda e: e.v))
    starts = [[0], [-1, -1], [0]]
    stream = [[sd.Insert((n, m), le, 5, Record(v=le)) for m, le in enumerate(part)] for n, part in enumerate(starts)]
    follow(last, stream, "speculative")


@examples(100)
@given(queries(), crowded(), st.data(), st.integers(-5, 40))
def test_it_gives_what_the_reference_gives(
    query: sd.Stream[Any], parts: list[list[Any]], data: st.DataObject, until: int
) -> None:
    stream = [event for part in parts for event in part]
    expected = denote(query.plan(), {"s": CHT.from_events(stream)}, until=until)
    with in_small_parts(data):
        assert_cht_equal(query.run({"s": sd.from_events(stream)}, until=until).cht(), expected)


@examples(60)
@given(queries(), crowded(), st.data())
def test_no_two_results_have_one_id(query: sd.Stream[Any], stream: list[list[Any]], data: st.DataObject) -> None:
    with in_small_parts(data):
        assert_ids_differ(query, stream)


def test_no_two_results_have_one_id_though_a_window_goes_and_comes_back() -> None:
    rows = [Insert(n, le, le + 1, Record(k="a", v=n)) for n, le in enumerate([1, 2, 1, 2])]
    gone = [Retract(row.id, row.le, row.re, row.le, row.payload) for row in rows[:2]]
    for ws in (astral.range_slide(10, 5), astral.rows_slide(2, 1)):
        query = sd.source("s").windows(ws).aggregate(all=sd.collect(lambda e: e.v))
        assert_ids_differ(query, [[*rows[:2]], [*gone], [*rows[2:]]])


LONG = [
    astral.range_slide(40, 25),
    astral.range_slide(30),
    astral.five_uplet(3, 20, 20, 18, 15),
    astral.rows_slide(7, 3),
    astral.WindowSequence(lambda j: 3 * j, lambda j: 3 * j + 2, 3, "position"),
]
"""Sequences of which later windows no longer reach the first rows."""


def late_and_early() -> list[Event[Any]]:
    """Return many rows of three keys, some of them late, with CTIs behind them."""
    events: list[Event[Any]] = []
    for n in range(120):
        time = max(n - 4 * (n % 5 == 3), 0)
        events += [Insert(n, time, n + 9, Record(k=n * n % 7, v=n % 11)), Cti(max(0, n - 4))]
    return events


@pytest.mark.parametrize("ws", LONG, ids=lambda ws: ws.describe())
def test_rows_that_are_forgotten_keep_their_positions(ws: Any) -> None:
    windows = sd.source("s").group_by("k").windows(ws)
    query = windows.aggregate(n=sd.count(), total=sd.sum(lambda e: e.v), all=sd.collect(lambda e: e.v))
    events = late_and_early()
    expected = denote(query.plan(), {"s": CHT.from_events(events)})
    for emit, size in (("speculative", 2), ("watermark", 17), ("final", 40)):
        with patch("streamdsl.engine.frames.arrangement._SPARE", 8):
            session = query.open(emit)  # type: ignore[arg-type]
            sent = [event for at in range(0, len(events), size) for event in session.push(events[at : at + size])]
            assert_cht_equal(CHT.from_events([*sent, *session.close()]), expected)


def test_rows_before_the_start_do_not_count_where_others_change_with_them() -> None:
    both = astral.linear((1, 0), (1, 1), 2, "position")
    query = sd.source("s").windows(both, start=0).aggregate(all=sd.collect(lambda e: e.v), total=sd.sum(lambda e: e.v))
    early = Insert("p", -5, 99, Record(v=-5))
    rows = [
        early,
        *(Insert(n, 10 + n, 99, Record(v=n)) for n in range(6)),
        *(Insert(20 + n, 20 + n // 2, 99, Record(v=n)) for n in range(4)),
    ]
    late = [Retract("p", -5, 99, -5, early.payload), Insert("x", 1, 99, Record(v=100))]
    session = query.open()
    sent = [*session.push(rows), *session.push(late), *session.close()]
    assert_cht_equal(CHT.from_events(sent), denote(query.plan(), {"s": CHT.from_events([*rows, *late])}))


@pytest.mark.parametrize("ws", [astral.fixed(2, 9), astral.range_slide(1, 100, False)], ids=lambda ws: ws.describe())
def test_partitions_without_windows_are_forgotten(ws: Any) -> None:
    session = sd.source("s").group_by("k").windows(ws, start=0).aggregate(n=sd.count()).open()
    for time in range(100, 6000, 100):
        session.push([*(Insert((time, n), time, time + 1, Record(k=f"{time} {n}")) for n in range(50)), Cti(time + 50)])
    (operator,) = (each for each in session._graph.operators if isinstance(each, FramedWindowOperator))
    assert len(list(operator.held_groups())) < 1000


def test_what_is_found_in_a_step_is_not_kept(tmp_path: Path) -> None:
    session = sd.source("s").windows(astral.range_slide(100, 50)).aggregate(n=sd.count()).open()
    session.push([Insert(n, n // 100, n // 100 + 1, Record(v=n)) for n in range(20_000)])
    session.push([Cti(10**6)])
    session.checkpoint(tmp_path / "kept")
    assert (tmp_path / "kept").stat().st_size < 100_000
