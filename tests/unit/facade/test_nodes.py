"""The node that each method of the facade builds, and what streams are as values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.expr.nodes import Attribute, Binary, Call, Constant, Expr, Field, Key, Make, Whole
from streamdsl.expr.schema import Schema
from streamdsl.plan import node as algebra
from streamdsl.plan.node import Group, GroupApply, Source, WindowAggregate, WindowApply
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.udm.builtin import Avg, Count, Median
from streamdsl.windows import CalendarPeriods, Clip, Hopping, Output, Snapshot
from streamdsl.windows import Count as CountWindow
from tests.operators import entries
from tests.unit.facade.trips import FARE, STATS, TRIP, TRIPS, ZONES, Stats, Top, Trip, trips, zones

NODES: list[Any] = [
    (trips, Source("trips", TRIP, "s")),
    (trips.multicast(lambda s: s.union(s)), algebra.Union((TRIPS, TRIPS))),
    *(pytest.param(*each, id=f"{name} {i}") for name, entry in entries().items() for i, each in enumerate(entry.plans)),
]


@pytest.mark.parametrize(("query", "node"), NODES, ids=lambda value: value.plan().name if isinstance(value, sd.Stream) else "")
def test_each_method_builds_one_node(query: sd.Stream[Any], node: algebra.Node) -> None:
    assert query.plan() == node


N = (BoundAgg(Count()),)
MEDIAN = (BoundAgg(Median(), FARE),)
A0 = Field("a0")
ONE = Make(Schema.record(["n"]), (A0,))
HOUR = (Hopping(3600, 3600), Clip.NONE, Output.ALIGN)


def test_windows_carry_their_policies() -> None:
    windows = [
        trips.hopping_window("1h", "5m", "1m"),
        trips.tumbling_window(10, 3, clip=Clip.FULL),
        trips.calendar_window("month", 2, tz="Europe/Berlin", clip=Clip.LEFT),
        trips.snapshot_window(output=Output.POINT_AT_END),
        trips.count_window(3, by="end"),
    ]
    plans = [window.aggregate(n=sd.count()).plan() for window in windows]
    assert plans == [
        WindowAggregate(TRIPS, Hopping(3600, 300, 60), Clip.NONE, Output.ALIGN, N, ONE),
        WindowAggregate(TRIPS, Hopping(10, 10, 3), Clip.FULL, Output.ALIGN, N, ONE),
        WindowAggregate(TRIPS, CalendarPeriods("month", 2, "Europe/Berlin", "s"), Clip.LEFT, Output.ALIGN, N, ONE),
        WindowAggregate(TRIPS, Snapshot(), Clip.NONE, Output.POINT_AT_END, N, ONE),
        WindowAggregate(TRIPS, CountWindow(3, "end"), Clip.NONE, Output.ALIGN, N, ONE),
    ]


def test_the_forms_of_aggregate() -> None:
    hours = trips.tumbling_window("1h")
    single = WindowAggregate(TRIPS, *HOUR, MEDIAN, A0)
    assert hours.aggregate(Median, lambda e: e.fare).plan() == single
    assert hours.aggregate(Median(), lambda e: e.fare).plan() == single
    assert hours.aggregate(Median().of(lambda e: e.fare)).plan() == single
    named = hours.aggregate(n=sd.count(where=lambda e: e.fare > 3), mean=sd.avg(lambda e: e.fare)).plan()
    aggregates = (BoundAgg(Count(), None, Binary(">", FARE, Constant(3))), BoundAgg(Avg(), FARE))
    record = Make(Schema.record(["n", "mean"]), (A0, Field("a1")))
    assert named == WindowAggregate(TRIPS, *HOUR, aggregates, record)


def test_the_window_lambda_is_the_projection() -> None:
    hours = trips.tumbling_window("1h")
    built = hours.aggregate(lambda w: Stats(w.count(), w.count(where=lambda e: e.fare > 3))).plan()
    counts = (*N, BoundAgg(Count(), None, Binary(">", FARE, Constant(3))))
    assert built == WindowAggregate(TRIPS, *HOUR, counts, Make(STATS, (A0, Field("a1"))))
    grouped = trips.group_by("zone").tumbling_window("1h").aggregate(lambda w: Stats(w.key, w.count())).plan()
    body = WindowAggregate(GROUP, *HOUR, N, Make(STATS, (Key(), A0)))
    assert grouped == GroupApply(TRIPS, Field("zone"), body, Whole())


def test_names_of_fields_and_aggregates_are_free() -> None:
    plan = trips.tumbling_window(10).aggregate(query=sd.count(), f=sd.count(), self=sd.count()).plan()
    assert plan.schema == Schema.record(["query", "f", "self"])
    assert trips.select(self=lambda e: e.fare, f=lambda e: e.zone).plan().schema == Schema.record(["self", "f"])


def test_aggregate_as_puts_the_names_in_the_order_of_the_class() -> None:
    plan = trips.tumbling_window(10).aggregate_as(Stats, n=sd.count(), zone=sd.max(lambda e: e.zone)).plan()
    assert isinstance(plan, WindowAggregate)
    assert plan.projection == Make(STATS, (Field("a1"), A0))


def test_aggregate_as_without_names_is_that_with_the_names_of_the_class() -> None:
    windows, groups = trips.tumbling_window(10), trips.group_by("zone").tumbling_window(10)
    first: sd.Agg[Trip, int] = sd.max(lambda e: e.zone)
    count = sd.count()
    rows = {"trips": [(1, 2, Trip(3, 4.0)), (2, 3, Trip(3, 5.0))]}
    assert windows.aggregate_as(Stats, first, count).plan() == windows.aggregate_as(Stats, zone=first, n=count).plan()
    assert groups.aggregate_as(Stats, count).plan() == groups.aggregate_as(Stats, n=count).plan()
    twice = trips.group_by(lambda e: e.zone * 2).tumbling_window(10).aggregate_as(Stats, count)
    named = trips.group_by(lambda e: {"zone": e.zone * 2}).tumbling_window(10).aggregate_as(Stats, n=count)
    assert [row.payload for row in twice.run(rows).cht()] == [Stats(6, 2)]
    assert twice.run(rows) == named.run(rows)


def test_aggregate_as_a_class_with_code_of_its_own_calls_it() -> None:
    @dataclass
    class Sized:
        n: int

        def __post_init__(self) -> None:
            self.n *= 2

    plan = trips.tumbling_window(10).aggregate_as(Sized, n=sd.count()).plan()
    assert isinstance(plan, WindowAggregate)
    assert isinstance(plan.projection, Call)
    assert plan.projection.function(4) == Sized(4)


def test_apply_takes_the_operator_and_its_argument() -> None:
    top = Top(2)
    plan = trips.tumbling_window("1h").apply(top, lambda e: e.fare).plan()
    assert plan == WindowApply(TRIPS, *HOUR, top, FARE)


GROUP = Group(TRIP, "s", 0)
PAIR = Make(Schema.tuple(2), (Key(), Whole()))
GROUPED: list[tuple[Callable[[Any], sd.Stream[Any]], algebra.Node, Expr]] = [
    (lambda w: w.aggregate(Median(), lambda e: e.fare), WindowAggregate(GROUP, *HOUR, MEDIAN, A0), PAIR),
    (
        lambda w: w.aggregate(n=sd.count()),
        WindowAggregate(GROUP, *HOUR, N, ONE),
        Make(Schema.record(["zone", "n"]), (Key(), Field("n"))),
    ),
    (
        lambda w: w.aggregate_as(Stats, n=sd.count()),
        WindowAggregate(GROUP, *HOUR, N, ONE),
        Make(STATS, (Key(), Field("n"))),
    ),
]


@pytest.mark.parametrize(("finish", "body", "projection"), GROUPED)
def test_grouped_windows(finish: Callable[[Any], sd.Stream[Any]], body: algebra.Node, projection: Expr) -> None:
    plan = finish(trips.group_by(lambda e: e.zone).tumbling_window("1h")).plan()
    assert plan == GroupApply(TRIPS, Field("zone"), body, projection)


def test_grouped_operators_and_queries_give_pairs() -> None:
    top = Top(2)
    by_zone = trips.group_by("zone")
    applied = GroupApply(TRIPS, Field("zone"), WindowApply(GROUP, *HOUR, top, FARE), PAIR)
    assert by_zone.tumbling_window("1h").apply(top, lambda e: e.fare).plan() == applied
    shifted = by_zone.apply(lambda g: g.shift(5)).plan()
    assert shifted == GroupApply(TRIPS, Field("zone"), algebra.shift(GROUP, 5), PAIR)


KEYS: list[tuple[Any, dict[str, Expr]]] = [
    ("zone", {"zone": Key()}),
    (lambda e: e.zone, {"zone": Key()}),
    (["zone", "fare"], {"zone": Attribute(Key(), "zone"), "fare": Attribute(Key(), "fare")}),
    (lambda e: {"z": e.zone, "cheap": e.fare < 3}, {"z": Attribute(Key(), "z"), "cheap": Attribute(Key(), "cheap")}),
    (lambda e: (e.zone, e.fare), {"key": Key()}),
    (lambda e: e.fare < 3, {"key": Key()}),
    (lambda e: f"{e.zone}", {"key": Key()}),
]


@pytest.mark.parametrize(("key", "parts"), KEYS)
def test_the_key_comes_first_in_a_record(key: Any, parts: dict[str, Expr]) -> None:
    plan = trips.group_by(key).tumbling_window(10).aggregate(n=sd.count()).plan()
    assert isinstance(plan, GroupApply)
    assert plan.projection == Make(Schema.record([*parts, "n"]), (*parts.values(), Field("n")))


def test_groups_inside_groups_are_told_apart() -> None:
    plan = trips.group_by("zone").apply(lambda g: g.group_by("fare").apply(lambda h: h.shift(5))).plan()
    assert isinstance(plan, GroupApply)
    assert isinstance(plan.body, GroupApply)
    assert plan.body.input == GROUP
    assert plan.body.body == algebra.shift(Group(TRIP, "s", 1), 5)
    after = trips.group_by("zone").apply(lambda g: g).group_by("_0").apply(lambda g: g).plan()
    assert isinstance(after, GroupApply)
    assert after.body == Group(Schema.tuple(2), "s", 0)


def test_fields_that_only_a_run_can_know_are_not_refused() -> None:
    plan = sd.source("anything").group_by("zone").apply(lambda g: g).plan()
    assert isinstance(plan, GroupApply)
    assert plan.key == Field("zone")


def test_streams_do_not_change() -> None:
    before = trips.plan()
    trips.where(lambda e: e.fare > 3).shift(5).union(zones)
    assert trips.plan() is before
    with pytest.raises(AttributeError):
        trips._node = ZONES  # type: ignore[misc]


def test_streams_say_what_they_are() -> None:
    shown = [repr(stream) for stream in (trips.shift(5), sd.source("x"), trips.group_by("zone"), trips.count_window(3))]
    assert shown == [
        "<Stream of Trip(zone, fare), made by Shift>",
        "<Stream of payloads known at run time, made by Source>",
        "<GroupedStream of Trip(zone, fare)>",
        "<WindowedStream count(3, by=start) of Trip(zone, fare)>",
    ]
    assert "tumbling(5s)" in repr(trips.group_by("zone").tumbling_window(5))
