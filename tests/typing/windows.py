"""What type checkers infer for windows with aggregates and operators, and what they refuse."""

from __future__ import annotations

from typing import assert_type

import streamdsl as sd
from tests.typing.payloads import (
    Fares,
    Longest,
    Median,
    Samples,
    Stats,
    Top,
    Trip,
    busy,
    extremes,
    numbers,
    spread,
    trips,
)

hours = trips.tumbling_window("1h")
tens = numbers.hopping_window(10, 5)


def kinds() -> None:
    assert_type(hours, sd.WindowedStream[Trip])
    assert_type(trips.hopping_window("1h", "5m", "1m", clip=sd.Clip.FULL, output=sd.Output.ALIGN), sd.WindowedStream[Trip])
    assert_type(trips.snapshot_window(), sd.WindowedStream[Trip])
    assert_type(trips.count_window(5, by="end"), sd.WindowedStream[Trip])
    assert_type(trips.windows(sd.astral.range_slide(3600, 60), start="2024-01-01"), sd.WindowedStream[Trip])
    assert_type(trips.group_by(lambda e: e.zone).windows(sd.astral.landmark()), sd.GroupedWindowedStream[int, Trip])
    trips.windows(sd.astral.landmark)  # type: ignore[arg-type]
    trips.windows(sd.astral.landmark().partitioned("zone"))  # type: ignore[arg-type]
    trips.count_window(5, by="middle")  # type: ignore[arg-type]


def modules() -> None:
    assert_type(tens.aggregate(Median), sd.Stream[float])
    assert_type(tens.aggregate(Median()), sd.Stream[float])
    assert_type(tens.aggregate(spread), sd.Stream[float])
    assert_type(hours.aggregate(Fares), sd.Stream[list[float]])
    assert_type(hours.aggregate(Median, lambda e: e.fare), sd.Stream[float])
    assert_type(hours.aggregate(Median(), lambda e: e.fare), sd.Stream[float])
    assert_type(hours.aggregate(Longest(), lambda e: e.vendor), sd.Stream[int])
    assert_type(hours.aggregate(spread, lambda e: e.fare), sd.Stream[float])
    assert_type(hours.aggregate(busy, lambda e: e.vendor), sd.Stream[int])
    assert_type(tens.aggregate(Median(), lambda e: e * 2), sd.Stream[float])
    hours.aggregate(Median)  # type: ignore[arg-type]
    hours.aggregate(Median())  # type: ignore[arg-type]
    tens.aggregate(Fares)  # type: ignore[arg-type]
    hours.aggregate(Median(), lambda e: e.vendor)  # type: ignore[arg-type, return-value]
    hours.aggregate(Median(), lambda e: e.faer)  # type: ignore[attr-defined]
    hours.aggregate(spread, lambda e: e.vendor)  # type: ignore[arg-type, return-value]
    hours.aggregate(Top)  # type: ignore[arg-type]


def window_lambda() -> None:
    assert_type(hours.aggregate(lambda w: w.count()), sd.Stream[int])
    assert_type(hours.aggregate(lambda w: Stats(w.count(), w.avg(lambda e: e.fare))), sd.Stream[Stats])
    assert_type(hours.aggregate(lambda w: w.udm(Median(), lambda e: e.fare)), sd.Stream[float])
    assert_type(hours.aggregate(lambda w: w.udm(Fares)), sd.Stream[list[float]])
    assert_type(hours.aggregate(lambda w: w.max(lambda e: e.zone) - w.min(lambda e: e.zone)), sd.Stream[int])
    assert_type(hours.aggregate(lambda w: w.collect(lambda e: e.vendor, where=lambda e: e.fare > 3)), sd.Stream[list[str]])
    assert_type(hours.aggregate(lambda w: w.quantile(lambda e: e.fare, 0.9, "inverted_cdf")), sd.Stream[float])
    assert_type(tens.aggregate(lambda w: w.avg(lambda e: e)), sd.Stream[float])
    assert_type(tens.aggregate(lambda w: w.udm(Median) + w.udm(spread, lambda e: -e)), sd.Stream[float])
    hours.aggregate(lambda w: w.avg(lambda e: e.faer))  # type: ignore[attr-defined]
    hours.aggregate(lambda w: w.avg(lambda e: e.vendor))  # type: ignore[arg-type, return-value]
    hours.aggregate(lambda w: w.udm(Median(), lambda e: e.vendor))  # type: ignore[arg-type, return-value]
    hours.aggregate(lambda w: Stats(w.count(), w.first(lambda e: e.vendor)))  # type: ignore[arg-type]
    hours.aggregate(lambda w: w.mode(lambda e: e.fare))  # type: ignore[attr-defined]


def named_aggregates() -> None:
    assert_type(hours.aggregate(n=sd.count()), sd.Stream[sd.Record])
    assert_type(
        hours.aggregate(
            n=sd.count(where=lambda e: e.fare > 3),
            total=sd.sum(lambda e: e.fare),
            mean=sd.avg(lambda e: e.fare),
            low=sd.min(lambda e: e.fare),
            high=sd.max(lambda e: e.fare),
            middle=sd.median(lambda e: e.fare),
            tail=sd.quantile(lambda e: e.fare, 0.9),
            sd=sd.stddev(lambda e: e.fare),
            var=sd.variance(lambda e: e.fare),
            vendors=sd.count_distinct(lambda e: e.vendor),
            first=sd.first(lambda e: e.vendor),
            last=sd.last(lambda e: e.vendor),
            all=sd.collect(lambda e: e.vendor),
            load=sd.time_weighted_avg(lambda e: e.fare),
            med=Median().of(lambda e: e.fare),
            spread=spread.of(lambda e: e.fare),
        ),
        sd.Stream[sd.Record],
    )
    assert_type(tens.aggregate(n=sd.count(), mean=sd.avg(lambda e: e)), sd.Stream[sd.Record])
    assert_type(tens.aggregate(med=Median().of(lambda e: e)), sd.Stream[sd.Record])
    assert_type(hours.aggregate(sd.count()), sd.Stream[int])
    assert_type(hours.aggregate(sd.sum(lambda e: e.zone)), sd.Stream[int])
    assert_type(tens.aggregate(sd.max(lambda e: e)), sd.Stream[float])
    mean: sd.Agg[Trip, float] = sd.avg(lambda e: e.fare)
    hours.aggregate(mean=mean)
    tens.aggregate(mean=mean)  # type: ignore[arg-type]
    tens.aggregate(mean=sd.avg(lambda e: e.valeu))  # type: ignore[attr-defined]
    hours.aggregate(mean=sd.avg(lambda e: e.faer))  # type: ignore[attr-defined]
    hours.aggregate(mean=sd.avg(lambda e: e.vendor))  # type: ignore[arg-type, return-value]
    hours.aggregate(n=sd.count(where=lambda e: e.faer > 3))  # type: ignore[attr-defined]
    hours.aggregate(med=Median().of(lambda e: e.faer))  # type: ignore[attr-defined]
    hours.aggregate(med=Median().of(lambda e: e.vendor))  # type: ignore[arg-type, return-value]
    hours.aggregate(n=3)  # type: ignore[call-overload]


def aggregate_as() -> None:
    assert_type(hours.aggregate_as(Stats, n=sd.count(), mean=sd.avg(lambda e: e.fare)), sd.Stream[Stats])
    assert_type(tens.aggregate_as(Stats, n=sd.count(), mean=sd.avg(lambda e: e)), sd.Stream[Stats])
    hours.aggregate_as(Stats, n=sd.count(), mean=sd.avg(lambda e: e.faer))  # type: ignore[attr-defined]
    assert_type(hours.aggregate_as(Stats, sd.count(), sd.avg(lambda e: e.fare)), sd.Stream[Stats])
    assert_type(hours.aggregate_as(Stats, sd.count_distinct(lambda e: e.zone), Median().of(lambda e: e.fare)), sd.Stream[Stats])
    assert_type(tens.aggregate_as(Stats, sd.count(where=lambda e: e > 3), sd.max(lambda e: e)), sd.Stream[Stats])
    hours.aggregate_as(Stats, sd.count(), sd.first(lambda e: e.vendor))  # type: ignore[arg-type]
    hours.aggregate_as(Stats, sd.avg(lambda e: e.fare), sd.count())  # type: ignore[arg-type]
    hours.aggregate_as(Stats, sd.count())  # type: ignore[arg-type]
    hours.aggregate_as(Stats, sd.count(), sd.avg(lambda e: e.faer))  # type: ignore[attr-defined]


def apply() -> None:
    assert_type(tens.apply(Top), sd.Stream[int])
    assert_type(tens.apply(Top(3)), sd.Stream[int])
    assert_type(tens.apply(extremes), sd.Stream[float])
    assert_type(hours.apply(Top(3), lambda e: e.fare), sd.Stream[int])
    assert_type(hours.apply(Samples(), lambda e: e.fare), sd.Stream[str])
    hours.apply(Top(3))  # type: ignore[arg-type]
    hours.apply(Top(3), lambda e: e.vendor)  # type: ignore[arg-type, return-value]
    hours.apply(Top(3), lambda e: e.faer)  # type: ignore[attr-defined]
    tens.apply(Median)  # type: ignore[arg-type]
