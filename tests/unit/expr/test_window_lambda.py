"""Window lambdas: traced into aggregates, or called with a real window, with the same answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import FieldNotFound, QueryError
from streamdsl.expr.describe import describe
from streamdsl.expr.expression_functions import lit, when
from streamdsl.expr.nodes import Binary, Constant, Field, Key, is_opaque
from streamdsl.expr.schema import Schema
from streamdsl.udm.builtin import Avg, Count, Median, Quantile, Sum
from streamdsl.udm.window_lambda import (
    OpaqueClippedWindow,
    OpaquePayloads,
    OpaqueWindow,
    methods_used,
    trace_window,
)


@dataclass
class Trip:
    zone: str
    fare: float


@dataclass
class Stats:
    n: int
    mean: Any
    more: Any = None


class Scaled(sd.UDA[float, float]):
    def __init__(self, k: float = 1.0) -> None:
        self.k = k

    def compute_result(self, payloads: Sequence[float]) -> float:
        return sum(payloads) * self.k


class Lives(sd.TimeSensitiveUDA[Any, int]):
    def compute_result(self, events: Sequence[sd.IntervalEvent[Any]], window: sd.WindowDescriptor) -> int:
        return sum(event.end_time - event.start_time for event in events)


@sd.uda
def spread(values: Sequence[float]) -> float:
    return max(values) - min(values)


RATE = 3
SCALED = Scaled(2.0)
TRIP = Schema.of_type(Trip)
ROWS = [(0, 3, Trip("a", 1.0)), (1, 20, Trip("b", 5.0)), (12, 15, Trip("a", 7.5)), (1, 2, Trip("a", 4.0)), (1, 9, Trip("c", 4.0))]


def fare(e: Any) -> Any:
    return e.fare


TRACED: list[Callable[[Any], Any]] = [
    lambda w: Stats(w.count(), w.avg(lambda e: e.fare)),
    lambda w: Stats(n=w.count(), mean=w.sum(lambda e: e.fare * RATE) / w.count()),
    lambda w: w.udm(Scaled(2.0), lambda e: e.fare),
    lambda w: w.udm(Scaled, lambda e: e.fare),
    lambda w: w.udm(SCALED, lambda e: e.fare, where=lambda e: e.zone == "a"),
    lambda w: w.udm(spread, lambda e: e.fare),
    lambda w: w.udm(Lives(), lambda e: e),
    lambda w: {"n": w.count(lambda e: e.zone), "d": w.count_distinct(lambda e: e.zone), "c": w.count(where=lambda e: e.fare > 4)},
    lambda w: (w.min(lambda e: e.fare), w.max(lambda e: e.fare), w.median(lambda e: e.fare)),
    lambda w: (w.first(lambda e: e.fare), w.last(lambda e: e.zone), w.collect(lambda e: e)),
    lambda w: w.quantile(lambda e: e.fare, 0.25, method="inverted_cdf"),
    lambda w: (w.stddev(lambda e: e.fare), w.variance(lambda e: e.fare)),
    lambda w: w.time_weighted_avg(lambda e: e.fare),
    lambda w: w.collect(lambda e: e.fare if e.zone == "a" else None),
    lambda w: w.collect(lambda e: [e.fare]),
    lambda w: w.avg(fare),
    lambda w: w.avg(sd.col("fare")),
    lambda w: when(w.count() > 2).then(w.max(lambda e: e.fare)).otherwise(None),
    lambda w: sd.when(w.count() > 2).then(Stats(w.count(), 0.0)).otherwise(None),
    lambda w: w.sum(lambda e, k=2: e.fare * k) + 1,
    lambda w: 7,
    lambda w: w.collect(lambda e: e.fare)[0],
    lambda w: sd.functions.coalesce(w.max(lambda e: e.fare), 0) + sd.functions.cast(w.avg(lambda e: e.fare), int),
]
OPAQUE: list[Callable[[Any], Any]] = [
    lambda w: w.count() if w.count() > 1 else None,
    lambda w: [w.count()],
    lambda w: round(w.avg(lambda e: e.fare), 1),
    lambda w: len(w.collect(lambda e: e)) + w.udm(Lives(), lambda e: e),
    lambda w: w.time_weighted_avg(lambda e: e.fare) or 0.0,
    lambda w: (w.first(lambda e: e.fare), w.last(lambda e: e.fare)) if True and w.count() else None,
    lambda w: getattr(w, "time_weighted_avg")(lambda e: e.fare),  # noqa: B009
    lambda w: w.collect(lambda e: e.fare - w.min(lambda x: x.fare)),
    lambda w: sorted(w.collect(lambda e: e.zone)),
    lambda w: {"a": {"n": w.count()}},
    lambda w: lit(1) + w.count(),
    lambda w: w.udm(Scaled(w.count()), lambda e: e.fare),
]


def frames(stream: Any) -> list[Any]:
    return [
        stream.tumbling_window(10),
        stream.snapshot_window(),
        stream.tumbling_window(10, clip=sd.Clip.FULL),
        stream.hopping_window(10, 5, clip=sd.Clip.LEFT),
    ]


def traced(function: Callable[[Any], Any]) -> bool:
    aggregates, _ = trace_window(function, TRIP)
    return not any(isinstance(agg.function, OpaqueWindow) for agg in aggregates)


def test_what_can_be_traced_is() -> None:
    assert [n for n, function in enumerate(TRACED) if not traced(function)] == []
    assert [n for n, function in enumerate(OPAQUE) if traced(function)] == []


@pytest.mark.parametrize("function", TRACED)
def test_opaque_windows_give_the_same_answer(function: Callable[[Any], Any]) -> None:
    class Same:
        """The same lambda, where it cannot be traced."""

        def __call__(self, w: Any) -> Any:
            return function(w)

    stream = sd.from_rows(ROWS)
    for frame in frames(stream):
        a, b = frame.aggregate(function).run().cht(), frame.aggregate(Same()).run().cht()
        assert a == b
        assert len(a) > 0


@pytest.mark.parametrize("function", OPAQUE)
def test_opaque_windows_agree_with_the_reference(function: Callable[[Any], Any]) -> None:
    for frame in frames(sd.from_rows(ROWS)):
        query = frame.aggregate(function)
        assert query.run().cht() == query.run(engine="reference").cht()


def test_what_a_trace_records() -> None:
    aggregates, projection = trace_window(
        lambda w: Stats(w.count(), w.avg(lambda e: e.fare), w.udm(SCALED, lambda e: e.fare)), TRIP
    )
    assert [agg.function for agg in aggregates] == [Count(), Avg(), SCALED]
    assert [agg.argument for agg in aggregates] == [None, Field("fare"), Field("fare")]
    assert describe(projection) == "Stats(n=e.a0, mean=e.a1, more=e.a2)"
    aggregates, projection = trace_window(lambda w: (w.key, w.quantile(lambda e: e.fare, 0.5)), TRIP)
    assert projection.values == (Key(), Field("a0"))  # type: ignore[attr-defined]
    assert aggregates[0].function == Quantile(0.5)
    aggregates, _ = trace_window(lambda w: w.median(lambda e: e.fare * RATE, where=lambda e: e.zone in "ab"), TRIP)
    assert aggregates[0].function == Median()
    assert aggregates[0].argument == Binary("*", Field("fare"), Constant(3))
    assert is_opaque(aggregates[0].where)


def test_free_names_are_read_when_the_lambda_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    k = 2
    aggregates, _ = trace_window(lambda w: w.sum(lambda e: e.fare * k), TRIP)
    opaque, _ = trace_window(lambda w: w.count() * k if w.count() else None, TRIP)
    inner, _ = trace_window(lambda w: w.sum(lambda e: e.fare * RATE if e.zone else 0), TRIP)
    k = 100
    monkeypatch.setattr(f"{__name__}.RATE", 100)
    assert aggregates[0].argument == Binary("*", Field("fare"), Constant(2))
    assert opaque[0].function.compute_result([Trip("a", 1.0)]) == 2  # type: ignore[attr-defined]
    assert inner[0].argument.function(Trip("a", 1.0)) == 3.0  # type: ignore[union-attr]


def test_expressions_over_rows_and_windows_do_not_mix() -> None:
    assert not traced(lambda w: w.count() + sd.col("fare"))
    assert not traced(lambda w: Stats(w.count(), sd.col("fare")))


def test_the_key_of_a_group() -> None:
    zones = sd.from_rows(ROWS).group_by("zone").tumbling_window(10)
    plain = zones.aggregate(lambda w: (w.key, w.sum(lambda e: e.fare))).run().cht()
    opaque = zones.aggregate(lambda w: (w.key, w.sum(lambda e: e.fare) or 0)).run().cht()
    assert plain == opaque
    assert [row.payload for row in plain][:3] == [("a", 5.0), ("b", 5.0), ("c", 4.0)]


def test_what_an_opaque_window_reads_decides_its_kind() -> None:
    def kind(function: Callable[[Any], Any]) -> type:
        return type(trace_window(function, TRIP)[0][0].function)

    assert kind(lambda w: w.count() or w.first(lambda e: e.fare)) is OpaquePayloads
    assert kind(lambda w: w.time_weighted_avg(lambda e: e.fare) or 0) is OpaqueClippedWindow
    assert kind(lambda w: w.udm(Lives()) or 0) is OpaqueWindow
    assert kind(lambda w: str(w)) is OpaqueWindow
    assert methods_used(lambda w: w.collect(lambda e: w.count())) == frozenset({"collect", "count"})
    assert methods_used(print) is None


def test_mistakes_are_refused_where_the_query_is_written() -> None:
    with pytest.raises(FieldNotFound, match="did you mean 'fare'"):
        trace_window(lambda w: w.avg(lambda e: e.fair), TRIP)
    with pytest.raises(QueryError, match="a window has no 'mean'; it has: key, count, sum, avg"):
        trace_window(lambda w: w.mean(lambda e: e.fare), TRIP)
    with pytest.raises(QueryError, match="between 0 and 1"):
        trace_window(lambda w: w.quantile(lambda e: e.fare, 2), TRIP)
    with pytest.raises(QueryError, match=r"w\.udm takes a user-defined aggregate"):
        trace_window(lambda w: w.udm("median", lambda e: e.fare), TRIP)
    with pytest.raises(QueryError, match=r"cannot be called with a window\nHint: write lambda w"):
        trace_window(lambda: 1, TRIP)
    with pytest.raises(QueryError, match="cannot be called with 1 row"):
        trace_window(lambda w: w.sum(lambda: 1), TRIP)
    with pytest.raises(QueryError, match=r"sd\.not_"):
        trace_window(lambda w: w.count(where=lambda e: ~(e.fare > 1)), TRIP)
    assert trace_window(lambda w: w.sum(lambda e: e.fare), None)[0][0].function == Sum()
