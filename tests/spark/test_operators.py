"""Every operator on Spark gives what the definition says, on random histories, alone and inside groups."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import streamdsl as sd
from streamdsl.errors import UnsupportedOnSpark
from streamdsl.udm.top_k import TopK
from tests.laws.modules import Since
from tests.operators import entries, kinds
from tests.spark.helpers import check, check_many, explained, history, lowered_plan, stream
from tests.spark_matrix import batch

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

Query = Callable[..., sd.Stream[Any]]


class Key(NamedTuple):
    text: str
    number: int


SPAN: dict[str, Query] = {
    "where": lambda s: s.where(lambda e: (e.v > 0) & (e.k == "a")),
    "where life": lambda s: s.where(lambda e, life: life.le + e.v > 3),
    "where truth": lambda s: s.where(lambda e: e.v),
    "where none": lambda s: s.where(lambda e: sd.is_none(e.m) | (e.m == 2)),
    "select record": lambda s: s.select(a=lambda e: e.v * 2, b=lambda e: e.f / 2),
    "select scalar": lambda s: s.select(lambda e: e.v % 2),
    "select class": lambda s: s.select(lambda e: Key(e.k, e.v)).where(lambda e: e.number > 0),
    "select nested": lambda s: s.select(lambda e: (e.k, (e.v, e.m))),
    "select many": lambda s: s.select_many(lambda e: (e.m, e.v, None)).where(lambda e: sd.is_none(e) | (e == 1)),
    "select many records": lambda s: s.select_many(lambda e: ((e.k, e.v), (e.k, e.v + 1))).select(lambda e: e._1),
    "alter lifetime": lambda s: s.alter_lifetime(lambda e, life: life.le + e.v, lambda e: e.v),
    "alter duration": lambda s: s.alter_duration(5),
    "to points": lambda s: s.to_points(),
    "shift": lambda s: s.shift(-7),
    "clip interval": lambda s: s.clip_interval(-2, 6),
    "extend": lambda s: s.extend(3),
    "extend back": lambda s: s.extend(-2),
    "clip duration": lambda s: s.clip_duration(3),
    "to points at end": lambda s: s.to_points_at_end(),
    "quantize": lambda s: s.quantize(5, 3, offset=-1),
    "to edges": lambda s: s.to_edges(),
    "to edges by key": lambda s: s.to_edges(lambda e: e.m),
    "distinct": lambda s: s.distinct(lambda e: e.m),
    "distinct floats": lambda s: s.distinct(lambda e: e.f),
}
SPAN_IN_PYTHON: dict[str, Query] = {
    "where": lambda s: s.where(lambda e: e.k in ("a", "c")),
    "where life": lambda s: s.where(lambda e, life: str(life.le) > str(e.v)),
    "select": lambda s: s.select(lambda e: f"{e.k}{e.v}"),
    "select some": lambda s: s.select(a=lambda e: e.v, b=lambda e: str(e.m)),
    "select many": lambda s: s.select_many(lambda e: [e.k] * abs(e.v)),
    "alter": lambda s: s.alter_duration(lambda e: len(e.k) + e.v),
    "to edges": lambda s: s.to_edges(lambda e: str(e.m)),
    "distinct": lambda s: s.distinct(lambda e: str(e.m)),
    "after python": lambda s: s.select(lambda e: str(e.v)).where(lambda e: e != "1").shift(2),
}
SCANNED: dict[str, Query] = {
    "scan": lambda s: s.select(k=lambda e: e.k, v=lambda e: e.v).scan(Since()),
    "scan by key": lambda s: s.group_by("k").apply(lambda g: g.scan(Since)),
}
TWO: dict[str, Query] = {
    "union of other records": lambda a, b: a.union(b.select(x=lambda e: e.v)),
    "union of other types": lambda a, b: a.select(x=lambda e: e.v).union(b.select(x=lambda e: e.f)),
    "union with none": lambda a, b: a.select(lambda e: (e.v, e.k)).union(b.select(lambda e: (e.v, None))),
    "union with itself": lambda a, b: a.union(a.where(lambda e: e.v > 0)),
    "join by key of None": lambda a, b: a.join(b, on="m"),
    "join by two keys": lambda a, b: a.join(b, on=["k", "m"]),
    "join and some fields": lambda a, b: a.join(b, select=lambda x, y: (x.k, x.v - y.v, y.f)).where(lambda e: e._1 >= 0),
    "join select": lambda a, b: a.join(b, on="k", select=lambda x, y: {"k": x.k, "sum": x.v + y.v}),
    "join with itself": lambda a, b: a.join(a, on="k"),
    "anti join": lambda a, b: a.anti_join(b),
    "anti join where": lambda a, b: a.anti_join(b, on="m", where=lambda x, y: x.v != y.v),
    "semi join": lambda a, b: a.semi_join(b),
    "semi join where": lambda a, b: a.semi_join(b, on="m", where=lambda x, y: x.v != y.v),
    "left join select": lambda a, b: a.left_join(
        b, on="m", select=lambda x, y: (x.v, sd.when(sd.is_none(y)).then(0).otherwise(y.v))
    ),
    "band join, earlier": lambda a, b: a.band_join(b, on="k", before=4, after=2, time="min"),
    "band join, both": lambda a, b: a.band_join(b, before=4, after=2, time="both", select=lambda x, y: x.v - y.v),
    "clip by key": lambda a, b: a.clip_by(b, on="m"),
    "clip by itself": lambda a, b: a.clip_by(a, on="k"),
    "clip by where": lambda a, b: a.clip_by(b, where=lambda x, y: x.v < y.v),
}
TWO_IN_PYTHON: dict[str, Query] = {
    "join by key": lambda a, b: a.join(b, on=(lambda x: str(x.v), lambda y: str(y.v))),
    "join by keys of two types": lambda a, b: a.join(b, on=(lambda x: x.v, lambda y: y.f)),
    "join where": lambda a, b: a.join(b, on="k", where=lambda x, y: str(x.v) > str(y.v)),
    "join select": lambda a, b: a.join(b, on="k", select=lambda x, y: f"{x.k}{y.v}"),
    "anti join": lambda a, b: a.anti_join(b, where=lambda x, y: len(x.k) + x.v > y.v),
    "clip by": lambda a, b: a.clip_by(b, on=(lambda x: str(x.m), lambda y: str(y.m))),
}
MERGED: dict[str, Any] = {
    "n": sd.count(),
    "some": sd.count(lambda e: e.m),
    "few": sd.count(where=lambda e: e.v > 1),
    "total": sd.sum(lambda e: e.v),
    "none": sd.sum(lambda e: e.m, where=lambda e: e.v > 1),
    "floats": sd.sum(lambda e: e.f),
    "mean": sd.avg(lambda e: e.f),
    "means": sd.avg(lambda e: e.m),
    "low": sd.min(lambda e: e.f),
    "high": sd.max(lambda e: e.k),
    "bools": sd.sum(lambda e: e.v > 0),
}
LISTED: dict[str, Any] = {
    "middle": sd.median(lambda e: e.f),
    "ninth": sd.quantile(lambda e: e.f, 0.9),
    "picked": sd.quantile(lambda e: e.m, 0.3, "inverted_cdf"),
    "kinds": sd.count_distinct(lambda e: e.m),
    "variance": sd.variance(lambda e: e.v),
    "deviation": sd.stddev(lambda e: e.f / 1e16),
    "first": sd.first(lambda e: e.m),
    "last": sd.last(lambda e: e.f),
    "all": sd.collect(lambda e: e.m),
    "n": sd.count(),
    "floats": sd.sum(lambda e: e.f),
}
FEW: dict[str, Any] = {"n": sd.count(), "total": sd.sum(lambda e: e.v), "low": sd.min(lambda e: e.f)}
FEW_LISTED: dict[str, Any] = {name: LISTED[name] for name in ("middle", "picked", "kinds", "first", "last", "all")}
"""For a second query of windows that Spark aggregates in one way: planning many aggregates takes long."""
WEIGHED: dict[str, Any] = {"ints": sd.time_weighted_avg(lambda e: e.m), "floats": sd.time_weighted_avg(lambda e: e.f / 1e16)}
ENDING: dict[str, Query] = {
    "trailing, filled": lambda s: s.trailing_window(7, 5).aggregate(n=sd.count()).fill(5, {"n": 0}, end=40),
    "tumbling": lambda s: s.tumbling_window(5, 2).aggregate(**FEW),
    "hopping": lambda s: s.hopping_window(7, 3, -2).aggregate(**MERGED),
    "with gaps": lambda s: s.hopping_window(3, 7).aggregate(**FEW),
    "point at end": lambda s: s.tumbling_window(5, output=sd.Output.POINT_AT_END).aggregate(**FEW),
    "listed": lambda s: s.hopping_window(8, 4).aggregate(**LISTED),
    "weighed": lambda s: s.hopping_window(8, 4, 1).aggregate(**WEIGHED),
    "one": lambda s: s.tumbling_window(5).aggregate(sd.count()),
    "linq": lambda s: s.tumbling_window(5).aggregate(lambda w: (w.count(), w.sum(lambda e: e.v) / w.count())),
}
LARGEST: dict[str, tuple[bool, Query]] = {
    "by a float": (True, lambda s: s.tumbling_window(5).top_k(2, by=lambda e: e.f / 0.5).select(lambda e: (e.k, e.f))),
    "by what may be none": (True, lambda s: s.hopping_window(8, 3).top_k(2, by="m", rank=True).select(lambda e: (e._0, e._1.k))),
    "by a text": (True, lambda s: s.hopping_window(7, 3, -2, output=sd.Output.POINT_AT_END).top_k(1, by="k", rank=True)),
    "with a named rank": (False, lambda s: s.tumbling_window(5).top_k(2, by="v", rank="place")),
    "in groups, with a named rank": (False, lambda s: s.group_by("k").tumbling_window(5).top_k(2, by="v", rank="place")),
    "of sessions": (True, lambda s: s.session_window(2).top_k(2, by="v").tumbling_window(20).aggregate(m=sd.max(lambda e: e.v))),
    "of sessions that are cut": (False, lambda s: s.session_window(2, max_duration=9).top_k(2, by="v", rank=True)),
    "of values": (True, lambda s: s.select(lambda e: e.m).tumbling_window(9).top_k(1, by=lambda e: e)),
    "by Python": (False, lambda s: s.tumbling_window(5).top_k(2, by=lambda e: str(e.v), rank=True).where(lambda e: e._1.v > 0)),
    "of objects": (False, lambda s: s.select(lambda e: str(e.m)).tumbling_window(5).top_k(2, by=lambda e: e)),
    "of pairs of Python": (False, lambda s: s.tumbling_window(5).apply(TopK(1), lambda e: (e.v, str(e.k)))),
}
UNENDING: dict[str, Query] = {
    "largest of snapshots": lambda s: s.snapshot_window().top_k(1, by="v"),
    "largest of counts": lambda s: s.count_window(3).top_k(2, by="m", rank=True),
    "largest of counts by end": lambda s: s.count_window(2, by="end", output=sd.Output.POINT_AT_END).top_k(2, by="f"),
    "snapshot merged": lambda s: s.snapshot_window().aggregate(**MERGED),
    "snapshot listed": lambda s: s.snapshot_window().aggregate(**FEW_LISTED),
    "snapshot point at end": lambda s: s.snapshot_window(output=sd.Output.POINT_AT_END).aggregate(n=sd.count()),
    "count": lambda s: s.count_window(3).aggregate(**MERGED),
    "count listed": lambda s: s.count_window(3).aggregate(**FEW_LISTED),
    "count one": lambda s: s.count_window(1).aggregate(**FEW),
    "count by end": lambda s: s.count_window(2, by="end").aggregate(**FEW),
    "windows of windows": lambda s: (
        s.snapshot_window().aggregate(n=sd.count()).count_window(2).aggregate(m=sd.max(lambda e: e.n))
    ),
}


CALENDAR = kinds()["calendar"]
TABLE: dict[str, tuple[Query, int, bool]] = {
    name: (query, entry.inputs, not entry.ends) for entry in entries().values() for name, query in entry.spark.items()
} | {
    name: (query, 1, entry.unending) for entry in kinds().values() if entry is not CALENDAR for name, query in entry.spark.items()
}
"""The rows of the table in docs/spark.md, with how many streams they read, and whether these may have rows that never end."""


@pytest.mark.parametrize("name", TABLE)
def test_the_rows_of_the_table_run_as_it_says(name: str) -> None:
    query, inputs, unending = TABLE[name]
    sources = [stream(name) for name in "st"[:inputs]]

    def over(*streams: sd.Stream[Any]) -> sd.Stream[Any]:
        """Return the query over rows of a text, a float and an integer."""
        found: sd.Stream[Any] = query(*(each.select(k=lambda e: e.k, v=lambda e: e.f, n=lambda e: e.v) for each in streams))
        return found

    said = batch(query(*sources))
    if said.startswith("unsupported"):
        with pytest.raises(UnsupportedOnSpark):
            check(over(*sources), dict.fromkeys("st"[:inputs], history(1)))
    else:
        check_many(over, inputs, unending, native=said == "native")


@pytest.mark.parametrize("query", CALENDAR.spark.values(), ids=CALENDAR.spark)
def test_windows_of_a_calendar_run_as_the_table_says_over_a_stream_of_dates(query: Query) -> None:
    dates = sd.source("s", unit="s")
    assert "Python" in batch(query(sd.source("s", unit="us")))
    for each in (query(dates), dates.group_by("k").calendar_window("day").aggregate(n=sd.count(), v=sd.sum(lambda e: e.v))):
        assert len(check(each, {"s": history(1, unending=False)}, native=False)) > 0


@pytest.mark.parametrize("name", SPAN)
def test_span(name: str) -> None:
    check_many(SPAN[name], native=True)


@pytest.mark.parametrize("name", SPAN_IN_PYTHON)
def test_span_in_python(name: str) -> None:
    assert any("Python (Arrow), row by row" in said for said in explained(SPAN_IN_PYTHON[name](stream())).values())
    check_many(SPAN_IN_PYTHON[name], native=False)


@pytest.mark.parametrize("name", SCANNED)
def test_stream_operators_follow_the_rows_of_a_group(name: str) -> None:
    check_many(SCANNED[name], native=False)


@pytest.mark.parametrize("name", TWO)
def test_two_inputs(name: str) -> None:
    check_many(TWO[name], inputs=2, native=name not in ("union of other records", "union of other types"))


@pytest.mark.parametrize("name", TWO_IN_PYTHON)
def test_two_inputs_in_python(name: str) -> None:
    check_many(TWO_IN_PYTHON[name], inputs=2, native=False)


@pytest.mark.parametrize("name", ENDING)
def test_windows_of_rows_that_end(name: str) -> None:
    check_many(ENDING[name], unending=False, native=True)


@pytest.mark.parametrize("name", LARGEST)
def test_the_largest_rows_of_windows_of_rows_that_end(name: str) -> None:
    native, query = LARGEST[name]
    check_many(query, unending=False, native=native)


@pytest.mark.parametrize("name", UNENDING)
def test_windows(name: str) -> None:
    check_many(UNENDING[name], native=True)


@pytest.mark.parametrize("grouped", [False, True])
def test_window_sequences_are_followed_group_by_group(grouped: bool) -> None:
    def query(s: sd.Stream[Any]) -> Any:
        by_time, by_position = sd.astral.range_slide(6, 4), sd.astral.WindowSequence(lambda j: j, lambda j: j + 2, 1, "position")
        g: Any = s.group_by("k") if grouped else s
        return (
            g.windows(by_time, start=-3).aggregate(n=sd.count()).union(g.windows(by_position).aggregate(n=sd.max(lambda e: e.v)))
        )

    assert "Python (Arrow)" in explained(query(stream()))["window_aggregate_1"]
    check(query(stream()), {"s": history(5)}, 9 if grouped else None, native=False)


@pytest.mark.parametrize(
    ("name", "until"),
    [
        ("tumbling", 7),
        ("with gaps", 40),
        ("listed", 13),
        ("snapshot point at end", -3),
        ("snapshot point at end", 9),
        ("count one", 7),
        ("count by end", 9),
    ],
)
def test_until(name: str, until: int) -> None:
    query = {**ENDING, **UNENDING}[name](stream())
    check(query, {"s": history(5)}, until, native=True)


def test_no_rows() -> None:
    check(ENDING["tumbling"](stream()), {"s": sd.CHT.from_rows([])})
    check(UNENDING["snapshot listed"](stream()), {"s": sd.CHT.from_rows([])})
    check(SPAN_IN_PYTHON["select"](stream()), {"s": sd.CHT.from_rows([])})


@pytest.mark.parametrize("payload", [lambda e: e.m, lambda e: str(e.m)], ids=["native payloads", "payloads of Python"])
def test_chains_of_rows_are_followed_payload_by_payload(payload: Any) -> None:
    def query(s: sd.Stream[Any]) -> sd.Stream[Any]:
        return s.select(payload).union(s.select(payload).shift(2)).stitch()

    assert "Python (Arrow), one call per group" in explained(query(stream()))["stitch_1"]
    check_many(query, native=False)


ZERO_IF_ALONE = lambda x, y: (x.k, sd.when(sd.is_none(y)).then(0).otherwise(y.v))  # noqa: E731
NEAREST: dict[str, tuple[bool, Query]] = {
    "back": (True, lambda a, b: a.asof_join(b, on="m")),
    "without key": (True, lambda a, b: a.asof_join(b, tolerance=4)),
    "forward or alone": (True, lambda a, b: a.asof_join(b, on="m", how="left", direction="forward", tolerance=0)),
    "nearest": (True, lambda a, b: a.asof_join(b, direction="nearest")),
    "nearest within": (True, lambda a, b: a.asof_join(b, on=["k", "m"], direction="nearest", tolerance=5, how="left")),
    "values that may be none": (True, lambda a, b: a.asof_join(b.select(lambda e: e.m), how="left", tolerance=1)),
    "projected": (True, lambda a, b: a.asof_join(b, on="k", select=lambda x, y: (x.k, x.v - y.v, y.f)).where(lambda e: e._1 > 0)),
    "projected or alone": (True, lambda a, b: a.asof_join(b, on="m", how="left", tolerance=2, select=ZERO_IF_ALONE)),
    "projected in Python": (False, lambda a, b: a.asof_join(b, on="m", select=lambda x, y: f"{x.v}{y.v}")),
    "projected in Python or alone": (False, lambda a, b: a.asof_join(b, how="left", tolerance=1, select=lambda x, y: f"{x}{y}")),
    "by a key of Python": (False, lambda a, b: a.asof_join(b, on=(lambda x: str(x.m), lambda y: str(y.m)), direction="forward")),
    "of objects": (False, lambda a, b: a.select(lambda e: str(e.v)).asof_join(b, how="left", tolerance=1)),
    "with a condition": (False, lambda a, b: a.asof_join(b, on="k", where=lambda x, y: x.v != y.v, how="left")),
}


@pytest.mark.parametrize("name", NEAREST)
def test_nearest_rows_are_found_key_by_key(name: str) -> None:
    native, query = NEAREST[name]
    check_many(query, inputs=2, native=native)


def value_of_right(a: Any, b: Any) -> Any:
    return b.v


@pytest.mark.parametrize("direction", ["back", "forward", "nearest"])
def test_a_row_that_has_a_match_is_never_alone(direction: Any) -> None:
    """The projection would fail for a left row alone, which all are to Python until it has the right ones."""
    lefts = history(3)
    rights = sd.CHT.from_rows([(row.le + move, row.re, row.payload) for row in lefts for move in (-1, 0)])
    query = stream().asof_join(
        stream("t"), on="k", where=lambda x, y: x.v >= y.v - 9, how="left", direction=direction, select=value_of_right
    )
    assert check(query, {"s": lefts, "t": rights}, native=False).rows


@pytest.mark.parametrize("by", [None, lambda e: e.m, lambda e: str(e.m)], ids=["alone", "by a field", "by a key of Python"])
def test_runs_of_patterns_are_followed_key_by_key(by: Any) -> None:
    def query(s: sd.Stream[Any]) -> sd.Stream[Any]:
        return s.match(
            lambda p: (
                p.a.then(p.b.many().optional().where(lambda e, m: e.v > m.a.v)).then(p.c.where(lambda e: e.v < 0)).within(12)
            ),
            by=by,
            overlapping=True,
        )

    assert "Python (Arrow)" in explained(query(stream()))["match_1"]
    check_many(query, native=False)
    optional = stream().match(lambda p: p.a.then(p.b.optional().where(lambda e: e.v > 0)).then(p.c).within(9), by=by)
    check(optional.select(lambda m: (sd.is_none(m.b), m.b, m.c.k)), {"s": history(3)}, native=False)
    check(query(stream()).select(lambda m: m.c.v), {"s": history(3)}, native=False)


@pytest.mark.parametrize("payload", [lambda e: e.m, lambda e: str(e.m), lambda e: (e.k, (e.v, e.m))])
def test_steps_take_payloads_of_every_kind(payload: Any) -> None:
    def query(s: sd.Stream[Any]) -> sd.Stream[Any]:
        return s.select(payload).match(lambda p: p.a.many().then(p.b.optional()).then(p.c).within(9), overlapping=True)

    check_many(query, native=False)


def test_the_steps_of_a_match_are_columns_of_the_public_frame(spark: Any) -> None:
    query = sd.source("s", Key, unit="tick").match(
        lambda p: p.a.then(p.b.many().optional().where(lambda e, m: e.number > m.a.number)).then(p.c).within(9), by="text"
    )
    frame = spark.createDataFrame([(1, "x", 5), (2, "x", 7), (3, "x", 1)], "le long, text string, number long")
    found = query.on_spark(spark).batch({"s": frame}).select("le", "re", "a.number", "c.text").collect()
    assert [tuple(row) for row in found] == [(2, 10, 5, "x")]


def test_functions_that_change_their_mind_are_found_out() -> None:
    rows = {"s": [sd.Insert(i, i, i + 9, {"v": i}) for i in range(5)]}
    random_left: sd.Stream[Any] = stream().select(lambda e: {"v": e.v, "x": random.random()})
    with pytest.raises(UnsupportedOnSpark, match="gives other results"):
        random_left.anti_join(stream().shift(3)).run(rows, engine="spark")


def test_long_and_short_lifetimes_join_without_a_key() -> None:
    short = [(t, t + 1, {"v": t}) for t in range(0, 3000, 7)]
    long = [(-(10**12), sd.INFINITY, {"v": -1}), (100, 10**15, {"v": -2}), (500, 900, {"v": -3})]
    found = check(stream("a").join(stream("b")), {"a": sd.CHT.from_rows(short + long), "b": sd.CHT.from_rows(long + short[:50])})
    assert len(found) > 1000


@pytest.mark.parametrize("kind", ["join", "anti_join", "semi_join"])
def test_rows_of_one_key_are_compared_with_their_neighbours_in_time(kind: str) -> None:
    rows = [(t, t + 3, {"k": "hot", "v": t}) for t in range(300)] + [(-(10**12), sd.INFINITY, {"k": None, "v": -1})]
    others = [(t, t + 9, {"k": "hot", "v": t % 5}) for t in range(0, 300, 3)] + [(4, 10**15, {"k": None, "v": 0})]
    left, right = (stream(name).where(lambda e: e.v < 5_000) for name in ("a", "b"))
    query: sd.Stream[Any] = getattr(left, kind)(right, on="k")
    inputs = {"a": sd.CHT.from_rows(rows), "b": sd.CHT.from_rows(others)}
    assert len(check(query, inputs, native=True)) > 0
    assert "Generate explode" in lowered_plan(query, inputs)
