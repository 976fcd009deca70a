"""Window-based operators: members, arguments, clipping, timestamps and errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given

from streamdsl.denote.windowed import describe
from streamdsl.errors import QueryError, TimestampViolation, UnboundedOutputError, UnitError, UserCodeError
from streamdsl.expr.nodes import Expr, Field, Life, Make
from streamdsl.expr.schema import Schema
from streamdsl.plan.node import Node, WindowAggregate, WindowApply
from streamdsl.temporal import CHT, INFINITY, Lifetime, Record
from streamdsl.udm.bases import UDA, UDO, AnyUDO, IntervalEvent, TimeSensitiveUDA, TimeSensitiveUDO, WindowDescriptor
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.udm.builtin import Collect, First, Sum, TimeWeightedAvg
from streamdsl.udm.builtin import Count as CountRows
from streamdsl.udm.invoke import seen_clip
from streamdsl.windows import Clip, Count, Hopping, Output, Snapshot, Windows
from tests.unit.denote.reading import INSTANTS, LEFT, alive, histories, meaning, means, of, st

TUMBLING = Hopping(10, 10)
FIRST = Field("a0")
ROWS = [(1, 3, {"v": 4}), (2, 14, {"v": None}), (12, 13, {"v": 8})]


def aggregate(
    *aggs: BoundAgg,
    windows: Windows = TUMBLING,
    clip: Clip = Clip.NONE,
    output: Output = Output.ALIGN,
    projection: Expr = FIRST,
) -> Node:
    return WindowAggregate(LEFT, windows, clip, output, aggs, projection)


def apply(
    module: AnyUDO[Any, Any],
    argument: Any = None,
    *,
    windows: Windows = TUMBLING,
    clip: Clip = Clip.NONE,
    output: Output = Output.ALIGN,
) -> Node:
    return WindowApply(LEFT, windows, clip, output, module, argument)


class Seen(TimeSensitiveUDA[Any, Any]):
    """What a time-sensitive module is shown."""

    def compute_result(self, events: Sequence[IntervalEvent[Any]], window: WindowDescriptor) -> Any:
        return (window, [(e.start_time, e.end_time, e.payload) for e in events])


class Stamps(TimeSensitiveUDO[Any, Any]):
    """Events with the stamps that it was made with."""

    def __init__(self, *stamps: tuple[Any, Any]) -> None:
        self.stamps = stamps

    def compute_result(self, events: Sequence[IntervalEvent[Any]], window: WindowDescriptor) -> Iterable[IntervalEvent[Any]]:
        return [IntervalEvent(start, end, "x") for start, end in self.stamps]


class Returns(UDO[Any, Any]):
    def __init__(self, value: Any) -> None:
        self.value = value

    def compute_result(self, payloads: Sequence[Any]) -> Any:
        return self.value


class Fails(UDA[Any, Any]):
    def compute_result(self, payloads: Sequence[Any]) -> Any:
        raise KeyError("fare")


kinds: st.SearchStrategy[Windows] = st.one_of(
    st.builds(Hopping, st.integers(1, 9), st.integers(1, 9), st.integers(-4, 4)),
    st.builds(Count, st.integers(1, 3), st.sampled_from(["start", "end"])),
    st.just(Snapshot()),
)


@given(kinds, histories)
def test_one_row_for_each_window_with_what_its_members_give(windows: Windows, rows: CHT[Any]) -> None:
    found = meaning(aggregate(BoundAgg(Collect(), of(lambda e: e.v)), windows=windows), rows, until=40)
    expected = [
        (*window, [row.payload.v for row in rows if windows.belongs(Lifetime(row.le, row.re), window)])
        for window in windows.over([Lifetime(row.le, row.re) for row in rows], 40)
    ]
    assert [(le, re, sorted(values)) for le, re, values in found] == [(le, re, sorted(values)) for le, re, values in expected]


@given(histories)
def test_snapshots_count_what_lives_at_each_instant(rows: CHT[Any]) -> None:
    found = meaning(aggregate(BoundAgg(CountRows()), windows=Snapshot()), rows)
    for t in INSTANTS:
        assert alive(found, t) == ([len(alive(rows, t))] if alive(rows, t) else [])


def test_windows_with_their_members() -> None:
    rows = CHT.from_rows(ROWS)
    assert describe(TUMBLING, rows) == [(Lifetime(0, 10), rows.rows[:2]), (Lifetime(10, 20), rows.rows[1:])]
    assert describe(TUMBLING, rows, until=10) == [(Lifetime(0, 10), rows.rows[:2])]


def test_several_aggregates_and_their_projection() -> None:
    aggs = (BoundAgg(CountRows()), BoundAgg(Sum(), of(lambda e: e.v)), BoundAgg(CountRows(), None, of(lambda e: e.v is None)))
    plan = aggregate(*aggs, projection=Make(Schema.record(["n", "total", "unknown"]), (Field("a0"), Field("a1"), Field("a2"))))
    means(plan, ROWS, gives=[(0, 10, {"n": 2, "total": 4, "unknown": 1}), (10, 20, {"n": 2, "total": 8, "unknown": 1})])


def test_a_projection_may_read_the_window() -> None:
    means(aggregate(BoundAgg(CountRows()), projection=Life("re")), ROWS[:1], gives=[(0, 10, 10)])


def test_where_is_asked_before_the_argument() -> None:
    inverse = BoundAgg(Sum(), of(lambda e: 8 / e.v), of(lambda e: e.v is not None and e.v > 0))
    means(aggregate(inverse), [*ROWS, (3, 4, {"v": 0})], gives=[(0, 10, 2.0), (10, 20, 1.0)])


def test_a_window_whose_rows_are_all_left_out_still_has_a_result() -> None:
    none = of(lambda e: False)
    means(aggregate(BoundAgg(CountRows(), None, none)), ROWS[:1], gives=[(0, 10, 0)])
    means(aggregate(BoundAgg(Seen(), None, none)), ROWS[:1], gives=[(0, 10, None)])


def test_without_an_argument_a_module_is_given_payloads() -> None:
    means(aggregate(BoundAgg(Collect())), [(1, 2, {"v": 1}), (3, 4, {"v": 2})], gives=[(0, 10, [{"v": 1}, {"v": 2}])])
    (row,) = meaning(aggregate(BoundAgg(First())), [(1, 2, {"v": 1})])
    assert type(row.payload) is Record


def test_an_argument_reads_no_lifetime_which_may_still_change() -> None:
    duration = of(lambda e, life: life.re - life.le, life=True)
    for agg in (BoundAgg(Sum(), duration), BoundAgg(CountRows(), None, duration)):
        with pytest.raises(QueryError, match=r"(?s)reads the row's lifetime.*time-sensitive module"):
            aggregate(agg)


@pytest.mark.parametrize(
    ("clip", "events"),
    [
        (Clip.NONE, [(2, 14, 1), (12, 13, 2)]),
        (Clip.LEFT, [(10, 14, 1), (12, 13, 2)]),
        (Clip.RIGHT, [(2, 14, 1), (12, 13, 2)]),
        (Clip.FULL, [(10, 14, 1), (12, 13, 2)]),
    ],
)
def test_time_sensitive_modules_see_clipped_lifetimes_in_original_order(clip: Clip, events: list[Any]) -> None:
    found = meaning(aggregate(BoundAgg(Seen()), clip=clip), [(2, 14, 1), (12, 13, 2)])
    assert found.rows[1].payload == (WindowDescriptor(10, 20), events)


def test_time_weighted_averages_are_always_clipped() -> None:
    means(
        aggregate(BoundAgg(TimeWeightedAvg(), of(lambda e: e))),
        [(-5, 5, 4), (5, 25, 8)],
        gives=[(-10, 0, 2), (0, 10, 6), (10, 20, 8), (20, 30, 4)],
    )
    assert seen_clip([CountRows(), TimeWeightedAvg()], Clip.NONE) is Clip.FULL
    assert seen_clip([Seen(), TimeWeightedAvg()], Clip.LEFT) is Clip.LEFT
    assert seen_clip([CountRows()], Clip.NONE) is Clip.NONE


def test_point_at_end() -> None:
    means(aggregate(BoundAgg(CountRows()), output=Output.POINT_AT_END), ROWS, gives=[(10, 11, 2), (20, 21, 2)])
    for_ever = [(3, INFINITY, "x")]
    means(aggregate(BoundAgg(CountRows()), windows=Snapshot(), output=Output.POINT_AT_END), for_ever, gives=[])


@pytest.mark.parametrize(
    ("output", "stamps", "lives"),
    [
        (Output.UNCHANGED, [(0, 4), (7, 25), (30, 31)], [(0, 4), (7, 25), (30, 31)]),
        (Output.CLIP, [(-5, 4), (7, 25), (30, 31), (-9, -2)], [(0, 4), (7, 10)]),
        (Output.ALIGN, [(-5, 4), (30, 31)], [(0, 10), (0, 10)]),
        (Output.POINT_AT_END, [(-5, 4)], [(10, 11)]),
        (Output.UNCHANGED, [(5, 5), (5, INFINITY)], [(5, INFINITY)]),
        (Output.UNCHANGED, [(np.int64(3), np.int64(4))], [(3, 4)]),
    ],
)
def test_timestamps_of_a_time_sensitive_operator(output: Output, stamps: Any, lives: list[tuple[int, int]]) -> None:
    means(apply(Stamps(*stamps), output=output), [(1, 2, "x")], gives=[(le, re, "x") for le, re in lives])


def test_output_before_the_window_is_refused() -> None:
    with pytest.raises(
        TimestampViolation, match=r"Stamps stamped an output event \[-1, 4\) before the start of its window \[0, 10\)\nHint"
    ):
        meaning(apply(Stamps((-1, 4)), output=Output.UNCHANGED), [(1, 2, "x")])


def test_output_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(TimestampViolation, match="ends before it starts"):
        meaning(apply(Stamps((4, 3)), output=Output.CLIP), [(1, 2, "x")])


def test_stamps_are_times() -> None:
    with pytest.raises(UnitError):
        meaning(apply(Stamps((1.5, 3)), output=Output.CLIP), [(1, 2, "x")])


def test_a_time_sensitive_operator_returns_events() -> None:
    class Bare(Stamps):
        def compute_result(self, events: Any, window: Any) -> Any:
            return ["x"]

    with pytest.raises(TimestampViolation, match="Bare is time-sensitive, so it returns IntervalEvents, not 'x'"):
        meaning(apply(Bare(), output=Output.UNCHANGED), [(1, 2, "x")])


def test_an_operator_gives_any_number_of_rows() -> None:
    means(apply(Returns([])), ROWS, gives=[])
    means(
        apply(Returns(["a", "a", {"v": np.float64(1.5)}])), [(1, 2, "x")], gives=[(0, 10, "a"), (0, 10, "a"), (0, 10, {"v": 1.5})]
    )


def test_results_are_plain_values() -> None:
    (row,) = meaning(apply(Returns([{"v": np.float64(1.5), "l": [np.int64(2)]}])), [(1, 2, "x")])
    assert type(row.payload) is Record
    assert type(row.payload.v) is float
    assert type(row.payload.l[0]) is int


def test_a_module_is_given_the_value_of_its_argument() -> None:
    class Doubled(UDO[int, int]):
        def compute_result(self, payloads: Sequence[int]) -> Iterable[int]:
            return [2 * payload for payload in payloads]

    means(apply(Doubled(), of(lambda e: e.v + 1)), [(1, 2, {"v": 1}), (2, 3, {"v": 5})], gives=[(0, 10, 4), (0, 10, 12)])


class Columns(UDA[Any, Any]):
    vectorized: ClassVar[bool] = True

    def compute_result(self, payloads: Any) -> Any:
        if isinstance(payloads, Mapping):
            return {name: column.sum() for name, column in payloads.items()}
        return payloads.sum()


@pytest.mark.parametrize(
    ("payloads", "expected"),
    [([1, 2], 3), ([1.5, 2], 3.5), ([{"v": 1, "w": 2}, {"v": 3, "w": 4}], {"v": 4, "w": 6}), ([{"v": 1}, {"v": 3}], {"v": 4})],
)
def test_a_vectorized_module_gets_columns(payloads: list[Any], expected: Any) -> None:
    means(aggregate(BoundAgg(Columns())), [(1, 2, p) for p in payloads], gives=[(0, 10, expected)])


def test_a_module_that_raises_is_named_with_its_window() -> None:
    with pytest.raises(UserCodeError, match=r"KeyError in user code: 'fare'\n  at operator window_aggregate_1, window \[0, 10\)"):
        meaning(aggregate(BoundAgg(Fails())), ROWS)
    with pytest.raises(UserCodeError, match=r"TypeError in user code: .*\n  at operator window_apply_1, window \[0, 10\)"):
        meaning(apply(Returns(None)), ROWS)


def test_an_argument_that_raises_is_named_with_its_event() -> None:
    with pytest.raises(UserCodeError, match=r"operator window_aggregate_1, event .*le=2"):
        meaning(aggregate(BoundAgg(Sum(), of(lambda e: e.v + 1))), ROWS)


def test_an_event_without_end_needs_a_bound() -> None:
    rows = [(3, INFINITY, "x")]
    with pytest.raises(UnboundedOutputError, match=r"tumbling\(10\)"):
        meaning(aggregate(BoundAgg(CountRows())), rows)
    assert meaning(aggregate(BoundAgg(CountRows())), rows, until=25) == CHT.from_rows([(0, 10, 1), (10, 20, 1)])


@pytest.mark.parametrize("output", [Output.UNCHANGED, Output.CLIP, Output.TIME_BOUND])
def test_only_time_sensitive_operators_may_keep_timestamps(output: Output) -> None:
    with pytest.raises(QueryError, match="no timestamps of its own"):
        aggregate(BoundAgg(Seen()), output=output)
    with pytest.raises(QueryError, match="Returns is time-insensitive and sets no timestamps"):
        apply(Returns([]), output=output)


def test_time_bound_is_a_promise_of_the_module() -> None:
    with pytest.raises(QueryError, match="does not declare time_bound = True"):
        apply(Stamps(), output=Output.TIME_BOUND)

    class Bound(Stamps):
        time_bound: ClassVar[bool] = True

    means(apply(Bound((3, 12)), output=Output.TIME_BOUND), [(1, 2, "x")], gives=[(3, 12, "x")])
