"""Span-based operators: examples, and what they say about each instant."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from streamdsl.errors import FieldNotFound, TimeOverflow, UnitError, UserCodeError
from streamdsl.expr.nodes import Constant
from streamdsl.plan.node import (
    Distinct,
    Select,
    SelectMany,
    Stitch,
    ToEdges,
    Where,
    alter_lifetime,
    clip_duration,
    clip_interval,
    extend,
    quantize,
    shift,
    to_points_at_end,
)
from streamdsl.temporal import CHT, INFINITY, MIN_TIME, Record
from tests.unit.denote.reading import INSTANTS, LEFT, alive, bag, histories, meaning, means, of, st

ROWS = [(1, 5, {"k": "a", "v": 1}), (3, INFINITY, {"k": "b", "v": 2}), (4, 6, {"k": "a", "v": 0})]


def test_where_keeps_what_is_true() -> None:
    means(Where(LEFT, of(lambda e: e.v)), ROWS, gives=ROWS[:2])
    means(Where(LEFT, of(lambda e: e.v > 1)), ROWS, gives=[ROWS[1]])
    means(Where(LEFT, of(lambda e: [])), ROWS, gives=[])


def test_where_may_read_the_lifetime() -> None:
    means(Where(LEFT, of(lambda e, life: life.re - life.le <= 2, life=True)), ROWS, gives=[ROWS[2]])


def test_select_replaces_payloads() -> None:
    means(Select(LEFT, of(lambda e: e.v * 10)), ROWS, gives=[(1, 5, 10), (3, INFINITY, 20), (4, 6, 0)])
    means(Select(LEFT, of(lambda e: {"s": e.k + "!"})), ROWS[:1], gives=[(1, 5, {"s": "a!"})])
    means(Select(LEFT, of(lambda e, life: life.le, life=True)), ROWS[:1], gives=[(1, 5, 1)])


def test_mappings_come_out_as_records() -> None:
    (row,) = meaning(Where(LEFT, of(lambda e: e.v == 2)), ROWS)
    assert type(row.payload) is Record


@given(histories)
def test_where_and_select_act_at_each_instant(rows: CHT[Any]) -> None:
    kept = meaning(Where(LEFT, of(lambda e: e.v > 0)), rows)
    changed = meaning(Select(LEFT, of(lambda e: (e.k, e.v + 1))), rows)
    for t in INSTANTS:
        assert bag(alive(kept, t)) == bag(p for p in alive(rows, t) if p.v > 0)
        assert bag(alive(changed, t)) == bag((p.k, p.v + 1) for p in alive(rows, t))


def test_select_many_gives_a_row_for_each_item() -> None:
    tagged = [(1, 5, {"tags": ["x", "y", "x"]}), (2, 3, {"tags": []})]
    means(SelectMany(LEFT, of(lambda e: e.tags)), tagged, gives=[(1, 5, "x"), (1, 5, "x"), (1, 5, "y")])
    means(
        SelectMany(LEFT, of(lambda e: ({"n": i} for i in range(e)))),
        [(1, 5, 2)],
        gives=[(1, 5, {"n": 0}), (1, 5, {"n": 1})],
    )


def test_alter_lifetime_gives_a_start_and_a_duration() -> None:
    later = alter_lifetime(LEFT, of(lambda e, life: life.le + 10, life=True), of(lambda e: e.v))
    means(later, ROWS, gives=[(11, 12, ROWS[0][2]), (13, 15, ROWS[1][2])])


def test_a_duration_that_is_not_positive_drops_the_row() -> None:
    means(alter_lifetime(LEFT, None, of(lambda e: e.v - 1)), ROWS, gives=[(3, 4, ROWS[1][2])])
    means(alter_lifetime(LEFT, None, Constant(-3)), ROWS, gives=[])


def test_to_points_and_the_lifetime_as_a_duration() -> None:
    means(alter_lifetime(LEFT, None, Constant(1)), ROWS, gives=[(le, le + 1, p) for le, _, p in ROWS])
    at_end = alter_lifetime(LEFT, of(lambda e, life: life.re, life=True), Constant(1))
    means(at_end, ROWS, gives=[(5, 6, ROWS[0][2]), (6, 7, ROWS[2][2])])
    for_ever = alter_lifetime(LEFT, None, Constant(INFINITY))
    means(for_ever, ROWS, gives=[(le, INFINITY, p) for le, _, p in ROWS])


def test_altered_times_may_be_dates() -> None:
    rows = CHT.from_rows([(0, 1, {"at": "1970-01-01T00:00:09", "d": "2s"})], "s")
    moved = meaning(alter_lifetime(LEFT, of(lambda e: e.at), of(lambda e: e.d)), rows)
    assert [(row.le, row.re) for row in moved] == [(9, 11)]
    assert moved.unit == "s"


def test_a_duration_that_is_none_is_refused() -> None:
    with pytest.raises(UnitError, match=r"1\.5"):
        meaning(alter_lifetime(LEFT, None, Constant(1.5)), ROWS)


@pytest.mark.parametrize(
    ("le", "plan"),
    [
        (INFINITY - 4, shift(LEFT, 4)),
        (MIN_TIME, shift(LEFT, -1)),
        (INFINITY - 4, alter_lifetime(LEFT, None, Constant(9))),
        (INFINITY - 4, extend(LEFT, 3)),
        (INFINITY - 4, quantize(LEFT, 10, 10)),
        (MIN_TIME, quantize(LEFT, 7, 7)),
        (INFINITY - 2, to_points_at_end(LEFT)),
    ],
)
def test_times_out_of_range_overflow(le: int, plan: Any) -> None:
    with pytest.raises(TimeOverflow):
        meaning(plan, [(le, le + 1, "x")])


@given(histories, st.integers(-5, 5))
def test_shift_moves_every_instant(rows: CHT[Any], d: int) -> None:
    shifted = meaning(shift(LEFT, d), rows)
    assert all(bag(alive(shifted, t + d)) == bag(alive(rows, t)) for t in INSTANTS)
    assert [row.re for row in shifted if row.re == INFINITY] == [row.re for row in rows if row.re == INFINITY]


@given(histories, st.integers(-12, 12), st.integers(0, 12))
def test_clip_interval_keeps_what_is_inside(rows: CHT[Any], lo: int, length: int) -> None:
    clipped = meaning(clip_interval(LEFT, lo, lo + length), rows)
    assert all(bag(alive(clipped, t)) == (bag(alive(rows, t)) if lo <= t < lo + length else bag([])) for t in INSTANTS)


@given(histories, st.integers(-6, 6))
def test_an_extended_row_lives_where_it_would_with_its_end_moved(rows: CHT[Any], d: int) -> None:
    extended = meaning(extend(LEFT, d), rows)
    assert all(bag(alive(extended, t)) == bag(row.payload for row in rows if row.le <= t < row.re + d) for t in INSTANTS)
    assert sum(row.re == INFINITY for row in extended) == sum(row.re == INFINITY for row in rows)


@given(histories, st.integers(-2, 9))
def test_a_clipped_row_lives_no_longer_than_the_duration(rows: CHT[Any], d: int) -> None:
    clipped = meaning(clip_duration(LEFT, d), rows)
    assert all(
        bag(alive(clipped, t)) == bag(row.payload for row in rows if row.le <= t < min(row.re, row.le + d)) for t in INSTANTS
    )


def test_a_duration_beyond_the_range_of_times_clips_nothing() -> None:
    means(
        clip_duration(LEFT, INFINITY),
        [(5, INFINITY, "x"), (INFINITY - 3, INFINITY - 1, "y")],
        gives=[(5, INFINITY, "x"), (INFINITY - 3, INFINITY - 1, "y")],
    )


@given(histories)
def test_there_is_a_point_at_each_end(rows: CHT[Any]) -> None:
    points = meaning(to_points_at_end(LEFT), rows)
    assert all(bag(alive(points, t)) == bag(row.payload for row in rows if row.re == t) for t in INSTANTS)


@given(histories, st.integers(1, 9), st.integers(1, 9), st.integers(-5, 5))
def test_a_quantized_row_is_the_least_period_of_the_grid_around_it(rows: CHT[Any], size: int, period: int, offset: int) -> None:
    starts = range(offset - 20 * period, 40, period)
    for row, snapped in zip(
        rows, [next(iter(meaning(quantize(LEFT, size, period, offset), [row]))) for row in rows], strict=True
    ):
        assert snapped.le == max(start for start in starts if start <= row.le)
        if row.re == INFINITY:
            assert snapped.re == INFINITY
        else:
            ends = (start + size for start in range(offset - 20 * period, 80, period))
            assert snapped.re == min(end for end in ends if end >= max(row.re, snapped.le + size))


def test_windows_of_quantized_rows_are_the_tumbling_windows_that_they_overlap() -> None:
    means(
        quantize(LEFT, 10, 10, 0), [(3, 4, "x"), (-1, 1, "y"), (10, 20, "z")], gives=[(0, 10, "x"), (-10, 10, "y"), (10, 20, "z")]
    )


def test_edges_last_until_the_next_strictly_later_start_of_their_key() -> None:
    samples = [(1, 2, {"k": "a"}), (1, 9, {"k": "a"}), (3, 4, {"k": "b"}), (5, 6, {"k": "a"})]
    by_key = [(1, 5, {"k": "a"}), (1, 5, {"k": "a"}), (3, INFINITY, {"k": "b"}), (5, INFINITY, {"k": "a"})]
    means(ToEdges(LEFT, of(lambda e: e.k)), samples, gives=by_key)
    one_signal = [(1, 3, {"k": "a"}), (1, 3, {"k": "a"}), (3, 5, {"k": "b"}), (5, INFINITY, {"k": "a"})]
    means(ToEdges(LEFT, None), samples, gives=one_signal)


@given(histories)
def test_a_signal_has_the_value_of_its_latest_samples(rows: CHT[Any]) -> None:
    edges = meaning(ToEdges(LEFT, None), rows)
    for t in INSTANTS:
        latest = max((row.le for row in rows if row.le <= t), default=None)
        assert bag(alive(edges, t)) == bag(row.payload for row in rows if row.le == latest)


@given(histories)
def test_what_is_distinct_is_there_once_at_each_instant(rows: CHT[Any]) -> None:
    values = meaning(Select(LEFT, of(lambda e: e.k)), rows)
    once = meaning(Distinct(LEFT), values)
    assert all(bag(alive(once, t)) == bag(set(alive(values, t))) for t in INSTANTS)
    assert len(once) <= len({(row.payload, row.le) for row in values}), "pieces are maximal"


def test_what_is_distinct_comes_in_maximal_pieces() -> None:
    rows = [(0, 3, "a"), (3, 5, "a"), (4, 4, "b"), (6, 7, "a"), (2, INFINITY, 1), (5, 9, 1.0)]
    means(Distinct(LEFT), rows, gives=[(0, 5, "a"), (6, 7, "a"), (2, INFINITY, 1)])


@given(histories)
def test_stitching_changes_no_instant_and_leaves_nothing_that_meets(rows: CHT[Any]) -> None:
    values = meaning(Select(LEFT, of(lambda e: e.k)), rows)
    stitched = meaning(Stitch(LEFT), values)
    assert all(bag(alive(stitched, t)) == bag(alive(values, t)) for t in INSTANTS)
    assert not {(row.payload, row.re) for row in stitched} & {(row.payload, row.le) for row in stitched}


def test_rows_that_meet_are_joined_one_to_one() -> None:
    ending, starting = [(0, 5, "a"), (2, 5, "a"), (4, 5, "a")], [(5, 8, "a"), (5, 7, "a"), (5, 9, "b")]
    means(Stitch(LEFT), [*ending, *starting], gives=[(0, 7, "a"), (2, 8, "a"), (4, 5, "a"), (5, 9, "b")])


def test_user_code_that_raises_is_named_with_its_operator_and_event() -> None:
    with pytest.raises(
        UserCodeError, match=r"ZeroDivisionError in user code: .*\n  at operator select_1, event .*le=4, re=6.*v=0"
    ) as error:
        meaning(Select(LEFT, of(lambda e: 1 / e.v)), ROWS)
    assert error.value.operator == "select_1"
    assert isinstance(error.value.__cause__, ZeroDivisionError)


def test_select_many_over_what_is_no_iterable_is_user_code_too() -> None:
    with pytest.raises(UserCodeError, match="operator select_many_1"):
        meaning(SelectMany(LEFT, of(lambda e: e.v)), ROWS)


def test_errors_of_the_package_are_not_wrapped() -> None:
    def refuses(e: Any) -> Any:
        raise FieldNotFound("w", ["v"])

    with pytest.raises(FieldNotFound):
        meaning(Where(LEFT, of(refuses)), ROWS)
