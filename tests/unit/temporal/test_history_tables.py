"""CHTs as values: folding, equality, order, dates; and the payloads, lifetimes and times that they are made of."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdsl.errors import TimeOverflow, UnitError
from streamdsl.temporal import (
    CHT,
    INFINITY,
    MIN_TIME,
    CHTRow,
    Cti,
    Event,
    Insert,
    Lifetime,
    Record,
    Retract,
    add_time,
    add_times,
    common_unit,
    correct,
    edge_end,
    edge_start,
    fields_of,
    interval,
    merge,
    payload_key,
    payload_order,
    point,
    subtract,
    sync_time,
    to_duration,
    to_ticks,
)

NAN = float("nan")


@dataclass(frozen=True)
class Quote:
    symbol: str
    bid: float


class Pair(NamedTuple):
    a: int
    b: int


def test_ids_and_order_of_arrival_do_not_count() -> None:
    one = CHT.from_events([Insert("a", 1, 5, "x"), Insert("b", 2, 3, "y")])
    other = CHT.from_events([Insert(7, 2, 9, "y"), Retract(7, 2, 9, 3), Insert(9, 1, 5, "x"), Cti(2), Insert(8, 2, 2, "z")])
    assert one == other == CHT.from_rows([(2, 3, "y"), (1, 5, "x")])
    assert one != CHT.from_rows([(2, 3, "y")])


def test_equality_counts_rows() -> None:
    assert CHT.from_rows([(1, 5, "x"), (1, 5, "x")]) != CHT.from_rows([(1, 5, "x")])
    assert CHT.from_rows([(1, 5, "x"), (5, 9, "x")]) != CHT.from_rows([(1, 9, "x")]), "only snapshot-equivalent"
    assert CHT.from_rows([]) != []


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 1.0),
        (NAN, float("nan")),
        ({"v": NAN, "k": None}, Record(k=None, v=float("nan"))),
        ((1, (NAN, "x")), (1.0, (NAN, "x"))),
        (Quote("A", 1), Quote("A", 1.0)),
        ([1, 2], [1.0, 2.0]),
        (np.int64(3), 3),
        ({"a": {"b": [NAN]}}, {"a": {"b": [NAN]}}),
    ],
)
def test_equal_payloads(a: Any, b: Any) -> None:
    assert payload_key(a) == payload_key(b)
    assert CHT.from_rows([(1, 5, a)]) == CHT.from_rows([(1, 5, b)])


@pytest.mark.parametrize(("a", "b"), [(1, "1"), (None, 0), ((1,), [1]), (Quote("A", 1), {"symbol": "A", "bid": 1}), ({}, ())])
def test_different_payloads(a: Any, b: Any) -> None:
    assert CHT.from_rows([(1, 5, a)]) != CHT.from_rows([(1, 5, b)])


def test_rows_come_in_order_of_le_re_and_payload() -> None:
    mixed = ["b", None, NAN, 2, "a", 1.5, True, [0], INFINITY]
    rows = [(1, 5, p) for p in mixed] + [(1, 4, "z"), (0, 9, "z")]
    shown = [row.payload for row in CHT.from_rows(rows)]
    assert shown[:2] == ["z", "z"]
    assert [repr(p) for p in shown[2:]] == ["None", "True", "1.5", "2", str(INFINITY), "nan", "'a'", "'b'", "[0]"]


def test_payloads_are_ordered_field_by_field() -> None:
    payloads = [Pair(1, 2), Pair(1, None), Pair(0, 9)]  # type: ignore[arg-type]
    assert sorted(payloads, key=payload_order) == [(0, 9), (1, None), (1, 2)]


def test_the_fields_of_a_payload() -> None:
    assert fields_of(Quote("A", 1.5)) == [("symbol", "A"), ("bid", 1.5)]
    assert fields_of(Pair(1, 2)) == [("a", 1), ("b", 2)]
    assert fields_of((5, "x")) == [("_0", 5), ("_1", "x")]
    assert fields_of({"k": 1}) == [("k", 1)]
    assert fields_of("text") == [("value", "text")]


def test_dates_become_ticks() -> None:
    day = datetime(1970, 1, 2, tzinfo=UTC)
    cht = CHT.from_events([Insert("a", "1970-01-01", day, "x"), point("b", day, "y"), Cti(day)], unit="s")
    assert cht.rows == [CHTRow(0, 86_400, "x"), CHTRow(86_400, 86_401, "y")]
    assert CHT.from_rows([("1970-01-01T00:00:01", INFINITY, "x")], "ms").rows == [CHTRow(1000, INFINITY, "x")]
    assert repr(cht).splitlines()[1] == "  [1970-01-01T00:00:00Z, 1970-01-02T00:00:00Z) 'x'"


def test_dates_tell_the_unit_and_integers_do_not() -> None:
    row = ("1970-01-01T00:00:01Z", INFINITY, "x")
    assert CHT.from_rows([row]).unit == CHT.from_events([Cti(0), interval("a", *row)]).unit == "us"
    assert CHT.from_rows([row]).to_pandas()["le"].tolist() == [pd.Timestamp("1970-01-01T00:00:01Z")]
    assert CHT.from_rows([row], "ms").unit == "ms"
    assert CHT.from_rows([(1, 5, "x")]).unit is None
    assert CHT.from_rows([(1, 5, "x")], "tick").unit == "tick"


def test_what_is_no_time_is_refused_with_its_row_or_event() -> None:
    with pytest.raises(UnitError, match="event 1: 'soon'"):
        CHT.from_rows([(1, 5, "x"), ("soon", 5, "x")])
    with pytest.raises(UnitError, match="event 'late': 'soon'"):
        CHT.from_events([interval("late", "soon", 5, "x")])


def test_the_point_of_a_numpy_time_ends_at_a_time() -> None:
    three: Any = np.int64(3)
    assert type(point("a", three, "x").re) is int
    assert CHT.from_events([point("a", three, "x")]).rows == [CHTRow(3, 4, "x")]


def test_a_long_table_is_shown_in_part() -> None:
    assert repr(CHT.from_rows([])) == "CHT (empty)"
    assert repr(CHT.from_rows([(i, i + 1, {"v": i}) for i in range(60)])).splitlines()[-1] == "  ... 10 rows more"


def test_event_classes() -> None:
    assert point("a", 3, "x") == Insert("a", 3, 4, "x")
    assert interval("a", 3, 8, "x") == Insert("a", 3, 8, "x")
    start, end = edge_start("a", 3, "x"), edge_end("a", 3, 8)
    assert (start.re, end.re, end.re_new) == (INFINITY, INFINITY, 8)
    assert CHT.from_events([start, end, *correct(interval("b", 1, 2, "old"), "new", "c")][:2]) == CHT.from_rows([(3, 8, "x")])


def test_a_correction_replaces_a_payload() -> None:
    wrong = interval("a", 1, 5, {"v": 1})
    assert CHT.from_events([wrong, *correct(wrong, {"v": 2}, "a2")]) == CHT.from_rows([(1, 5, {"v": 2})])


def test_sync_time_is_the_earliest_time_that_an_event_changes() -> None:
    events: list[Event[str]] = [
        Insert("a", 1, 9, "x"),
        Retract("a", 1, 9, 5),
        Retract("a", 1, 5, INFINITY),
        Retract("a", 1, INFINITY, 1),
        Cti(4),
    ]
    assert [sync_time(event) for event in events] == [1, 5, 5, 1, 4]


lives = st.builds(lambda le, d: Lifetime(le, le + d), st.integers(-5, 12), st.integers(0, 6))


@given(lives, st.lists(lives, max_size=6))
def test_what_is_left_of_a_lifetime_comes_in_maximal_pieces(life: Lifetime, removed: list[Lifetime]) -> None:
    pieces = subtract(life, removed)
    left = set(range(*life)) - {t for hole in removed for t in range(*hole)}
    assert [t for piece in pieces for t in range(*piece)] == sorted(left)
    assert all(before.re < after.le for before, after in itertools.pairwise(pieces))
    assert all(not piece.is_empty for piece in pieces)


@given(st.lists(lives, max_size=6))
def test_merged_lifetimes_are_maximal(lifetimes: list[Lifetime]) -> None:
    merged = merge(lifetimes)
    assert [t for piece in merged for t in range(*piece)] == sorted({t for life in lifetimes for t in range(*life)})
    assert all(before.re < after.le for before, after in itertools.pairwise(merged))


@given(lives, lives)
def test_overlap_is_a_common_instant(a: Lifetime, b: Lifetime) -> None:
    common = set(range(*a)) & set(range(*b))
    assert a.overlaps(b) == bool(common)
    assert set(range(*a.intersect(b))) == common


edges = st.sampled_from([MIN_TIME, MIN_TIME + 1, -1, 0, 1, INFINITY - 1, INFINITY])


@given(edges | st.integers(MIN_TIME, INFINITY), edges | st.integers(MIN_TIME, INFINITY))
def test_times_add_up_or_overflow(time: int, duration: int) -> None:
    try:
        expected: int | None = add_time(time, duration)
    except TimeOverflow:
        expected = None
    assert expected == (INFINITY if INFINITY in (time, duration) else time + duration if in_range(time + duration) else None)
    columns = np.array([0, time], dtype=np.int64), np.array([0, duration], dtype=np.int64)
    if expected is None:
        with pytest.raises(TimeOverflow, match=f"{time} \\+ {duration}"):
            add_times(*columns)
    else:
        assert add_times(*columns).tolist() == [0, expected]


def in_range(time: int) -> bool:
    return MIN_TIME <= time < INFINITY


@pytest.mark.parametrize(
    ("value", "unit", "ticks"),
    [
        (7, None, 7),
        (np.int32(7), "tick", 7),
        ("1970-01-01T00:00:02", "ms", 2000),
        ("1970-01-01T01:00:00+01:00", "s", 0),
        (datetime(1970, 1, 1, 0, 0, 1), "us", 10**6),
        (date(1970, 1, 2), "s", 86400),
        (np.datetime64("1969-12-31T23:59:59", "s"), "ms", -1000),
    ],
)
def test_times_in_ticks(value: Any, unit: Any, ticks: int) -> None:
    assert to_ticks(value, unit) == ticks


@pytest.mark.parametrize(
    ("value", "unit", "ticks"),
    [
        ("10s", "ms", 10_000),
        ("1h30m", "s", 5400),
        ("-250ms", "us", -250_000),
        ("1.5d", "s", 129_600),
        (timedelta(minutes=1), "s", 60),
        (np.timedelta64(3, "m"), "s", 180),
        (5, "ns", 5),
    ],
)
def test_durations_in_ticks(value: Any, unit: Any, ticks: int) -> None:
    assert to_duration(value, unit) == ticks


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        (1.5, None),
        (True, None),
        ("soon", "s"),
        ("1970-01-01T00:00:00.5", "s"),
        ("1970-01-01", "tick"),
        (np.datetime64("NaT"), "us"),
        (pd.NaT, "s"),
        (date(1970, 1, 1), "tick"),
        (None, "s"),
    ],
)
def test_what_is_no_time(value: Any, unit: Any) -> None:
    with pytest.raises(UnitError):
        to_ticks(value, unit)


@pytest.mark.parametrize(
    ("value", "unit"), [("10", "s"), ("", "s"), ("5 fortnights", "s"), ("1ms", "s"), ("5s", "tick"), (2.0, None)]
)
def test_what_is_no_duration(value: Any, unit: Any) -> None:
    with pytest.raises(UnitError):
        to_duration(value, unit)


def test_times_out_of_range() -> None:
    with pytest.raises(TimeOverflow):
        to_ticks(2**63)
    with pytest.raises(TimeOverflow):
        to_ticks("9999-01-01", "ns")


def test_streams_of_different_units_do_not_meet() -> None:
    with pytest.raises(UnitError, match=r"different time units meet: s, tick\nHint"):
        common_unit("s", None, "tick")
    assert common_unit(None, None) is None
