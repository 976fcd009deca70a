"""The public contract, section 3: windows, their policies, and what explain() says."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import streamdsl as sd
from streamdsl import CHT, INFINITY, MIN_TIME, Clip, Output
from streamdsl.errors import QueryError, TimestampViolation, UnboundedOutputError, UnitError
from tests.unit.contract.common import DAY, ENGINES, X, cht_of, payloads_of, refused, rows


class Stamps(sd.TimeSensitiveUDO[Any, Any]):
    time_bound = True

    def __init__(self, start: Any = 0, end: Any = 1) -> None:
        self.start, self.end = start, end

    def compute_result(self, events: Any, window: sd.WindowDescriptor) -> Any:
        return [sd.IntervalEvent(self.start, self.end, "r")]


class Unbound(Stamps):
    time_bound = False


class Ends(sd.TimeSensitiveUDA[Any, int]):
    def compute_result(self, events: Any, window: sd.WindowDescriptor) -> int:
        return len(events)


KEPT = (Output.UNCHANGED, Output.CLIP, Output.TIME_BOUND)
WINDOWS: list[Callable[..., sd.WindowedStream[Any]]] = [
    lambda **policy: X.tumbling_window(10, **policy),
    lambda **policy: X.hopping_window(10, 5, **policy),
    lambda **policy: X.snapshot_window(**policy),
    lambda **policy: X.count_window(2, **policy),
]


AGGREGATES: list[Callable[[Any], Any]] = [
    lambda w: w.aggregate(n=sd.count()),
    lambda w: w.aggregate(Ends),
    lambda w: w.aggregate(lambda w: w.count()),
    lambda w: w.apply(sd.udo(lambda payloads: payloads)),
]


@pytest.mark.parametrize("windows", WINDOWS)
def test_policies_that_a_module_does_not_fit_are_refused_when_the_query_is_written(windows: Any) -> None:
    for output, build in itertools.product(KEPT, AGGREGATES):
        with refused(QueryError, "Output.ALIGN"):
            build(windows(output=output))
    with refused(QueryError, "time_bound = True"):
        windows(output=Output.TIME_BOUND).apply(Unbound())
    windows(output=Output.TIME_BOUND).apply(Stamps())
    with refused(QueryError, "clip='left'", "Clip.LEFT"):
        windows(clip="left")
    with refused(QueryError, "output='align'", "Output.ALIGN"):
        windows(output="align")


def test_what_is_no_window_is_refused_when_it_is_written() -> None:
    with refused(QueryError, "positive", "-1"):
        X.tumbling_window(-1)
    with refused(QueryError, "positive", "0"):
        X.hopping_window(5, 0)
    with refused(QueryError, "at least one", "0"):
        X.count_window(0)
    for n in (1.5, "2", True):
        with refused(QueryError, repr(n)):
            X.count_window(n)  # type: ignore[arg-type]


def test_an_output_before_its_window_or_with_stamps_that_are_no_ticks_is_refused() -> None:
    for engine in ENGINES:
        with refused(TimestampViolation, "Stamps", "[0, 1)", "[10, 20)"):
            sd.from_rows([(11, 12, 1)]).tumbling_window(10, output=Output.UNCHANGED).apply(Stamps()).run(engine=engine)
        with refused(UnitError, "Stamps", "int in ticks"):
            dated = sd.from_rows([("2013-01-01", "2013-01-02", 1)], unit="s").tumbling_window("1d", output=Output.CLIP)
            dated.apply(Stamps(datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 1, 2, tzinfo=UTC))).run(engine=engine)


def test_explain_says_what_is_opaque_and_whose_timestamps_are_replaced() -> None:
    assert "[opaque]" not in X.where(lambda e: (e.v > 1) & (e.w == "a")).explain()
    for predicate in (lambda e: e.v > 1 and e.w, lambda e: e.v in (1, 2), lambda e: not e.v, lambda e: f"{e.v}"):
        assert "[opaque]" in X.where(predicate).explain()
    assert "timestamps are replaced" in X.tumbling_window(5).apply(Stamps()).explain()
    assert "timestamps are replaced" in X.tumbling_window(5, output=Output.POINT_AT_END).apply(Stamps()).explain()
    assert "replaced" not in X.tumbling_window(5, output=Output.CLIP).apply(Stamps()).explain()


def test_describe_and_output_cti_on_a_windowed_stream() -> None:
    cht = CHT.from_rows([(1, 5, "a"), (3, 12, "b")])
    described = X.tumbling_window(10, clip=Clip.FULL).describe(cht)
    assert described == [((0, 10), cht.rows), ((10, 20), cht.rows[1:])]
    endless = CHT.from_rows([(8, 12, "b"), (20, INFINITY, "c")])
    assert X.tumbling_window(10).describe(endless, until=30)[2:] == [((20, 30), endless.rows[1:])]
    with pytest.raises(UnboundedOutputError):
        X.tumbling_window(10).describe(endless)
    assert [X.snapshot_window().output_cti(cht, c) for c in (MIN_TIME, 4, INFINITY)] == [None, 4, INFINITY]
    assert [X.tumbling_window(10).output_cti(cht, 12, time_sensitive=sees) for sees in (False, True)] == [10, 0]
    dated = sd.from_rows([("1970-01-01", "1970-01-02", 1)], unit="s").run().cht()
    assert X.tumbling_window(DAY).output_cti(dated, "1970-01-02") == DAY


def test_sums_of_durations_are_durations() -> None:
    stream = rows({"d": timedelta(hours=1)}, {"d": timedelta(hours=2)})
    windows = (stream.tumbling_window(10), stream.snapshot_window())
    for window in windows:
        assert {"s": timedelta(hours=3), "a": timedelta(hours=1.5)} in payloads_of(
            window.aggregate(s=sd.sum(lambda e: e.d), a=sd.avg(lambda e: e.d))
        )


MIXED: sd.Stream[Any] = sd.from_rows([(1, 2, None), (1, 2, 3), (3, 4, None)])
COUNTS: list[Callable[[Any], sd.Stream[Any]]] = [
    lambda w: w.aggregate(sd.count()),
    lambda w: w.aggregate(lambda w: w.count()),
    lambda w: w.aggregate(lambda w: w.count() if w.count() else 0),
]


@pytest.mark.parametrize("count", COUNTS, ids=["named", "traced", "opaque"])
def test_a_count_without_an_expression_counts_rows_that_are_none_too(count: Callable[[Any], Any]) -> None:
    assert cht_of(count(MIXED.tumbling_window(10))).rows == [(0, 10, 3)]
    assert cht_of(count(MIXED.snapshot_window())).rows == [(1, 2, 2), (3, 4, 1)]


def test_a_count_of_an_expression_or_with_where_counts_what_they_leave() -> None:
    windows = MIXED.tumbling_window(10)
    query = windows.aggregate(values=sd.count(lambda e: e), nones=sd.count(where=lambda e: sd.is_none(e)))
    assert cht_of(query).rows == [(0, 10, {"values": 1, "nones": 2})]
