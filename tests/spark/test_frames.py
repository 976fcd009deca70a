"""DataFrames in and out: times and units, payload types, physical events, undeclared types, laziness."""

from __future__ import annotations

import random
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
import pytest

import streamdsl as sd
from streamdsl.errors import EventError, QueryError, SchemaError, UnsupportedOnSpark, UserCodeError
from streamdsl.spark import OnSpark, explain_spark, translated
from streamdsl.udm import UDSO
from tests.spark.helpers import PYTHON, physical_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@dataclass
class Trip:
    zone: str
    fare: float


class Stop(NamedTuple):
    zone: str
    n: int


@dataclass
class Checked:
    zone: str
    fare: float

    def __post_init__(self) -> None:
        self.fare = self.fare + 1


class Spread(sd.UDA[float, float]):
    def compute_result(self, payloads: Sequence[float]) -> float:
        return max(payloads) - min(payloads)


class Untyped(sd.UDA[Any, Any]):
    def compute_result(self, payloads: Sequence[Any]) -> Any:
        return {"n": len(payloads), "all": [1, 2.5, "x", None]}


@pytest.fixture(scope="module")
def trips(spark: SparkSession) -> DataFrame:
    return spark.sql(
        "select * from values (timestamp'2020-01-01 00:00:00', timestamp'2020-01-01 00:10:00', 'A', 10D),"
        " (timestamp'2020-01-01 00:05:00', null, 'B', 4D),"
        " (timestamp'2020-01-01 00:08:00', timestamp'2020-01-01 00:09:00', 'A', 7D) as t(le, re, zone, fare)"
    )


def collected(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def test_timestamps_are_the_unit_s_ticks(spark: SparkSession, trips: DataFrame) -> None:
    for unit in ("s", "ms", "us", None):
        query = sd.source("trips", unit=unit).snapshot_window().aggregate(n=sd.count(), most=sd.max(lambda e: e.fare))
        found = query.on_spark(spark).batch({"trips": trips})
        assert [(name, kind) for name, kind in found.dtypes] == [
            ("le", "timestamp"),
            ("re", "timestamp"),
            ("n", "bigint"),
            ("most", "double"),
        ]
        minutes = [(row.le.minute, row.re.minute if row.re else None, row.n, row.most) for row in found.orderBy("le").collect()]
        assert minutes == [(0, 5, 1, 10.0), (5, 8, 2, 10.0), (8, 9, 3, 10.0), (9, 10, 2, 10.0), (10, None, 1, 4.0)]


def test_other_times(spark: SparkSession) -> None:
    query = sd.source("s", unit="us").shift(1)
    frame = spark.sql("select timestamp_ntz'1970-01-01 00:00:01' as le, date'1970-01-02' as re, 5 as v")
    (row,) = query.on_spark(spark).batch({"s": frame}).selectExpr("unix_micros(le) as le", "unix_micros(re) as re", "v").collect()
    assert tuple(row) == (10**6 + 1, 86400 * 10**6 + 1, 5)
    nano = sd.source("s", unit="ns").on_spark(spark).batch({"s": frame}).selectExpr("unix_micros(le) as le").collect()
    assert nano[0].le == 10**6
    with pytest.raises(Exception, match="UnitError"):
        sd.source("s", unit="ns").shift(1).on_spark(spark).batch({"s": frame}).collect()
    uneven = spark.sql("select timestamp'1970-01-01 00:00:01.5' as le, 5 as v")
    with pytest.raises(Exception, match="UnitError"):
        sd.source("s", unit="s").on_spark(spark).batch({"s": uneven}).collect()
    with pytest.raises(SchemaError, match="plain ticks"):
        sd.source("s", unit="tick").on_spark(spark).batch({"s": frame})


def test_ticks_points_and_infinity(spark: SparkSession) -> None:
    frame = spark.sql("select * from values (1L, 5L, 7), (2L, null, 8), (4L, 4L, 9) as t(le, re, v)")
    assert collected(sd.source("s").on_spark(spark).batch({"s": frame})) == [(1, 5, 7), (2, None, 8)]
    assert collected(sd.source("s").on_spark(spark).batch({"s": frame.drop("re")})) == [(1, 2, 7), (2, 3, 8), (4, 5, 9)]
    nowhere = "cast(null as bigint) as le"
    for bad, error in (("6L as le, re", "EventError"), (nowhere, "EventError"), (f"{sd.INFINITY - 1}L as le", "TimeOverflow")):
        refused = spark.sql(f"select {bad}, v from values (5L, 7) as t(re, v)")
        with pytest.raises(Exception, match=error):
            sd.source("s").on_spark(spark).batch({"s": refused}).collect()


def test_physical_events(spark: SparkSession) -> None:
    frame = spark.sql(
        "select * from values ('insert', 'a', 1L, 10L, null, 5L), ('retract', 'a', 1L, 7L, 9L, null),"
        " ('retract', 'a', 1L, 10L, 7L, 5L), ('insert', 'b', 2L, null, null, 6L), ('retract', 'b', 2L, null, 3L, null),"
        " ('cti', null, 5L, null, null, null), ('insert', 'c', 2L, 5L, null, 6L), ('retract', 'c', 2L, 5L, 2L, null)"
        " as t(kind, id, le, re, re_new, v)"
    )
    assert collected(sd.source("s").on_spark(spark).batch({"s": frame})) == [(1, 9, 5), (2, 3, 6)]
    with pytest.raises(Exception, match="EventError"):
        sd.source("s").on_spark(spark).batch({"s": frame.where("kind = 'retract'")}).collect()


def test_an_id_may_be_used_again(spark: SparkSession) -> None:
    frame = spark.sql(
        "select * from values ('insert', 'a', 1L, 9L, null, 5L), ('retract', 'a', 1L, 9L, 4L, 5L),"
        " ('insert', 'a', 5L, 8L, null, 6L), ('retract', 'a', 5L, 8L, 5L, 6L), ('insert', 'a', 6L, null, null, 7L),"
        " ('insert', 'b', 2L, 2L, null, 8L), ('insert', 'b', 3L, 4L, null, 9L) as t(kind, id, le, re, re_new, v)"
    )
    s = sd.source("s")
    assert collected(s.on_spark(spark).batch({"s": frame})) == [(1, 4, 5), (3, 4, 9), (6, None, 7)]
    assert collected(s.extend(10).on_spark(spark).batch({"s": frame})) == [(1, 14, 5), (3, 14, 9), (6, None, 7)]


def test_physical_events_that_match_nothing_fail(spark: SparkSession) -> None:
    inserted = "('insert', 'a', 1L, 5L, null)"
    wrong = {
        "does not match": [
            [inserted, "('retract', 'a', 1L, 6L, 4L)"],
            [inserted, "('retract', 'a', 1L, 5L, 0L)"],
            [inserted, "('retract', 'a', 1L, 5L, 4L)", "('retract', 'a', 1L, 5L, 3L)"],
        ],
        "no insertion with this le, or several": [
            [inserted, inserted],
            ["('retract', 'a', 1L, 5L, 4L)"],
            [inserted, "('retract', 'a', 2L, 5L, 4L)"],
        ],
        "used again": [[inserted, "('insert', 'a', 5L, 9L, null)"], [inserted, "('insert', 'a', 3L, null, null)"]],
        "is null": [[inserted, "('insert', null, 1L, 5L, null)"], [inserted, "('retract', 'a', null, 5L, 4L)"]],
        "after its re": [[inserted, "('insert', 'b', 5L, 4L, null)"]],
        "insert, retract or cti": [[inserted, "('Retract', 'a', 1L, 5L, 4L)"], ["(null, 'a', 1L, 5L, null)"]],
    }
    for said, frames in wrong.items():
        for rows in frames:
            frame = spark.sql(
                f"select kind, id, le, re, cast(re_new as bigint) re_new, 1 as v from values {', '.join(rows)}"
                " as t(kind, id, le, re, re_new)"
            )
            with pytest.raises(Exception, match=f"EventError.*{said}"):
                sd.source("s").on_spark(spark).batch({"s": frame}).collect()


class Kept(UDSO[Any, int, int]):
    def create_state(self) -> int:
        return 0

    def process(self, state: int, payload: Any, le: int) -> tuple[int, list[int]]:
        return state + 1, [state]


S: sd.Stream[Any] = sd.source("s")
OVER_NULLS: dict[str, sd.Stream[Any]] = {
    "rows": S,
    "a filter": S.where(lambda e: e.v > 5),
    "a filter in python": S.where(lambda e: str(e.v) > "5"),
    "a filter on times": S.where(lambda e, life: life.re > 5),
    "a lifetime": S.extend(3).to_points(),
    "pieces": S.chop(3),
    "windows": S.where(lambda e: e.v > 5).tumbling_window(5).aggregate(n=sd.count()),
    "snapshots, counts, sessions": S.snapshot_window()
    .aggregate(n=sd.count())
    .union(S.count_window(2).aggregate(n=sd.count()), S.session_window(2).aggregate(n=sd.count())),
    "a join": S.where(lambda e: e.v > 5).join(S.shift(1), on="v"),
    "a join in time": S.band_join(S.where(lambda e: e.v > 5), before=3, after=2),
    "an anti join": S.where(lambda e: e.v > 5).anti_join(S.where(lambda e: e.v > 7), on="v"),
    "edges": S.to_edges("v"),
    "a state": S.scan(Kept()),
}


@pytest.fixture(scope="module")
def without_a_start(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """Rows in a file, one of which has no start."""
    folder = str(tmp_path_factory.mktemp("frames") / "rows")
    spark.sql("select * from values (1L, 5L, 9), (null, 6L, 2), (3L, 9L, 7) as t(le, re, v)").write.parquet(folder)
    return spark.read.parquet(folder)


@pytest.mark.parametrize("name", OVER_NULLS)
def test_a_row_without_a_start_is_an_error_whatever_a_filter_says_of_it(
    spark: SparkSession, name: str, without_a_start: DataFrame
) -> None:
    """Spark moves filters into files: that of no row without a start."""
    frame = without_a_start
    with pytest.raises(Exception, match=r"EventError: .* its le is null"):
        OVER_NULLS[name].on_spark(spark).batch({"s": frame.drop("re") if name == "windows" else frame}, until=50).collect()


START_IS_NULL = {
    "rows": "select * from values (1L, 5L, 9), (null, 6L, 2) as t(le, re, v)",
    "points": "select * from values (1L, 9), (null, 2) as t(le, v)",
    "dates": "select * from values (timestamp'2020-01-01 00:00:00', 9), (null, 2) as t(le, v)",
    "physical events": "select 'insert' as kind, 'a' as id, cast(null as bigint) as le, 5L as re, 9L as re_new, 1 as v",
}


@pytest.mark.parametrize("name", START_IS_NULL)
def test_a_null_start_is_refused_as_the_local_engine_does(spark: SparkSession, name: str) -> None:
    frame = spark.sql(START_IS_NULL[name])
    with pytest.raises(EventError, match=r"its le is null(?s:.*)\nHint: "), translated():
        sd.source("s").on_spark(spark).batch({"s": frame}).collect()
    with pytest.raises(EventError, match=r"its start is null(?s:.*)\nHint: "):
        sd.source("s").run({"s": frame.toPandas()}, engine="spark")


@pytest.mark.parametrize("events", [[sd.Insert("a", None, 5, 1)], [sd.Cti(None)], [(None, 5, 1)], [(1, None, 1)]], ids=str)  # type: ignore[arg-type]
def test_a_null_time_is_refused_before_spark_sees_it(events: Any) -> None:
    with pytest.raises(EventError, match=r"is null \(None\)(?s:.*)\nHint: "):
        sd.source("s").run({"s": events}, engine="spark")


def test_names_may_differ_by_case_alone(spark: SparkSession) -> None:
    frame = spark.sql("select 1L as le, 5L as re, 2 as LE, 'x' as Kind, 3 as a, 4 as A, named_struct('b', 5, 'B', 'y') as n")
    parts = sd.source("s").select(lambda e: {"le": e.LE, "kind": e.Kind, "sum": e.a * 10 + e.A, "b": e.n.b, "B": e.n.B})
    found = parts.on_spark(spark).batch({"s": frame})
    assert found.columns == ["le", "re", "payload_le", "kind", "sum", "b", "B"]
    assert collected(found) == [(1, 5, 2, "x", 34, 5, "y")]
    assert collected(sd.source("s").on_spark(spark).batch({"s": frame})) == [(1, 5, 2, "x", 3, 4, (5, "y"))]
    for wrong, name in (("1L as LE", "le"), ("1L as le, 2L as RE", "re")):
        with pytest.raises(SchemaError, match=f"no column '{name}'(?s:.*)\nHint: did you mean '{name.upper()}'"):
            sd.source("s").on_spark(spark).batch({"s": spark.sql(f"select {wrong}, 1 as v")})
    with pytest.raises(SchemaError, match="two columns named 'v'"):
        sd.source("s").on_spark(spark).batch({"s": spark.sql("select 1L as le, 1 as v, 2 as v")})


def test_text_is_text_whatever_its_collation(spark: SparkSession) -> None:
    texts = "select * from values (1L, 9L, 'a'), (2L, 8L, 'A') as t(le, re, k)"
    frame = spark.sql(f"select le, re, k collate UTF8_LCASE as k, array(k collate UTF8_LCASE) as all from ({texts})")
    groups = sd.source("s").group_by(lambda e: (e.k, e.all)).apply(lambda g: g.to_points().where(lambda e: e.k == "A"))
    assert [row.le for row in groups.on_spark(spark).batch({"s": frame}).collect()] == [2]


def test_a_source_with_rows_of_its_own_needs_no_frame(spark: SparkSession, trips: DataFrame) -> None:
    zones = sd.from_rows([(0, sd.INFINITY, {"zone": "A", "name": "Airport"})], unit="us")
    query = sd.source("trips", unit="us").join(zones, on="zone", select=lambda trip, zone: (zone.name, trip.fare))
    found = OnSpark(query.plan(), spark, zones._bindings).batch({"trips": trips})
    assert [tuple(row)[2:] for row in found.orderBy("_1").collect()] == [("Airport", 7.0), ("Airport", 10.0)]


def test_payloads_of_every_type(spark: SparkSession) -> None:
    frame = spark.sql(
        "select 1L as le, 5L as re, cast(3 as smallint) as small, cast(0.5 as float) as real, cast(1.50 as decimal(5,2)) as money"
        ", date'2020-01-02' as day, timestamp'2020-01-02 03:04:05' as time, array(1, 2) as numbers, X'01' as bytes,"
        " named_struct('x', 1, 'y', named_struct('z', 'q')) as nested, map('a', 1) as lookup"
    )
    same = sd.source("s").on_spark(spark).batch({"s": frame})
    assert [kind for _, kind in same.dtypes][2:4] == ["bigint", "double"]
    assert collected(same) == collected(frame)
    plain = frame.drop("lookup")
    query = sd.source("s").where(lambda e: isinstance(e.money, Decimal) and e.time.tzinfo is not None and e.nested.y.z == "q")
    assert collected(query.on_spark(spark).batch({"s": plain})) == collected(plain)
    parts = sd.source("s").select(z=lambda e: e.nested.y.z, x=lambda e: e.nested.x + 1, day=lambda e: e.day)
    found = parts.on_spark(spark).batch({"s": plain})
    assert collected(found) == [(1, 5, "q", 2, date(2020, 1, 2))]
    assert not PYTHON.search(physical_plan(found))
    with pytest.raises(UnsupportedOnSpark, match="map<string,int>"):
        query.on_spark(spark).batch({"s": frame})


def test_declared_payloads(spark: SparkSession, trips: DataFrame) -> None:
    dear = sd.source("trips", Trip).where(lambda e: e.fare > 5).select(lambda e: Stop(e.zone, 1))
    assert [row.zone for row in dear.on_spark(spark).batch({"trips": trips}).collect()] == ["A", "A"]
    made = sd.source("trips", Checked).select(fare=lambda e: e.fare, zone=lambda e: e.zone).on_spark(spark)
    assert sorted(row.fare.toPython() for row in made.batch({"trips": trips}).collect()) == [5.0, 8.0, 11.0]
    whole = sd.source("trips", Checked).on_spark(spark).batch({"trips": trips})
    assert whole.dtypes[2:] == [("zone", "string"), ("fare", "double")]
    assert sorted(row.fare for row in whole.collect()) == [5.0, 8.0, 11.0]
    said = explain_spark(sd.source("trips", Checked).shift(1).plan())
    assert said == {"source:trips": "Python (Arrow), row by row: its payloads are objects of Python", "shift_1": "native"}
    with pytest.raises(SchemaError, match="no column for 'fare'"):
        sd.source("trips", Trip).on_spark(spark).batch({"trips": trips.drop("fare")})


def test_pairs_are_structs_and_clashing_names_are_moved(spark: SparkSession, trips: DataFrame) -> None:
    s = sd.source("trips")
    pairs = s.join(s, on="zone").on_spark(spark).batch({"trips": trips})
    assert pairs.dtypes[2:] == [("_0", "struct<zone:string,fare:double>"), ("_1", "struct<zone:string,fare:double>")]
    moved = s.select(le=lambda e: e.fare, LE=lambda e: e.zone).on_spark(spark).batch({"trips": trips})
    assert moved.columns == ["le", "re", "payload_le", "payload_LE"]
    scalar = s.select(lambda e: e.fare).on_spark(spark).batch({"trips": trips})
    assert scalar.columns == ["le", "re", "value"]


WINDOWS: dict[str, Any] = {
    "tumbling": lambda s: s.tumbling_window(10),
    "hopping": lambda s: s.hopping_window(10, 4),
    "session": lambda s: s.session_window(3),
    "count": lambda s: s.count_window(2),
    "snapshot": lambda s: s.snapshot_window(),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_float_sums_are_rounded_if_that_is_asked_for(spark: SparkSession, name: str) -> None:
    rng = random.Random(1)
    rows: list[tuple[Any, ...]] = [(at, rng.choice("ab"), rng.uniform(-1, 2), rng.randint(0, 9)) for at in range(60)]
    rows += [(3, "none", None, 1), (30, "none", None, 1), (70, "one", 0.1, 1)]
    frame = spark.createDataFrame(rows, "le long, k string, f double, v long").coalesce(1)
    windows = WINDOWS[name](sd.source("s", unit="tick").group_by("k"))
    query = windows.aggregate(
        total=sd.sum(lambda e: e.f), mean=sd.avg(lambda e: e.f), spread=sd.stddev(lambda e: e.f), whole=sd.sum(lambda e: e.v)
    )
    exact, rounded = (query.on_spark(spark).batch(frame, exact=exact) for exact in (True, False))
    assert rounded.dtypes == exact.dtypes
    found = rounded.orderBy("le", "re", "k").toPandas()
    payloads = [sd.Insert(n, at, at + 1, {"k": k, "f": f, "v": v}) for n, (at, k, f, v) in enumerate(rows)]
    known = [(row.le, row.re, *row.payload.values()) for row in query.run({"s": payloads}, engine="reference").cht()]
    wanted = pd.DataFrame(sorted(known), columns=found.columns).astype(found.dtypes)
    pd.testing.assert_frame_equal(found, wanted, rtol=1e-9)
    total = windows.aggregate(sd.sum(lambda e: e.f)).on_spark(spark)
    sums = [physical_plan(total.batch(frame, exact=exact)).count("sum(") for exact in (True, False)]
    assert sums[0] == sums[1] if name == "snapshot" else sums[0] > sums[1]


def test_the_rows_that_operators_choose_keep_their_types(spark: SparkSession) -> None:
    frame = spark.sql(
        "select * from values (1L, 'A', date'2020-01-02', 1.50BD, map('a', 1)), (2L, 'B', date'2020-01-03', 0.25BD, map('b', 2)),"
        " (3L, 'C', date'2020-01-01', 2.00BD, null) as t(le, zone, day, money, more)"
    )
    s = sd.source("s", unit="tick")
    by = {"day": ["A", "B"], "money": ["A", "C"], "zone": ["B", "C"]}
    for field, zones in by.items():
        largest = s.tumbling_window(10).top_k(2, by=field).on_spark(spark).batch({"s": frame})
        assert largest.dtypes[2:] == frame.dtypes[1:]
        assert not PYTHON.search(physical_plan(largest))
        assert sorted(row.zone for row in largest.collect()) == zones
    ranked = s.group_by("zone").tumbling_window(10).top_k(1, by=lambda e: str(e.day), rank=True).select(lambda e: e[1])
    keyed = ranked.on_spark(spark).batch({"s": frame.drop("more")})
    assert keyed.dtypes[2:] == [("_0", "bigint"), ("_1", row_type(frame.drop("more")))]
    met = s.asof_join(s, how="left", direction="forward").on_spark(spark).batch({"s": frame})
    assert met.dtypes[2:] == [("_0", row_type(frame)), ("_1", row_type(frame))]
    assert sorted((row._0.zone, row._1.day) for row in met.collect()) == sorted((row.zone, row.day) for row in frame.collect())


class Steps(UDSO[Any, list[int], float]):
    def create_state(self) -> list[int]:
        return []

    def process(self, state: list[int], payload: Any, le: int) -> tuple[list[int], list[float]]:
        return [le], [(le - before) / 2 for before in state]


def test_the_items_of_rows_have_their_types(spark: SparkSession) -> None:
    frame = spark.sql(
        "select * from values (1L, array(1, null), array(named_struct('x', 1.5BD, 'y', 'a'))), (2L, array(), array())"
        " as t(le, numbers, pairs)"
    )
    s = sd.source("s", unit="tick")
    numbers = s.select_many(lambda e: e.numbers).on_spark(spark).batch({"s": frame})
    pairs = s.select_many(lambda e: e.pairs).select(y=lambda e: e.y, x=lambda e: e.x).on_spark(spark).batch({"s": frame})
    assert collected(numbers) == [(1, 2, 1), (1, 2, None)]
    assert (pairs.dtypes[2:], collected(pairs)) == ([("y", "string"), ("x", "decimal(2,1)")], [(1, 2, "a", Decimal("1.5"))])
    assert not any(PYTHON.search(physical_plan(found)) for found in (numbers, pairs))

    def halves(e: Any) -> list[float]:
        return [n / 2 for n in e.numbers if n]

    assert s.select_many(halves).on_spark(spark).batch({"s": frame}).dtypes[2:] == [("value", "double")]
    assert collected(s.scan(Steps()).on_spark(spark).batch({"s": frame.select("le")})) == [(2, 3, 0.5)]
    nothing = spark.sql("select 1L as le, cast(null as array<int>) as numbers")
    with pytest.raises(UserCodeError, match="not iterable"), translated():
        s.select_many(lambda e: e.numbers).on_spark(spark).batch({"s": nothing}).collect()


def row_type(frame: DataFrame) -> str:
    """Return the type of the payloads of a frame of points."""
    return f"struct<{','.join(f'{name}:{kind}' for name, kind in frame.dtypes[1:])}>"


def test_results_are_of_the_declared_type_else_variant(spark: SparkSession, trips: DataFrame) -> None:
    windows: Any = sd.source("trips").group_by("zone").snapshot_window()
    query = windows.aggregate(
        spread=Spread().of(lambda e: e.fare), other=Untyped().of(lambda e: e), middle=sd.median(lambda e: e.fare)
    )
    found = query.on_spark(spark).batch({"trips": trips})
    assert found.dtypes[2:] == [("zone", "string"), ("spread", "double"), ("other", "variant"), ("middle", "double")]
    row = found.orderBy("le").collect()[0]
    assert (row.zone, row.spread, row.other.toPython()) == ("A", 0.0, {"n": 1, "all": [1, 2.5, "x", None]})

    def wrong(payloads: Sequence[float]) -> str:
        return max(payloads)  # type: ignore[return-value]

    query = windows.aggregate(sd.uda(wrong), lambda e: e.fare)
    with pytest.raises(Exception, match="declared type"):
        query.on_spark(spark).batch({"trips": trips}).collect()


def test_what_fails_in_a_worker_is_an_error_with_the_line_of_the_user(spark: SparkSession, trips: DataFrame) -> None:
    failing = sd.source("trips").select(lambda e: {"n": 1 // len(str(e.zone)[:0])})
    found = failing.on_spark(spark).batch({"trips": trips})
    with (
        pytest.raises(UserCodeError, match=r"ZeroDivisionError(.|\n)*test_frames.py, line(.|\n)*payload Record\(") as error,
        translated(),
    ):
        found.collect()
    told = "".join(traceback.format_exception(error.value))
    assert "Exception was thrown from the Python worker" not in told
    assert "JVM" not in told


def test_nothing_runs_before_it_is_asked_for(spark: SparkSession) -> None:
    frame = spark.sql("select 1L as le, 5L as re, 1L as v union all select 2L, 3L, cast(raise_error('it ran') as bigint)")
    s = sd.source("s")
    for query in (
        s.group_by(lambda e: e.v).snapshot_window().aggregate(n=sd.count()),
        s.join(s).where(lambda e: len(e) == 2),
        s.group_by(lambda e: str(e.v)).snapshot_window().aggregate(Untyped()),
        s.anti_join(s.shift(1)),
    ):
        found = query.on_spark(spark).batch({"s": frame})
        with pytest.raises(Exception, match="it ran"):
            found.collect()


def test_until_is_a_time(spark: SparkSession, trips: DataFrame) -> None:
    query = sd.source("trips", unit="s").tumbling_window("5m").aggregate(n=sd.count())
    found = query.on_spark(spark).batch({"trips": trips}, until="2020-01-01T00:20:00")
    assert [row.n for row in found.orderBy("le").collect()] == [1, 3, 1, 1]


def test_wrong_frames_are_refused_before_anything_runs(spark: SparkSession, trips: DataFrame) -> None:
    query = sd.source("trips")
    with pytest.raises(QueryError, match="no source 'other'"):
        query.on_spark(spark).batch({"other": trips})
    with pytest.raises(QueryError, match="bound to nothing"):
        query.on_spark(spark).batch({})
    with pytest.raises(SchemaError, match="no column 'le'"):
        query.on_spark(spark).batch({"trips": trips.withColumnRenamed("le", "start")})
    with pytest.raises(SchemaError, match="no time"):
        query.on_spark(spark).batch({"trips": trips.selectExpr("zone as le", "re", "fare")})
    with pytest.raises(QueryError, match="no DataFrame of Spark but a dict"):
        query.on_spark(spark).batch({"trips": {"le": [1]}})
    with pytest.raises(UnsupportedOnSpark, match="is a stream"):
        query.on_spark(spark).batch({"trips": spark.readStream.format("rate").load().selectExpr("value as le")})


def test_explain_of_frames_says_what_runs_over_their_columns_and_shows_spark_s_plan(
    spark: SparkSession, trips: DataFrame
) -> None:
    query = sd.source("trips").to_points().tumbling_window(600).aggregate(middle=sd.median(lambda e: e.fare))
    tree, plan = query.on_spark(spark).explain({"trips": trips}).split("\n\n", 1)
    assert "<native>" in tree
    assert "Python" not in tree
    assert plan.startswith("== Physical Plan ==")
    assert "HashAggregate" in plan
    assert PYTHON.search(plan) is None
