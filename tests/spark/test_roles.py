"""DataFrames whose columns are named by their roles, one for a query's only source, and what is said where that cannot be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.errors import EventError, QueryError, SchemaError
from streamdsl.spark import ParquetTable, SourceFrame, translated
from tests.laws.doors.payloads import HOSTILE, KINDS, RESERVED, Kind, hostile
from tests.spark.helpers import stream

pytestmark = [pytest.mark.spark]

ROLES: tuple[tuple[str, str | None], ...] = (
    ("le", "re"),
    ("le", None),
    ("le", "until"),
    ("ts", None),
    ("ts", "until"),
    ("ts", "re"),
    ("re", "le"),
    ("a b", "`q'\"é"),
)
"""Names of start and end, some of which are the other's by default; None: points."""
NAMED = [hostile(name, *names[:2]) for name, names in {**HOSTILE, "names of times": RESERVED, "of events": RESERVED[2:]}.items()]
HELD = {kind.name: kind for kind in [*KINDS.values(), *NAMED] if kind.columns is not None}
"""All types of payloads that columns hold."""


def table_of(kind: Kind, payloads: list[Any], start: str, end: str | None, dates: bool) -> pa.Table:
    """Return payloads as columns, each with a lifetime of its own, one without an end, in columns of these names."""
    assert kind.columns is not None
    fields = [kind.fields(payload) for payload in payloads]
    starts: list[int | None] = list(range(len(payloads)))
    ends: list[int | None] = [None if n == 1 else n + 2 for n in range(len(payloads))]
    times = {start: starts} if end is None else {end: ends, start: starts}
    columns: dict[str, pa.Array] = {
        name: pa.array([dated(n) for n in ticks], pa.timestamp("us", "UTC")) if dates else pa.array(ticks, pa.int64())
        for name, ticks in times.items()
    }
    payload = {name: pa.array([row[name] for row in fields], kind) for name, kind in kind.columns.items()}
    return pa.table({**payload, **columns})


def dated(n: int | None) -> datetime | None:
    return None if n is None else datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=n)


def in_order(table: Any) -> list[list[Any]]:
    """Return the rows of a history by their starts, which differ; names of columns first."""
    rows = sorted((list(row.values()) for row in table.to_pylist()), key=lambda row: row[0])
    return [table.column_names, *rows]


@pytest.mark.parametrize(("name", "dates"), [*((name, False) for name in HELD), ("names of times", True), ("dataclass", True)])
def test_the_law_roles_are_what_they_are_where_frames_come_in_locally(spark: Any, name: str, dates: bool) -> None:
    """For each payload and each choice of names: Spark's history of a frame is that of `from_arrow` with the same words."""
    kind = HELD[name]
    assert kind.columns is not None
    payloads = values(kind)
    expected, found = [], []
    for start, end in ROLES:
        if {start, end} & kind.columns.keys():
            continue
        table = table_of(kind, payloads, start, end, dates)
        expected.append(in_order(sd.from_arrow(table, kind.declared, start, end).to_arrow()))
        source = sd.source("s", kind.declared)
        found.append(source.on_spark(spark).batch(spark.createDataFrame(table), start=start, end=end))
    assert len(found) >= 2
    numbered = [frame.selectExpr("*", f"{n} as `the frame`") for n, frame in enumerate(found)]
    all_rows = reduce(lambda a, b: a.union(b), numbered).toArrow()
    number = pc.field("the frame")
    assert [in_order(all_rows.filter(number == n).drop_columns(["the frame"])) for n in range(len(found))] == expected


def values(kind: Kind) -> list[Any]:
    """Return some payloads of a kind."""
    drawn: list[Any] = []

    @settings(max_examples=3, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(kind.values, min_size=5, max_size=5))
    def draw(values: list[Any]) -> None:
        drawn[:] = values

    draw()
    return drawn


@dataclass(frozen=True)
class Trip:
    ts: int
    zone: str


ROWS = "select * from values (1L, 5L, 'A', 7), (2L, null, 'B', 8) as t(ts, ended, zone, le)"


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()), key=repr)


def test_a_frame_alone_is_that_of_the_only_source(spark: Any) -> None:
    query = sd.source("trips").where(lambda e: e.le > 7).on_spark(spark)
    frame = spark.sql(ROWS)
    found = query.batch(frame, start="ts", end="ended")
    assert found.columns == ["le", "re", "zone", "payload_le"]
    assert rows(found) == [(2, None, "B", 8)]
    for same in (SourceFrame(frame, "ts", "ended"), {"trips": frame}, {"trips": SourceFrame(frame, "ts", "ended")}):
        words: Any = {"start": "ts", "end": "ended"} if same == {"trips": frame} else {}
        assert rows(query.batch(same, **words)) == rows(found)
    tree, plan = query.explain(frame, start="ts", end="ended").split("\n\n", 1)
    assert "source:trips" in tree
    assert "== Physical Plan ==" in plan


def test_a_declared_payload_may_have_the_start_as_a_field(spark: Any) -> None:
    query = sd.source("trips", Trip).select(lambda e: {"twice": e.ts * 2, "zone": e.zone})
    assert rows(query.on_spark(spark).batch(spark.sql(ROWS), start="ts")) == [(1, 2, 2, "A"), (2, 3, 4, "B")]


@pytest.mark.parametrize("start", ["ts", "day"])
def test_rows_of_a_table_without_times_hold_at_all_times(spark: Any, start: str) -> None:
    table = [{"zone": "A", "le": 3}, {"zone": None, "le": 4}]

    def named(zones: sd.Stream[Any]) -> sd.Stream[Any]:
        return sd.source("trips").join(zones, on="zone", select=lambda a, b: {"zone": a.zone, "le": b.le})

    frame = spark.sql(ROWS).selectExpr("*", "timestamp_seconds(ts) as day")
    frames = {"trips": SourceFrame(frame, start), "zones": SourceFrame(spark.createDataFrame(table), start=None)}
    found = named(sd.source("zones")).on_spark(spark).batch(frames)
    with pytest.raises(QueryError, match="rows with the end 'le' have a start"):
        SourceFrame(frame, None, "le")
    assert rows(found) == rows(named(sd.sources.from_table(table)).on_spark(spark).batch(frame, start=start))
    assert [row[2:] for row in rows(found)] == [("A", 3)]


def test_frames_whose_roles_differ(spark: Any) -> None:
    bids, asks = sd.source("bids"), sd.source("asks")
    zones = sd.sources.from_table([{"zone": "A", "name": "Airport"}])
    met: Any = bids.join(asks, on="zone", select=lambda bid, ask: {"zone": bid.zone, "n": ask.n})
    query = met.join(zones, on="zone", select=lambda both, zone: (zone.name, both.n)).on_spark(spark)
    one = spark.sql(ROWS)
    other = spark.sql("select * from values (3L, 'A', 1), (4L, 'B', 2), (9L, 'A', 3) as t(at, zone, n)")
    assert rows(query.batch({"bids": SourceFrame(one, start="ts", end="ended"), "asks": SourceFrame(other, start="at")})) == [
        (3, 4, "Airport", 1)
    ]
    earlier = other.selectExpr("at - 2 as at", "zone", "n")
    assert rows(query.batch({"bids": SourceFrame(one, start="ts"), "asks": earlier}, start="at")) == [(1, 2, "Airport", 1)]


REFUSED: Mapping[str, tuple[type[Exception], str, str]] = {
    "two sources": (QueryError, "the query has 2 sources: bids, asks", "{'bids': frame, 'asks': frame}"),
    "no source": (QueryError, "all sources of the query are bound in it", "give no frame: {}"),
    "a near name": (SchemaError, "no column 'zon'; its columns are: ts, ended, zone, le", "did you mean 'zone'?"),
    "a far name": (SchemaError, "no column 'departure'", "name the columns of the times with start= and end="),
    "an end that is not there": (SchemaError, "no column 'end'", "did you mean 'ended'?"),
    "the same": (QueryError, "column 'ts' is both start and end", "no end makes point events"),
    "a number": (QueryError, "start= is the name of a column, not a int", 'start="pickup_time"'),
    "no start": (QueryError, "start= is the name of a column, not a NoneType", "SourceFrame(rows, start=None) is a table"),
    "a Column": (QueryError, "end= is the name of a column, not a Column", 'end="pickup_time"'),
    "roles of none": (
        QueryError,
        "each frame says its own roles, so start='ts' and end='ended' are of none",
        "either in SourceFrame",
    ),
    "a list": (QueryError, "the input of the source 'trips' is no DataFrame of Spark but a list", "spark.createDataFrame"),
    "a text": (SchemaError, "the column 'zone' holds string, but the stream counts plain ticks", 'unit="us"'),
}


def refused(name: str, spark: Any) -> Any:
    frame: Any = spark.sql(ROWS)
    trips = sd.source("trips").on_spark(spark)
    both = sd.source("bids").join(sd.source("asks"), on="zone").on_spark(spark)
    bound = sd.from_rows([(1, 5, {"zone": "A"})]).on_spark(spark)
    calls: dict[str, Callable[[], Any]] = {
        "two sources": lambda: both.batch(frame, start="ts"),
        "no source": lambda: bound.batch(frame, start="ts"),
        "a near name": lambda: trips.batch(frame, start="zon"),
        "a far name": lambda: trips.explain(frame, start="departure"),
        "an end that is not there": lambda: trips.batch({"trips": SourceFrame(frame, start="ts", end="end")}),
        "the same": lambda: trips.batch(frame, start="ts", end="ts"),
        "a number": lambda: trips.batch(frame, start=3),  # type: ignore[arg-type]
        "no start": lambda: trips.batch(frame, start=None),  # type: ignore[arg-type]
        "a Column": lambda: trips.batch(frame, start="ts", end=frame.ended),
        "roles of none": lambda: trips.batch(SourceFrame(frame, "ts"), start="ts", end="ended"),
        "a list": lambda: trips.batch([frame]),
        "a text": lambda: trips.batch(frame, start="zone"),
    }
    return calls[name]()


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_said_before_anything_runs(spark: Any, name: str) -> None:
    error, said, hint = REFUSED[name]
    with pytest.raises(error, match=f"{re.escape(said)}(?s:.*)\nHint: (?s:.*){re.escape(hint)}"):
        refused(name, spark)


def test_named_roles_make_no_physical_events(spark: Any) -> None:
    """As locally: a frame with all columns of events is one of rows as soon as another column is its start."""
    frame = spark.sql("select 1L as le, 9L as re, 'bus' as kind, 'x' as id, 3L as re_new, 4L as ts")
    found = sd.source("s").on_spark(spark).batch(frame, start="ts")
    assert found.columns == ["le", "re", "payload_le", "payload_re", "kind", "id", "re_new"]
    assert rows(found) == [(4, 5, 1, 9, "bus", "x", 3)]


def test_a_row_without_a_start_is_told_of_by_the_column_s_name(spark: Any) -> None:
    query = sd.source("s").on_spark(spark)
    for row, said in (("cast(null as bigint) as ts, 5L", "its ts is null"), ("6L as ts, 5L", "its ts is after its ended")):
        with pytest.raises(EventError, match=said), translated():
            query.batch(spark.sql(f"select {row} as ended, 1 as v"), start="ts", end="ended").collect()


@pytest.mark.parametrize("engine", ["shards", "driver"])
def test_a_stream_of_rows_whose_columns_have_other_names(streaming: Any, engine: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"ts": [1, 2, 7], "ended": [5, 9, None], "k": ["a", "b", "a"]}), tmp_path / "in" / "0.parquet")
    frame = streaming.readStream.schema("ts long, ended long, k string").parquet(str(tmp_path / "in"))
    query: Any = stream().where(lambda e: e.k == "a").extend(1)
    running = query.on_spark(streaming).write(
        frame, ParquetTable(tmp_path / "out"), tmp_path / "state", start="ts", end="ended", trigger="available-now", engine=engine
    )
    running.awaitTermination()
    assert rows(streaming.read.parquet(str(tmp_path / "out")).drop("id")) == [(1, 6, "a"), (7, None, "a")]


def test_a_source_names_the_columns_of_its_frame(spark: Any) -> None:
    frame = spark.createDataFrame([(1, 3, 7), (4, 9, 8)], "at bigint, until bigint, n bigint")
    trips = sd.source("trips", start="at", end="until")
    expected = [(1, 3, 7), (4, 9, 8)]
    for each in (frame, {"trips": frame}, SourceFrame(frame)):
        assert sorted(map(tuple, trips.on_spark(spark).batch(each).collect())) == expected
    points = trips.on_spark(spark).batch(frame, start="at").select("le", "re", "until").collect()
    assert sorted(map(tuple, points)) == [(1, 2, 3), (4, 5, 9)]
