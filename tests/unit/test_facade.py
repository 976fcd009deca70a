"""The facade: the node that each method builds, and the queries that are refused where they are written."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

import streamdsl as sd
from streamdsl.errors import FieldNotFound, QueryError, UnitError
from streamdsl.expr.nodes import Attribute, Binary, Call, Constant, Expr, Field, Key, Life, Make, Whole
from streamdsl.expr.schema import Schema
from streamdsl.plan import node as algebra
from streamdsl.plan.node import Group, GroupApply, Matching, Source, WindowAggregate, WindowApply
from streamdsl.udm.aggregates import BoundAgg
from streamdsl.udm.builtin import Avg, Count, Median
from streamdsl.windows import Clip, Hopping, Output, Snapshot
from streamdsl.windows import Count as CountWindow


@dataclass(frozen=True)
class Trip:
    zone: int
    fare: float


class Zone(NamedTuple):
    id: int
    fare: float


@dataclass(frozen=True)
class Stats:
    zone: int
    n: int


class Fares(sd.UDA[float, float]):
    def compute_result(self, payloads: Sequence[float]) -> float:
        return sum(payloads)


class Top(sd.UDO[float, float]):
    def __init__(self, k: int) -> None:
        self.k = k

    def compute_result(self, payloads: Sequence[float]) -> Iterable[float]:
        return sorted(payloads)[-self.k :]


trips = sd.source("trips", Trip, unit="s")
zones = sd.source("zones", Zone, unit="s")
TRIPS, ZONES = trips.plan(), zones.plan()
FARE = Field("fare")
TRIP = Schema.of_type(Trip)
STATS = Schema.of_type(Stats) or Schema.scalar()


def key_of(stream: sd.Stream[Any]) -> Expr:
    plan = stream.plan()
    assert isinstance(plan, GroupApply)
    return plan.key


NODES: list[tuple[sd.Stream[Any], algebra.Node]] = [
    (trips, Source("trips", TRIP, "s")),
    (trips.where(lambda e: e.fare > 3), algebra.Where(TRIPS, Binary(">", FARE, Constant(3)))),
    (trips.where(sd.col("fare") > 3), algebra.Where(TRIPS, Binary(">", FARE, Constant(3)))),
    (trips.where(lambda e, life: life.le > 3), algebra.Where(TRIPS, Binary(">", Life("le"), Constant(3)))),
    (trips.select(lambda e: e.fare), algebra.Select(TRIPS, FARE)),
    (
        trips.select(lambda e: Stats(e.zone, e.zone)),
        algebra.Select(TRIPS, Make(STATS, (Field("zone"),) * 2)),
    ),
    (trips.select(f=lambda e: e.fare), algebra.Select(TRIPS, Make(Schema.record(["f"]), (FARE,)))),
    (trips.select_many(lambda e: (e.fare, e.fare)), algebra.SelectMany(TRIPS, Make(Schema.tuple(2), (FARE, FARE)))),
    (trips.alter_lifetime(5, lambda e: e.zone), algebra.AlterLifetime(TRIPS, Constant(5), Field("zone"))),
    (trips.alter_lifetime("1970-01-01T00:00:07", "1m"), algebra.AlterLifetime(TRIPS, Constant(7), Constant(60))),
    (trips.alter_lifetime(lambda e, life: life.re, 1), algebra.AlterLifetime(TRIPS, Life("re"), Constant(1))),
    (trips.alter_duration(timedelta(minutes=2)), algebra.AlterLifetime(TRIPS, None, Constant(120))),
    (trips.alter_duration("1h"), algebra.AlterLifetime(TRIPS, None, Constant(3600))),
    (trips.alter_duration(lambda e: e.zone), algebra.AlterLifetime(TRIPS, None, Field("zone"))),
    (trips.shift("-5s"), algebra.Shift(TRIPS, -5)),
    (trips.to_points(), algebra.AlterLifetime(TRIPS, None, Constant(1))),
    (trips.to_edges(), algebra.ToEdges(TRIPS, None)),
    (trips.to_edges("zone"), algebra.ToEdges(TRIPS, Field("zone"))),
    (trips.to_edges(lambda e: e.zone), algebra.ToEdges(TRIPS, Field("zone"))),
    (trips.clip_interval(1, "1970-01-01T00:00:09Z"), algebra.ClipInterval(TRIPS, 1, 9)),
    (trips.extend("1m"), algebra.Extend(TRIPS, 60)),
    (trips.clip_duration(timedelta(minutes=2)), algebra.ClipDuration(TRIPS, 120)),
    (trips.to_points_at_end(), algebra.ToPointsAtEnd(TRIPS)),
    (trips.quantize("1m", "30s", offset=5), algebra.Quantize(TRIPS, 60, 30, 5)),
    (trips.union(zones, trips), algebra.Union((TRIPS, ZONES, TRIPS))),
    (trips.join(zones), algebra.Join(TRIPS, ZONES, Matching())),
    (trips.join(zones, on="fare"), algebra.Join(TRIPS, ZONES, Matching(FARE, FARE))),
    (
        trips.join(trips, on=["zone", "fare"]),
        algebra.Join(TRIPS, TRIPS, Matching(*[Make(Schema.tuple(2), (Field("zone"), FARE))] * 2)),
    ),
    (
        trips.join(zones, on=(lambda t: t.zone, lambda z: z.id), where=lambda t, z: t.fare > z.fare, select=lambda t, z: z),
        algebra.Join(TRIPS, ZONES, Matching(Field("zone"), Field("id"), Binary(">", FARE, Field("fare", 1))), Whole(1)),
    ),
    (trips.anti_join(zones, on="fare"), algebra.AntiJoin(TRIPS, ZONES, Matching(FARE, FARE))),
    (trips.clip_by(zones, on="fare"), algebra.ClipBy(TRIPS, ZONES, Matching(FARE, FARE))),
    (trips.multicast(lambda s: s.union(s)), algebra.Union((TRIPS, TRIPS))),
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
        trips.snapshot_window(output=Output.POINT_AT_END),
        trips.count_window(3, by="end"),
    ]
    plans = [window.aggregate(n=sd.count()).plan() for window in windows]
    assert plans == [
        WindowAggregate(TRIPS, Hopping(3600, 300, 60), Clip.NONE, Output.ALIGN, N, ONE),
        WindowAggregate(TRIPS, Hopping(10, 10, 3), Clip.FULL, Output.ALIGN, N, ONE),
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
    assert shifted == GroupApply(TRIPS, Field("zone"), algebra.Shift(GROUP, 5), PAIR)


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
    assert plan.body.body == algebra.Shift(Group(TRIP, "s", 1), 5)
    after = trips.group_by("zone").apply(lambda g: g).group_by("_0").apply(lambda g: g).plan()
    assert isinstance(after, GroupApply)
    assert after.body == Group(Schema.tuple(2), "s", 0)


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
    assert "tumbling(5)" in repr(trips.group_by("zone").tumbling_window(5))


def refused(kind: type[Exception], *texts: str) -> Any:
    return pytest.raises(kind, match="(?s)" + ".*".join(map(re.escape, texts)))


REFUSED: list[tuple[Callable[[], object], type[Exception], tuple[str, ...]]] = [
    (lambda: trips.where(lambda e: e.faer > 3), FieldNotFound, ("'faer'", "zone, fare", "'fare'")),  # type: ignore[attr-defined]
    (lambda: trips.to_edges("zoen"), FieldNotFound, ("'zoen'", "zone, fare")),
    (lambda: trips.group_by("zoen"), FieldNotFound, ("'zoen'", "zone, fare")),
    (lambda: trips.group_by(["zone", "far"]), FieldNotFound, ("'far'", "zone, fare")),
    (lambda: trips.join(zones, on="zone"), FieldNotFound, ("'zone'", "id, fare")),
    (lambda: trips.join(zones, on=["fare", "id"]), FieldNotFound, ("'id'", "zone, fare")),
    (lambda: trips.join(zones, on=(lambda t: t.zone, lambda z: z.zone)), FieldNotFound, ("'zone'", "id, fare")),  # type: ignore[attr-defined]
    (lambda: trips.join(zones, on=lambda t: t.zone), QueryError, ("on=", "pair of lambdas")),  # type: ignore[call-overload]
    (lambda: trips.join(Trip(1, 2.0)), QueryError, ("not with Trip", "sd.from_rows")),  # type: ignore[call-overload]
    (lambda: trips.join(trips.group_by("zone")), QueryError, ("not with GroupedStream", "aggregate or apply")),  # type: ignore[call-overload]
    (lambda: trips.union(sd.source("t", unit="ms")), UnitError, ("ms, s",)),
    (lambda: trips.select(), QueryError, ("one lambda, or named ones",)),
    (lambda: trips.select(lambda e: e.fare, x=lambda e: e.fare), QueryError, ("one lambda, or named ones",)),  # type: ignore[call-overload]
    (lambda: trips.select(x=5), QueryError, ("x=5", "sd.lit(5)")),  # type: ignore[call-overload]
    (lambda: trips.alter_lifetime(5), QueryError, ("needs a duration", "shift(d)")),
    (lambda: trips.clip_interval(5, 3), QueryError, ("lo <= hi",)),
    (lambda: trips.quantize(0, 5), QueryError, ("size and a period > 0",)),
    (lambda: trips.quantize(5, -5), QueryError, ("size and a period > 0",)),
    (lambda: trips.shift("five"), UnitError, ("'five'",)),
    (lambda: sd.from_rows([(1, 2, 3)]).shift("5s"), UnitError, ("plain ticks", "'5s'")),
    (lambda: trips.group_by(5), QueryError, ("5 is not a key",)),  # type: ignore[call-overload]
    (lambda: trips.tumbling_window(0), QueryError, ("positive",)),
    (lambda: trips.count_window(0), QueryError, ("at least one",)),
    (lambda: trips.tumbling_window(5).aggregate(), QueryError, ("at least one aggregate",)),
    (lambda: trips.tumbling_window(5).aggregate(sd.count(), n=sd.count()), QueryError, ("and the names n",)),  # type: ignore[call-overload]
    (lambda: trips.tumbling_window(5).aggregate(n=5), QueryError, ("n=5 is not an aggregate", "n=sd.count()")),  # type: ignore[call-overload]
    (lambda: trips.tumbling_window(5).aggregate(n=Fares), QueryError, ("n=", "n=Fares().of(")),  # type: ignore[call-overload]
    (lambda: trips.tumbling_window(5).aggregate(Top), QueryError, ("not an aggregate",)),  # type: ignore[arg-type]
    (lambda: trips.tumbling_window(5).aggregate(sd.count), QueryError, ("sd.count is not called", "n=sd.count(...)")),  # type: ignore[arg-type]
    (lambda: trips.tumbling_window(5).aggregate(lambda w: (w.key, w.count())), QueryError, ("not grouped", "group_by")),  # type: ignore[attr-defined]
    (lambda: trips.tumbling_window(5).aggregate(lambda w: w.avg(lambda e: e.faer)), FieldNotFound, ("'faer'", "zone, fare")),  # type: ignore[attr-defined]
    (lambda: trips.tumbling_window(5).aggregate(5), QueryError, ("5 is not an aggregate",)),  # type: ignore[call-overload]
    (lambda: trips.tumbling_window(5).apply(Top, lambda e: e.fare), QueryError, ("without arguments", "Top(...)")),  # type: ignore[arg-type]
    (lambda: trips.tumbling_window(5).apply(Fares(), lambda e: e.fare), QueryError, ("aggregate(...)",)),  # type: ignore[call-overload]
    (lambda: trips.tumbling_window(5).apply(max), QueryError, ("sd.UDO",)),  # type: ignore[arg-type]
    (
        lambda: trips.tumbling_window(5, output=Output.UNCHANGED).aggregate(n=sd.count()),
        QueryError,
        ("no timestamps of its own", "Output.ALIGN"),
    ),
    (
        lambda: trips.tumbling_window(5, output=Output.CLIP).apply(Top(1), lambda e: e.fare),
        QueryError,
        ("Top is time-insensitive",),
    ),
    (lambda: trips.tumbling_window(5).aggregate_as(Stats, n=sd.count()), QueryError, ("Stats(zone, n)", "missing: zone")),
    (
        lambda: trips.tumbling_window(5).aggregate_as(Stats, n=sd.count(), zone=sd.count(), x=sd.count()),
        QueryError,
        ("unknown: x",),
    ),
    (lambda: trips.tumbling_window(5).aggregate_as(int, n=sd.count()), QueryError, ("dataclass",)),
    (
        lambda: trips.group_by("zone").tumbling_window(5).aggregate(zone=sd.count()),
        QueryError,
        ("'zone' has the name of the group's key",),
    ),
    (
        lambda: trips.group_by(lambda e: -e.zone).tumbling_window(5).aggregate_as(Stats, n=sd.count()),
        QueryError,
        ("unknown: key",),
    ),
    (lambda: trips.group_by("zone").apply(lambda g: zones), QueryError, ("the stream 'zones'", "lambda's own parameter")),
    (lambda: trips.group_by("zone").apply(lambda g: g.join(zones)), QueryError, ("the stream 'zones'",)),
    (
        lambda: trips.group_by("zone").apply(lambda g: g.group_by("fare").apply(lambda h: h.union(g))),
        QueryError,
        ("the rows of another group",),
    ),
    (lambda: trips.group_by("zone").apply(lambda g: g.tumbling_window(5)), QueryError, ("not a stream", "aggregate")),  # type: ignore[arg-type, return-value]
    (lambda: sd.source(""), QueryError, ("a source has a name",)),
    (lambda: sd.source("x", unit="fortnight"), UnitError, ("'fortnight'",)),  # type: ignore[arg-type]
    (lambda: sd.source("x", on_violation="ignore"), QueryError, ("'ignore'", "error, drop, adjust")),  # type: ignore[arg-type]
    (lambda: trips.union(sd.source("trips", Zone, unit="s")), QueryError, ("two different sources", "'trips'")),
    (lambda: sd.uda(lambda a, b, c: 1), QueryError, ("3 parameters",)),  # type: ignore[arg-type, misc]
    (lambda: sd.udo(Top), QueryError, ("sd.UDO",)),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("query", "kind", "texts"), REFUSED)
def test_refused_when_written(query: Callable[[], object], kind: type[Exception], texts: tuple[str, ...]) -> None:
    with refused(kind, *texts):
        query()


def test_fields_that_only_a_run_can_know_are_not_refused() -> None:
    anything = sd.source("anything")
    assert key_of(anything.group_by("zone").apply(lambda g: g)) == Field("zone")


RUNS: list[tuple[Callable[[], object], tuple[str, ...]]] = [
    (lambda: trips.run({"trips": []}, engine="flink"), ("'flink'", "local, reference, spark")),  # type: ignore[arg-type]
    (lambda: trips.explain("flink"), ("'flink'", "local, reference, spark")),  # type: ignore[arg-type]
    (lambda: trips.run(), ("'trips' is not bound", "run({'trips': events_or_frame})")),
    (lambda: trips.run({"trips": [], "zones": []}), ("no source 'zones'", "trips")),
    (lambda: trips.open("sometimes"), ("speculative", "'sometimes'")),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("run", "texts"), RUNS)
def test_refused_when_run(run: Callable[[], object], texts: tuple[str, ...]) -> None:
    with refused(QueryError, *texts):
        run()


def test_the_inside_of_a_group_runs_only_there() -> None:
    inside: list[sd.Stream[Trip]] = []
    trips.group_by("zone").apply(lambda g: inside.append(g) or g)  # type: ignore[func-returns-value]
    with refused(QueryError, "the inside of group_by", "return it"):
        inside[0].run()
    with refused(QueryError, "the inside of group_by"):
        inside[0].open()


ROWS = [(1, 5, Trip(1, 10.0)), (3, 9, Trip(2, 4.0)), (12, 14, Trip(1, 6.0))]


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_a_query_runs_on_any_binding(engine: Any) -> None:
    query = sd.source("trips", Trip).where(lambda e: e.fare > 5).select(lambda e: e.fare)
    expected = sd.CHT.from_rows([(1, 5, 10.0), (12, 14, 6.0)])
    events = [sd.Insert(str(le), le, re, trip) for le, re, trip in ROWS]
    for binding in (ROWS, events, sd.CHT.from_rows(ROWS), sd.from_rows(ROWS).run()):
        assert query.run({"trips": binding}, engine=engine).cht() == expected
    assert sd.from_rows(ROWS).where(lambda e: e.fare > 5).select(lambda e: e.fare).run(engine=engine).cht() == expected


def test_bounded_streams_keep_their_inputs_when_combined() -> None:
    left, right = sd.from_rows([(1, 5, "a")]), sd.from_rows([(3, 9, "b")])
    both = left.union(right).union(left)
    assert both.run().cht() == sd.CHT.from_rows([(1, 5, "a"), (1, 5, "a"), (3, 9, "b")])
    named = left.union(sd.source("more", str))
    assert named.run({"more": [(2, 3, "c")]}).cht() == sd.CHT.from_rows([(1, 5, "a"), (2, 3, "c")])


def test_until_takes_a_date() -> None:
    rows = sd.from_rows([("1970-01-01T00:00:01", sd.INFINITY, "a")], unit="s")
    counted = rows.tumbling_window("10s").aggregate(n=sd.count())
    assert counted.run(until="1970-01-01T00:00:20").cht() == sd.CHT.from_rows([(0, 10, {"n": 1}), (10, 20, {"n": 1})])


def test_describe_and_output_cti() -> None:
    cht = sd.CHT.from_rows([(1, 5, "a"), (8, 12, "b"), (20, sd.INFINITY, "c")])
    tens = sd.source("x").tumbling_window(10)
    described = tens.describe(cht, until=30)
    assert [(window, [row.payload for row in rows]) for window, rows in described] == [
        ((0, 10), ["a", "b"]),
        ((10, 20), ["b"]),
        ((20, 30), ["c"]),
    ]
    with pytest.raises(sd.errors.UnboundedOutputError):
        tens.describe(cht)
    assert tens.output_cti(cht, 17) == 10
    assert tens.output_cti(cht, 17, time_sensitive=True) == 10
    assert tens.output_cti(cht, 12, time_sensitive=True) == 0


def test_stream_yields_what_each_event_causes() -> None:
    async def numbers() -> AsyncIterator[sd.Event[int]]:
        yield sd.point("a", 1, 7)
        yield sd.Cti(5)
        yield sd.point("b", 6, 8)

    async def collect() -> list[sd.Event[int]]:
        return [event async for event in sd.source("numbers", int).where(lambda e: e.value > 7).stream(numbers())]

    assert asyncio.run(collect()) == [sd.Cti(5), sd.Insert("b", 6, 7, 8), sd.Cti(sd.INFINITY)]


def test_functions_as_modules() -> None:
    @sd.uda
    def late(events: Sequence[sd.IntervalEvent[float]], window: sd.WindowDescriptor) -> int:
        return sum(event.start_time > window.start_time for event in events)

    @sd.udo
    def halves(events: Sequence[sd.IntervalEvent[float]], window: sd.WindowDescriptor) -> list[sd.IntervalEvent[float]]:
        return [sd.IntervalEvent(event.start_time, window.end_time, event.payload / 2) for event in events]

    assert (late.label, late.time_sensitive, late.returns_many) == ("late", True, False)
    assert (halves.label, halves.time_sensitive, halves.returns_many) == ("halves", True, True)
    rows = sd.from_rows([(0, 2, 4.0), (3, 12, 6.0)])
    assert rows.tumbling_window(10).aggregate(late).run().cht() == sd.CHT.from_rows([(0, 10, 1), (10, 20, 0)])
    stamped = rows.clip_interval(0, 10).tumbling_window(10, output=Output.UNCHANGED).apply(halves)
    assert stamped.run().cht() == sd.CHT.from_rows([(0, 10, 2.0), (3, 10, 3.0)])
