"""What type checkers infer for modules by name, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, assert_type

import streamdsl as sd
import streamdsl.udm
import streamdsl.udm.bases as bases
from streamdsl.udm import UDA, Catalog, builtin
from streamdsl.udm.listing import Entry
from streamdsl.udm.repository import Repository
from tests.typing.payloads import Median, Stats, Top, Trip, spread, trips

hours = trips.tumbling_window("1h")


def aggregates() -> None:
    free = sd.udm("median", lambda e: e.fare)
    assert_type(free, sd.Agg[Any, Any])
    assert_type(sd.udm("count"), sd.Agg[Any, Any])
    of_trips: sd.Agg[Trip, float] = sd.udm("median", lambda e: e.fare, where=lambda e: e.zone > 3)
    assert_type(hours.aggregate(m=free, n=sd.udm("count"), t=of_trips), sd.Stream[sd.Record])
    assert_type(hours.aggregate(q=sd.udm("quantile", lambda e: e.fare, q=0.9)), sd.Stream[sd.Record])
    assert_type(hours.aggregate_as(Stats, n=sd.udm("count"), mean=sd.udm("avg", lambda e: e.fare)), sd.Stream[Stats])
    hours.aggregate(m=sd.udm("median", lambda e: e.faer))  # type: ignore[attr-defined]
    hours.aggregate(m=sd.udm("median", lambda e: e.fare, where=lambda e: e.zoen > 3))  # type: ignore[attr-defined]
    sd.udm(Median, lambda e: e.fare)  # type: ignore[arg-type]
    sd.udm("median", "fare")  # type: ignore[arg-type]
    sd.udm()  # type: ignore[call-arg]


def modules() -> None:
    hours.apply(sd.udm.get("top", k=3), lambda e: e.fare)
    hours.aggregate(sd.udm.get("median"), lambda e: e.fare)
    hours.aggregate(lambda w: w.udm(sd.udm.get("median"), lambda e: e.fare))
    sd.udm.gte("median")  # type: ignore[attr-defined]


def registered() -> None:
    assert_type(sd.udm.register("median", Median), type[Median])
    assert_type(sd.udm.register("top", Top(3), replace=True), Top)
    assert_type(sd.udm.register("spread", spread).compute_result([1.0]), float)
    sd.udm.register("len", len)  # type: ignore[call-overload]
    sd.udm.register(Median)  # type: ignore[call-overload]

    @sd.udm.register("least")
    class Least(sd.UDA[float, float]):
        def compute_result(self, payloads: Sequence[float]) -> float:
            return min(payloads)

    assert_type(hours.aggregate(Least, lambda e: e.fare), sd.Stream[float])

    @sd.udm.register("half")
    @sd.udf
    def half(value: float) -> float:
        return value / 2

    assert_type(half(3.0), float)


def listed() -> None:
    assert_type(sd.udm.catalog(), Catalog)
    assert_type(sd.udm.catalog()[0], Entry)
    assert_type(sd.udm.catalog()[:2], Catalog)
    assert_type([entry.name for entry in sd.udm.catalog()], list[str])


def the_package_keeps_its_names() -> None:
    assert_type(sd.udm, Repository)
    base: Callable[[], UDA[Any, Any]] = builtin.Count
    same: Callable[[], bases.UDA[Any, Any]] = base
    hours.aggregate(same)
    streamdsl.udm("median")
