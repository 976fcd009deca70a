"""What type checkers infer for groups, and what they refuse."""

from __future__ import annotations

from typing import Any, assert_type

import streamdsl as sd
from tests.typing.payloads import Median, Stats, Top, Trip, ZoneStats, numbers, trips, zones

by_zone = trips.group_by(lambda e: e.zone)
hours = by_zone.tumbling_window("1h")


def keys() -> None:
    assert_type(by_zone, sd.GroupedStream[int, Trip])
    assert_type(trips.group_by(lambda e: (e.zone, e.vendor)), sd.GroupedStream[tuple[int, str], Trip])
    assert_type(trips.group_by("zone"), sd.GroupedStream[Any, Trip])
    assert_type(trips.group_by(["zone", "vendor"]), sd.GroupedStream[sd.Record, Trip])
    assert_type(numbers.group_by(lambda e: e > 2), sd.GroupedStream[bool, float])
    trips.group_by(lambda e: e.zoon)  # type: ignore[attr-defined]


def windows() -> None:
    assert_type(hours, sd.GroupedWindowedStream[int, Trip])
    assert_type(hours.aggregate(Median(), lambda e: e.fare), sd.Stream[tuple[int, float]])
    assert_type(hours.aggregate(Median, lambda e: e.fare), sd.Stream[tuple[int, float]])
    assert_type(hours.aggregate(n=sd.count(), mean=sd.avg(lambda e: e.fare)), sd.Stream[sd.Record])
    assert_type(hours.aggregate(lambda w: ZoneStats(w.key, w.count())), sd.Stream[ZoneStats])
    assert_type(hours.aggregate(lambda w: (w.key, w.udm(Median(), lambda e: e.fare))), sd.Stream[tuple[int, float]])
    assert_type(hours.aggregate_as(ZoneStats, n=sd.count()), sd.Stream[ZoneStats])
    assert_type(hours.aggregate_as(ZoneStats, sd.count()), sd.Stream[ZoneStats])
    assert_type(hours.aggregate_as(ZoneStats, sd.sum(lambda e: e.zone)), sd.Stream[ZoneStats])
    hours.aggregate_as(ZoneStats, sd.first(lambda e: e.vendor))  # type: ignore[arg-type]
    trips.group_by(lambda e: e.vendor).tumbling_window(5).aggregate_as(ZoneStats, sd.count())  # type: ignore[arg-type]
    assert_type(hours.apply(Top(2), lambda e: e.fare), sd.Stream[tuple[int, int]])
    hours.aggregate(Median())  # type: ignore[arg-type]
    hours.aggregate(Median(), lambda e: e.vendor)  # type: ignore[arg-type, return-value]
    hours.aggregate(lambda w: ZoneStats(w.key, w.avg(lambda e: e.fare)))  # type: ignore[arg-type]
    hours.aggregate(lambda w: w.avg(lambda e: e.faer))  # type: ignore[attr-defined]
    hours.aggregate(mean=sd.avg(lambda e: e.faer))  # type: ignore[attr-defined]
    hours.apply(Top(2), lambda e: e.vendor)  # type: ignore[arg-type, return-value]
    trips.tumbling_window("1h").aggregate(lambda w: w.key)  # type: ignore[attr-defined]


def queries() -> None:
    assert_type(by_zone.apply(lambda g: g.where(lambda e: e.fare > 3)), sd.Stream[tuple[int, Trip]])
    assert_type(by_zone.apply(lambda g: g.select(lambda e: e.vendor)), sd.Stream[tuple[int, str]])
    assert_type(
        by_zone.apply(lambda g: g.tumbling_window(10).aggregate(lambda w: Stats(w.count(), w.avg(lambda e: e.fare)))),
        sd.Stream[tuple[int, Stats]],
    )
    by_zone.apply(lambda g: g.select(lambda e: e.faer))  # type: ignore[attr-defined]
    by_zone.apply(lambda g: g.tumbling_window(10))  # type: ignore[arg-type, return-value]
    by_zone.join(zones)  # type: ignore[attr-defined]
