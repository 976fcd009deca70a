"""What type checkers infer for sources and span-based operators, and what they refuse."""

# ruff: noqa: F841 (an assignment is a test of its type)

from __future__ import annotations

from datetime import timedelta
from typing import Any, assert_type

import streamdsl as sd
from streamdsl.testing import UdmReport, check_udm, run_udm
from streamdsl.udm import UDSO
from tests.typing.payloads import Stats, Trip, numbers, trips, zones


def sources() -> None:
    assert_type(trips, sd.Stream[Trip])
    assert_type(numbers, sd.Stream[float])
    assert_type(sd.source("anything"), sd.Stream[Any])
    assert_type(sd.from_rows([(1, 5, Trip(1, 2.0, "x", 3.0))]), sd.Stream[Trip])
    assert_type(sd.from_rows([("2013-02-08", "2013-02-09", 5)], unit="s"), sd.Stream[int])
    assert_type(sd.from_rows([(1, 5, {"zone": 1})]), sd.Stream[sd.Record])
    assert_type(sd.from_events([sd.point("a", 1, Stats(1, 2.0)), sd.Cti(3)]), sd.Stream[Stats])
    assert_type(sd.from_events([sd.Insert("a", 1, 5, "x"), sd.Retract("a", 1, 5, 3)]), sd.Stream[str])
    assert_type(sd.from_csv("trips.csv", Trip, start="at"), sd.Stream[Trip])
    assert_type(sd.from_csv("trips.csv"), sd.Stream[sd.Record])
    sd.source("trips", Trip, on_violation="ignore")  # type: ignore[arg-type]


def where() -> None:
    assert_type(trips.where(lambda e: e.fare > 3), sd.Stream[Trip])
    assert_type(trips.where(lambda e: (e.fare > 3) & (e.vendor == "x")), sd.Stream[Trip])
    assert_type(trips.where(lambda e, life: life.re - life.le > 3), sd.Stream[Trip])
    assert_type(trips.where(sd.col("fare") > 3), sd.Stream[Trip])
    assert_type(numbers.where(lambda e: e / 2 > 3), sd.Stream[float])
    assert_type(numbers.where(lambda e: e.is_integer()), sd.Stream[float])
    numbers.where(lambda e: e.value > 3)  # type: ignore[attr-defined]
    trips.where(lambda e: e.faer > 3)  # type: ignore[attr-defined]
    trips.where(lambda e: e.vendor > 3)  # type: ignore[operator]
    numbers.where(lambda e: e.valeu > 3)  # type: ignore[attr-defined]
    trips.where(3)  # type: ignore[call-overload]


def select() -> None:
    assert_type(trips.select(lambda e: e.fare), sd.Stream[float])
    assert_type(trips.select(lambda e: e.value), sd.Stream[float])
    assert_type(trips.select(lambda e: Stats(e.zone, e.fare)), sd.Stream[Stats])
    assert_type(trips.select(lambda e: (e.vendor, e.fare)), sd.Stream[tuple[str, float]])
    assert_type(trips.select(lambda e, life: life.le), sd.Stream[int])
    assert_type(trips.select(cents=lambda e: e.fare * 100, vendor=sd.col("vendor")), sd.Stream[sd.Record])
    assert_type(numbers.select(lambda e: round(e)), sd.Stream[int])
    assert_type(numbers.select(lambda e: e * 2), sd.Stream[float])
    assert_type(numbers.select(lambda e: e), sd.Stream[float])
    assert_type(numbers.select(double=lambda e: e * 2), sd.Stream[sd.Record])
    trips.select(lambda e: e.faer)  # type: ignore[attr-defined]
    trips.select(lambda e: Stats(e.zone, e.vendor))  # type: ignore[arg-type]
    trips.select(cents=lambda e: e.faer)  # type: ignore[attr-defined]
    trips.select(lambda e: {"cents": e.fare}).where(lambda e: e.cents > 3)
    trips.select(cents=lambda e: e.fare).where(lambda e: e.cents > 3)
    trips.select_many(lambda e: e.fare)  # type: ignore[arg-type, return-value]
    assert_type(trips.select_many(lambda e: e.vendor.split()), sd.Stream[str])


class Total(UDSO[float, float, float]):
    def create_state(self) -> float:
        return 0.0

    def process(self, state: float, payload: float, le: int) -> tuple[float, list[float]]:
        return state + payload, [state + payload]


def scan() -> None:
    assert_type(numbers.scan(Total()), sd.Stream[float])
    assert_type(trips.select(lambda e: e.fare).scan(Total), sd.Stream[float])
    trips.scan(Total)  # type: ignore[arg-type]
    assert_type(check_udm(Total), UdmReport)
    assert_type(run_udm(Total(), [(0, 1, 2.0)]), list[sd.CHTRow[float]])
    run_udm(Total(), [(0, 1, 2.0)], (0, 10))  # type: ignore[call-overload]


def fill() -> None:
    assert_type(numbers.fill(5, 0.0, end=50), sd.Stream[float])
    assert_type(trips.tumbling_window(5).aggregate(n=sd.count()).fill("5m", {"n": 0}, end="2013-02-09"), sd.Stream[sd.Record])
    trips.fill(5, {"n": 0}, end=50)  # type: ignore[arg-type]


def unknown_payloads() -> None:
    anything = sd.source("anything")
    records = sd.from_rows([(1, 5, {"zone": 1, "fare": 2.0})])
    assert_type(anything.where(lambda e: e.fare > 3), sd.Stream[Any])
    assert_type(anything.select(lambda e: Stats(e.zone, e.fare)), sd.Stream[Stats])
    assert_type(
        anything.group_by(lambda e: e.zone).tumbling_window(5).aggregate(n=sd.max(lambda e: e.fare)), sd.Stream[sd.Record]
    )
    assert_type(anything.tumbling_window(5).aggregate(lambda w: Stats(w.count(), w.avg(lambda e: e.fare))), sd.Stream[Stats])
    assert_type(records.where(lambda e: (e.fare > 3) & (e["zone"] == 1)), sd.Stream[sd.Record])
    assert_type(records.select(lambda e: Stats(e.zone, e["fare"])), sd.Stream[Stats])


def lifetimes() -> None:
    assert_type(trips.alter_lifetime(lambda e: e.zone, 5), sd.Stream[Trip])
    assert_type(trips.alter_lifetime(start=lambda e, life: life.re, duration="1h"), sd.Stream[Trip])
    assert_type(trips.alter_lifetime(duration=lambda e, life: life.re - life.le), sd.Stream[Trip])
    assert_type(trips.alter_lifetime(lambda e, life: life.re, lambda e, life: life.re - life.le), sd.Stream[Trip])
    assert_type(trips.alter_duration(timedelta(seconds=5)), sd.Stream[Trip])
    assert_type(trips.alter_duration(lambda e: e.zone), sd.Stream[Trip])
    assert_type(numbers.alter_duration(lambda e: round(e)), sd.Stream[float])
    assert_type(trips.shift("-5m").to_points().clip_interval(0, "2013-02-08"), sd.Stream[Trip])
    assert_type(trips.extend("-5m").clip_duration(60).to_points_at_end().quantize("1h", "5m", offset=3), sd.Stream[Trip])
    assert_type(trips.to_edges(), sd.Stream[Trip])
    assert_type(trips.distinct(), sd.Stream[Trip])
    assert_type(trips.distinct(lambda e: (e.zone, e.vendor)), sd.Stream[tuple[int, str]])
    assert_type(numbers.distinct(lambda e: round(e)), sd.Stream[int])
    assert_type(trips.to_edges("zone"), sd.Stream[Trip])
    assert_type(trips.to_edges(lambda e: (e.zone, e.vendor)), sd.Stream[Trip])
    trips.alter_duration(lambda e: e.faer)  # type: ignore[attr-defined]
    trips.alter_lifetime(lambda e: e.vendor, 5)  # type: ignore[arg-type, return-value]
    trips.to_edges(lambda e: e.zoon)  # type: ignore[attr-defined]
    trips.shift(lambda e: e.zone)  # type: ignore[arg-type]


def top_k() -> None:
    hours = trips.tumbling_window("1h")
    assert_type(hours.top_k(3, by="fare"), sd.Stream[Trip])
    assert_type(hours.top_k(3, by=lambda e: e.fare, rank=True), sd.Stream[tuple[int, Trip]])
    assert_type(hours.top_k(3, by=lambda e: e.fare, rank="place"), sd.Stream[sd.Record])
    assert_type(trips.group_by(lambda e: e.zone).tumbling_window(5).top_k(1, "fare", rank="place"), sd.Stream[sd.Record])
    assert_type(numbers.tumbling_window(5).top_k(3, lambda e: -e), sd.Stream[float])
    assert_type(trips.group_by(lambda e: e.zone).tumbling_window(5).top_k(1, lambda e: e.fare), sd.Stream[tuple[int, Trip]])
    hours.top_k(3, by=lambda e: e.faer)  # type: ignore[attr-defined]


def union() -> None:
    assert_type(trips.union(trips, trips), sd.Stream[Trip])
    assert_type(trips.union(numbers), sd.Stream[Trip | float])
    assert_type(trips.multicast(lambda s: s.join(s.shift(5), on="zone")), sd.Stream[tuple[Trip, Trip]])
    trips.union(lambda e: e)  # type: ignore[arg-type]


def subtypes() -> None:
    wide: sd.Stream[object] = trips
    named: sd.Stream[tuple[int, str]] = zones
    narrow: sd.Stream[Trip] = numbers  # type: ignore[assignment]
