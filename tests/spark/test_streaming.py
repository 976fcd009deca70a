"""Streams on Spark: what they write over many small micro-batches, folded, is what the definition says."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.denote.source import sources
from streamdsl.errors import QueryError
from streamdsl.spark import canonical
from streamdsl.temporal import CHT
from streamdsl.testing import arrival_orders
from tests.spark.helpers import history, stream

pytestmark = [pytest.mark.spark]

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
FIELDS = "k string, v long, f double, m long"
PHYSICAL = f"kind string, id string, le long, re long, re_new long, {FIELDS}"
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def streaming(spark: Any) -> Iterator[Any]:
    """The session with what streams need, and two shards."""
    before = {name: spark.conf.get(name, None) for name in (PROVIDER, "spark.sql.shuffle.partitions")}
    spark.conf.set(PROVIDER, ROCKSDB)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield spark
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


class Spread(sd.UDA[int, int]):
    def compute_result(self, payloads: Sequence[int]) -> int:
        return max(payloads) - min(payloads)


class Numbered(sd.UDSO[Any, int, int]):
    def create_state(self) -> int:
        return 0

    def process(self, state: int, payload: Any, le: int) -> tuple[int, list[int]]:
        return state + 1, [state]


class Lived(sd.TimeSensitiveUDA[int, int]):
    def compute_result(self, events: Sequence[sd.IntervalEvent[int]], window: sd.WindowDescriptor) -> int:
        return sum(event.end_time - event.start_time for event in events)


class Ends(sd.UDO[Any, int]):
    def compute_result(self, payloads: Sequence[Any]) -> list[int]:
        values = [payload["v"] for payload in payloads]
        return [min(values), max(values)]


def NAMED(event: Any, table: Any) -> Any:
    return {"name": table.name, "v": event.v}


def by_key(name: str = "s") -> Any:
    return stream(name).where(lambda e: e.v > -3).group_by("k")


def by_value() -> sd.Stream[Any]:
    return stream().where(lambda e: e.v > 0)


NAMES = [{"k": "a", "name": "A"}, {"k": "b", "name": "B"}]
QUERIES: dict[str, sd.Stream[Any]] = {
    "rows": by_value().select(k=lambda e: e.k, w=lambda e: e.v * 2).alter_duration(5),
    "tumbling": by_key().tumbling_window(5).aggregate(n=sd.count(), total=sd.sum(lambda e: e.v)),
    "hopping, a module": by_key().hopping_window(8, 4).aggregate(spread=Spread().of(lambda e: e.v)),
    "snapshot": by_key().snapshot_window().aggregate(n=sd.count(), most=sd.max(lambda e: e.v)),
    "a stream with itself": stream()
    .where(lambda e: e.v > 0)
    .join(stream(), on="k", select=lambda a, b: {"k": a.k, "w": a.v + b.v}),
    "join": stream().join(stream("t"), on="k", select=lambda a, b: {"k": a.k, "w": a.v + b.v}),
    "anti join, grouped after it": stream()
    .anti_join(stream("t"), on="k")
    .group_by("k")
    .tumbling_window(9)
    .aggregate(n=sd.count()),
    "groups, then all": by_key().hopping_window(8, 4).aggregate(n=sd.count()).tumbling_window(8).aggregate(n=sd.count()),
    "reference data, rows in order, a module that sees times": stream()
    .join(sd.from_table(NAMES), on="k", select=NAMED)
    .group_by("name")
    .apply(lambda g: g.scan(Numbered()).tumbling_window(6).aggregate(lived=Lived().of(lambda n: n)))
    .select(name=lambda e: e[0], lived=lambda e: e[1].lived),
    "an operator over all, distinct": stream().alter_duration(3).snapshot_window().apply(Ends()).select(v=lambda v: v).distinct(),
}


def row_of(event: Any) -> dict[str, Any]:
    if isinstance(event, sd.Cti):
        return {"kind": "cti", "le": None if event.time == sd.INFINITY else event.time}
    times = {"le": event.le, "re": None if event.re == sd.INFINITY else event.re}
    if isinstance(event, sd.Insert):
        return {"kind": "insert", "id": str(event.id), **times, **event.payload}
    return {"kind": "retract", "id": str(event.id), **times, "re_new": event.re_new, **event.payload}


def files_of(events: Sequence[Any], n: int, folder: Path) -> None:
    """Write events to files, each of which is a micro-batch."""
    names = [part.split(" ")[0] for part in PHYSICAL.split(", ")]
    types = [
        {"string": pa.string(), "long": pa.int64(), "double": pa.float64()}[part.split(" ")[1]] for part in PHYSICAL.split(", ")
    ]
    size = -(-len(events) // n)
    folder.mkdir(parents=True)
    for part in range(n):
        rows = [row_of(event) for event in events[part * size : (part + 1) * size]]
        columns = [pa.array([row.get(name) for row in rows], kind) for name, kind in zip(names, types, strict=True)]
        pq.write_table(pa.table(dict(zip(names, columns, strict=True))), folder / f"{part}.parquet")
        os.utime(folder / f"{part}.parquet", (10**9 + part, 10**9 + part))  # Spark reads files in the order of their times


def streamed(spark: Any, query: sd.Stream[Any], folders: dict[str, Path], emit: Any, where: Path) -> Any:
    """Return what a stream writes, file by file."""
    frames = {
        name: spark.readStream.schema(PHYSICAL).option("maxFilesPerTrigger", 1).parquet(str(folder))
        for name, folder in folders.items()
    }
    return written_by(spark, query.on_spark(spark).stream(frames, emit=emit), where)


def written_by(spark: Any, out: Any, where: Path) -> Any:
    """Return what a stream writes."""
    writer = (
        out.writeStream.format("memory").queryName(f"t{next(NUMBERS)}").option("checkpointLocation", str(where / "checkpoint"))
    )
    running = writer.trigger(availableNow=True).start()
    running.awaitTermination()
    return spark.table(running.name)


@pytest.mark.parametrize("name", QUERIES)
def test_it_is_what_the_definition_says(streaming: Any, name: str, tmp_path: Path) -> None:
    query = QUERIES[name]
    names = sorted(sources(query.plan()).keys() & {"s", "t"})
    inputs = {source: history(7 + n, 18, unending=False) for n, source in enumerate(names)}
    for source in names:
        (events,) = arrival_orders(inputs[source], 1, seed=5)
        files_of([*events, sd.Cti(sd.INFINITY)], 3, tmp_path / source)
    emit = "final" if name == "tumbling" else "speculative"
    events = streamed(streaming, query, {source: tmp_path / source for source in names}, emit, tmp_path)
    assert {row.kind for row in events.collect()} >= {"insert", "cti"}
    expected = denote(
        query.plan(), {**inputs, "table_1": CHT.from_rows([(sd.MIN_TIME, sd.INFINITY, row) for row in NAMES])}, sd.INFINITY
    )
    assert sorted(map(tuple, canonical(events).collect())) == sorted((row.le, row.re, *row.payload.values()) for row in expected)


def test_what_streams_need_is_said(streaming: Any, tmp_path: Path) -> None:
    files_of([sd.Insert("a", 1, 5, {"k": "a", "v": 1, "f": 0.5, "m": 1})], 1, tmp_path / "s")
    frame = streaming.readStream.schema(PHYSICAL).parquet(str(tmp_path / "s"))
    on_spark = QUERIES["tumbling"].on_spark(streaming)
    with pytest.raises(QueryError, match="'s' is bound to nothing"):
        on_spark.stream({})
    with pytest.raises(QueryError, match="no source 'x'"):
        on_spark.stream({"x": frame})
    table = sd.from_table([{"k": "a", "name": "A"}])
    with pytest.raises(QueryError, match="none of them stream"):
        table.on_spark(streaming).stream({})
    named = stream().select(kind=lambda e: e.k, id=lambda e: e.v, shard=lambda e: e.m).on_spark(streaming).stream({"s": frame})
    assert named.columns == ["kind", "id", "le", "re", "re_new", "payload_kind", "payload_id", "payload_shard", "shard"]
    streaming.conf.unset(PROVIDER)
    with pytest.raises(QueryError, match="RocksDB"):
        on_spark.stream({"s": frame})
    streaming.conf.set(PROVIDER, ROCKSDB)


def test_a_query_says_how_it_is_spread() -> None:
    said = {name: query.on_spark(None).explain_stream() for name, query in QUERIES.items()}
    assert said["tumbling"] == "shards by e.k"
    assert said["rows"] == "shards by the ids of rows"
    assert said["join"] == "shards by e.k"
    ends = stream().where(lambda e, life: life.re > 5).group_by("k").tumbling_window(5).aggregate(n=sd.count())
    assert ends.on_spark(None).explain_stream() == "shards by e.k"
    assert said["groups, then all"].split("\n") == [
        "stage 1 of s: shards by e.k",
        "stage 2 of stage 1: one shard: window_aggregate_2 is outside of any group",
    ]


def test_a_watermark_of_spark_is_a_policy_and_late_rows_are_told_of(streaming: Any, tmp_path: Path) -> None:
    second = 10**6
    for part, seconds in enumerate([(1, 2, 31), (12, 22, 23, 45)]):
        rows = pa.table({"le": pa.array([n * second for n in seconds], pa.timestamp("us", "UTC")), "k": ["a"] * len(seconds)})
        (tmp_path / "in").mkdir(exist_ok=True)
        pq.write_table(rows, tmp_path / "in" / f"{part}.parquet")
        os.utime(tmp_path / "in" / f"{part}.parquet", (10**9 + part, 10**9 + part))
    frame = streaming.readStream.schema("le timestamp, k string").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    query = sd.source("s", on_violation="drop").group_by("k").tumbling_window("10s").aggregate(n=sd.count())
    out = query.on_spark(streaming).stream({"s": frame.withWatermark("le", "10 seconds")}, emit="final")
    written = written_by(streaming, out, tmp_path).selectExpr(
        "kind", "unix_seconds(le) as le", "unix_seconds(re_new) as re_new", "n"
    )
    rows = [tuple(row) for row in written.collect()]
    assert [row for row in rows if row[0] == "insert"] == [("insert", 0, None, 2), ("insert", 20, None, 2)]
    assert [row for row in rows if row[0] == "rejected"] == [("rejected", 12, 21, None)]
    assert ("cti", 30, None, None) in rows
