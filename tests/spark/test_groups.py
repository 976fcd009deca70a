"""Group-apply on Spark: keys of every type, nested groups, bodies with windows and joins, groups that Python makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import pytest

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.errors import UnsupportedOnSpark
from streamdsl.expr.nodes import Field, Key, Make, Whole
from streamdsl.expr.schema import Schema
from streamdsl.io.readers import bind
from streamdsl.plan.node import AntiJoin, ClipBy, Group, GroupApply, Join, Matching, Node, Select, Source, Union, shift
from streamdsl.spark import run_batch
from streamdsl.testing import assert_cht_equal
from tests.spark.helpers import check, explained, history, stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


class Zone(NamedTuple):
    name: str
    level: int | None


class Reading(TypedDict):
    k: str | None
    f: float | None


def counted(group: sd.Stream[Any]) -> sd.Stream[Any]:
    return group.snapshot_window().aggregate(n=sd.count(), top=sd.max(lambda e: e.f))


KEYS: dict[str, Callable[[Any], Any]] = {
    "text": lambda e: e.k,
    "int": lambda e: e.v,
    "float": lambda e: e.f,
    "None": lambda e: e.m,
    "bool": lambda e: e.v > 0,
    "tuple": lambda e: (e.k, e.m),
    "class": lambda e: Zone(e.k, e.m),
    "record": lambda e: {"k": e.k, "m": e.m},
}
PYTHON_KEYS: dict[str, Callable[[Any], Any]] = {
    "text": lambda e: str(e.v),
    "mixed": lambda e: e.v if e.v > 0 else (float(e.v) if e.v < -1 else None),
    "list": lambda e: [e.k, e.m],
    "class": lambda e: Zone(str(e.k), e.m),
}


@pytest.mark.parametrize("name", KEYS)
def test_native_keys(name: str) -> None:
    query = stream().group_by(KEYS[name]).apply(counted)
    assert set(explained(query).values()) == {"native"}
    check(query, {"s": history(3, 20)}, native=True)


@pytest.mark.parametrize("name", PYTHON_KEYS)
def test_keys_that_python_computes(name: str) -> None:
    query = stream().group_by(PYTHON_KEYS[name]).apply(counted)
    assert any("Python (Arrow), one call per group" in said for said in explained(query).values())
    check(query, {"s": history(4, 20)})


WINDOWS: dict[str, Callable[[Any], Any]] = {
    "tumbling": lambda g: g.tumbling_window(5),
    "hopping, merged": lambda g: g.hopping_window(20, 3),
    "snapshot": lambda g: g.snapshot_window(),
    "session": lambda g: g.session_window(2),
    "count": lambda g: g.count_window(3),
}


@pytest.mark.parametrize("aggregates", ["sums", "members"])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows_in_groups_by_texts_of_which_some_are_null(name: str, aggregates: str) -> None:
    """Such groups are made of structs, which Spark's generated code looks for in another map than plain keys."""
    words = ["", "a", "A", "ä", "a\0", "a long name of a road", None]
    rows = [(3 * n % 31, 3 * n % 31 + 1 + n % 9, {"k": words[n % 7], "f": n / 10 if n % 5 else None}) for n in range(60)]
    sums: dict[str, Any] = {"n": sd.count(), "mean": sd.avg(lambda e: e.f), "spread": sd.stddev(lambda e: e.f)}
    members: dict[str, Any] = {"middle": sd.median(lambda e: e.f), "kinds": sd.count_distinct(lambda e: e.f)}
    declared = sd.source("s", Reading)
    query = WINDOWS[name](declared.group_by("k")).aggregate(**(sums if aggregates == "sums" else members))
    found = check(query, {"s": sd.CHT.from_rows(rows)}, native=True)
    assert {row.payload.k for row in found} == set(words)


def test_nan_and_zeros_are_keys() -> None:
    values = [float("nan"), 0.0, -0.0, 1.0, float("nan"), float("inf"), None]
    rows = sd.CHT.from_rows([(1, 5, {"x": value}) for value in values])
    found = check(stream().group_by("x").snapshot_window().aggregate(n=sd.count()), {"s": rows})
    assert sorted(row.payload["n"] for row in found) == [1, 1, 1, 2, 2]


NESTED: dict[str, Callable[[sd.Stream[Any]], sd.Stream[Any]]] = {
    "window": lambda s: s.group_by("k").snapshot_window().aggregate(n=sd.count(), t=sd.sum(lambda e: e.v)),
    "window lambda": lambda s: s.group_by("k").count_window(2).aggregate(lambda w: (w.key, w.sum(lambda e: e.v) + w.count())),
    "span": lambda s: s.group_by("k").apply(lambda g: g.where(lambda e: e.v > 0).to_points().shift(3)),
    "groups of groups": lambda s: s.group_by("k").apply(lambda g: g.group_by("m").apply(counted)),
    "three deep": lambda s: s.group_by("k").apply(
        lambda g: g.group_by("m").apply(lambda h: h.group_by(lambda e: e.v > 0).apply(counted))
    ),
    "join inside": lambda s: s.group_by("k").apply(lambda g: g.where(lambda e: e.v > 0).join(g, on="m")),
    "anti join inside": lambda s: s.group_by("k").apply(lambda g: g.anti_join(g.where(lambda e: e.v > 0), on="m")),
    "clip inside": lambda s: s.group_by("k").apply(lambda g: g.clip_by(g.where(lambda e: e.v > 0))),
    "edges inside": lambda s: s.group_by("k").apply(lambda g: g.to_edges()),
    "union inside": lambda s: s.group_by("k").apply(lambda g: g.union(g.shift(3))),
    "python inside": lambda s: s.group_by("k").apply(
        lambda g: g.where(lambda e: e.k in "ab").snapshot_window().aggregate(n=sd.count())
    ),
    "python groups inside": lambda s: s.group_by("k").apply(lambda g: g.group_by(lambda e: str(e.m)).apply(counted)),
    "groups after groups": lambda s: (
        s.group_by("k").snapshot_window().aggregate(n=sd.count()).group_by("n").snapshot_window().aggregate(groups=sd.count())
    ),
    "group of a join": lambda s: s.join(s, on="m", select=lambda x, y: {"k": x.k, "f": y.f}).group_by("k").apply(counted),
}


@pytest.mark.parametrize("name", NESTED)
def test_bodies(name: str) -> None:
    check(NESTED[name](stream()), {"s": history(1, 24)}, native="python" not in name)


PAIR = Make(Schema.tuple(2), (Key(), Whole()))
OTHERS: dict[str, Callable[[Group, Node], Node]] = {
    "join": lambda group, other: Join(group, other, Matching()),
    "join by key": lambda group, other: Join(group, other, Matching(Field("m"), Field("m"))),
    "other first": lambda group, other: Join(other, group, Matching(Field("m"), Field("m"))),
    "anti join": lambda group, other: AntiJoin(other, group, Matching(Field("m"), Field("m"))),
    "anti join of the group": lambda group, other: AntiJoin(group, other, Matching()),
    "clip": lambda group, other: ClipBy(group, other, Matching()),
    "clip the other": lambda group, other: ClipBy(other, group, Matching()),
    "union": lambda group, other: Union((group, other)),
    "the other alone": lambda group, other: shift(other, 1),
}


@pytest.mark.parametrize("name", OTHERS)
def test_bodies_that_read_another_source(name: str) -> None:
    schema = Schema.record(("k", "v", "f", "m"))
    group = Group(schema, "tick")
    body = OTHERS[name](group, Source("t", schema, "tick"))
    inputs = {"s": history(7, 10), "t": history(8, 10)}
    for key in (Field("k"), sd_key()):
        plan = GroupApply(Source("s", schema, "tick"), key, body, PAIR)
        bindings = {name: bind([sd.Insert(i, *row) for i, row in enumerate(rows)], Source(name)) for name, rows in inputs.items()}
        assert_cht_equal(run_batch(plan, bindings).cht(), denote(plan, inputs))


def test_fields_of_keys_may_be_columns_that_are_never_null(spark: SparkSession) -> None:
    frame = spark.range(6).selectExpr("id as le", "if(id % 2 = 0, 'a', 'b') as k", "array(id % 3) as few", "id as v")
    groups = sd.source("s", unit="tick").group_by(lambda e: (e.k, e.few))
    for windowed in (groups.tumbling_window(10), groups.snapshot_window()):
        middle = windowed.aggregate(v=sd.median(lambda e: e.v))
        assert sorted(row.v for row in middle.on_spark(spark).batch(frame).collect()) == [0, 1, 2, 3, 4, 5]


def test_keys_pass_portions_as_they_are(spark: SparkSession) -> None:
    kinds = ("date", "timestamp", "timestamp_ntz", "decimal(10,2)", "binary")
    values = ("'2020-01-02'", "'2020-01-02 03:04:05.000006'", "'2020-01-02 03:04:05'", "1.25", "'\u00e9'")
    keys = [
        f"if(id % 2 = 0, cast({value} as {kind}), null) as k{i}"
        for i, (kind, value) in enumerate(zip(kinds, values, strict=True))
    ]
    frame = spark.range(6).selectExpr("id as le", "id as v", *keys).localCheckpoint()
    names = [f"k{i}" for i in range(len(kinds))]
    middle: Any = sd.uda(lambda values: sorted(values)[len(values) // 2]).of(lambda e: e.v)
    query = sd.source("s", unit="tick").group_by(names).tumbling_window(10).aggregate(v=middle)
    assert "portion of windows" in explained(query)["window_aggregate_1"]
    shown = {tuple(row[name] for name in names): row.v for row in query.on_spark(spark).batch(frame).collect()}
    assert shown.keys() == {tuple(row) for row in frame.select(*names).distinct().collect()}
    assert sorted(str(value) for value in shown.values()) == ["2", "3"]


def test_the_key_of_rows_that_are_in_no_group_is_refused() -> None:
    schema = Schema.record(("k", "v", "f", "m"))
    body = Select(Source("t", schema, "tick"), Key())
    plan = GroupApply(Source("s", schema, "tick"), Field("k"), Union((body, Select(Group(schema, "tick"), Key()))), Whole())
    with pytest.raises(UnsupportedOnSpark, match="select_1 does not run on Spark: it reads the key of a group"):
        run_batch(plan, {name: bind([], Source(name)) for name in ("s", "t")})


def sd_key() -> Any:
    """Return a key that only Python can compute."""
    from streamdsl.expr.nodes import Opaque

    return Opaque(lambda e: str(e.v > 0))
