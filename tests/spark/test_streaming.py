"""Streams on Spark: what they write over many small micro-batches, folded, is what the definition says."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.errors import QueryError
from streamdsl.plan.node import sources
from streamdsl.spark import Meter, canonical
from streamdsl.temporal import CHT
from tests.spark.helpers import history, stream
from tests.spark.streams import NAMES, PHYSICAL, PROVIDER, QUERIES, ROCKSDB, files_of, frame_of, told_in_files

pytestmark = [pytest.mark.spark]

NUMBERS = itertools.count()


def streamed(spark: Any, query: sd.Stream[Any], folders: dict[str, Path], where: Path) -> Any:
    """Return what a stream writes, file by file."""
    frames = {name: frame_of(spark, folder) for name, folder in folders.items()}
    return written_by(spark, query.on_spark(spark).stream(frames, emit="speculative"), where, [])


def written_by(spark: Any, out: Any, where: Path, figures: list[Any]) -> Any:
    """Return what a stream writes; `figures` gets what its meter says."""
    writer = (
        out.writeStream.format("memory").queryName(f"t{next(NUMBERS)}").option("checkpointLocation", str(where / "checkpoint"))
    )
    running = writer.trigger(availableNow=True).start()
    running.awaitTermination()
    figures += map(Meter(), running.recentProgress)
    return spark.table(running.name)


@pytest.mark.parametrize("name", [name for name in QUERIES if name != "tumbling"])
def test_it_is_what_the_definition_says(streaming: Any, name: str, tmp_path: Path) -> None:
    query = QUERIES[name]
    names = sorted(sources(query.plan()).keys() & {"s", "t"})
    inputs = {source: history(7 + n, 18, unending=False) for n, source in enumerate(names)}
    for source in names:
        told_in_files(inputs[source], 2, tmp_path / source, seed=5)
    events = streamed(streaming, query, {source: tmp_path / source for source in names}, tmp_path)
    assert {row.kind for row in events.collect()} >= {"insert", "cti"}
    expected = denote(query.plan(), {**dict.fromkeys(sources(query.plan()), TABLE), **inputs}, sd.INFINITY)
    found = [tuple(map(plain, row)) for row in canonical(events).collect()]
    assert sorted(found, key=str) == sorted(((row.le, row.re, *row.payload.values()) for row in expected), key=str)


TABLE: CHT[Any] = CHT.from_rows([(sd.MIN_TIME, sd.INFINITY, row) for row in NAMES])


def plain(value: Any) -> Any:
    """Return a value of a column; what nothing declares is a VARIANT."""
    return value.toPython() if hasattr(value, "toPython") else value


def test_what_streams_need_is_said(streaming: Any, tmp_path: Path) -> None:
    files_of([sd.Insert("a", 1, 5, {"k": "a", "v": 1, "f": 0.5, "m": 1})], 1, tmp_path / "s")
    frame = streaming.readStream.schema(PHYSICAL).parquet(str(tmp_path / "s"))
    on_spark = QUERIES["tumbling"].on_spark(streaming)
    with pytest.raises(QueryError, match="'s' is bound to nothing"):
        on_spark.stream({})
    with pytest.raises(QueryError, match="no source 'x'"):
        on_spark.stream({"x": frame})
    table = sd.sources.from_table([{"k": "a", "name": "A"}])
    with pytest.raises(QueryError, match="there is nothing to stream"):
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
    assert said["joins of every kind"] == "shards by e.k"
    ends = stream().where(lambda e, life: life.re > 5).group_by("k").tumbling_window(5).aggregate(n=sd.count())
    assert ends.on_spark(None).explain_stream() == "shards by e.k"
    assert said["groups, then all, then other groups"].split("\n") == [
        "stage 1 of s: shards by e.k",
        "stage 2 of stage 1: one shard: window_apply_1 is outside of any group",
        "stage 3 of stage 2: shards by e",
    ]


@pytest.mark.parametrize("start", ["le", "ts"])
def test_a_watermark_of_spark_is_a_policy_and_late_rows_are_told_of(streaming: Any, start: str, tmp_path: Path) -> None:
    second = 10**6
    for part, seconds in enumerate([(1, 2, 31), (12, 22, 23, 45)]):
        rows = pa.table({start: pa.array([n * second for n in seconds], pa.timestamp("us", "UTC")), "k": ["a"] * len(seconds)})
        (tmp_path / "in").mkdir(exist_ok=True)
        pq.write_table(rows, tmp_path / "in" / f"{part}.parquet")
        os.utime(tmp_path / "in" / f"{part}.parquet", (10**9 + part, 10**9 + part))
    reader = streaming.readStream.schema(f"{start} timestamp, k string").option("maxFilesPerTrigger", 1)
    frame = reader.parquet(str(tmp_path / "in"))
    query = sd.source("s", on_violation="drop").group_by("k").tumbling_window("10s").aggregate(n=sd.count())
    out = query.on_spark(streaming).stream(frame.withWatermark(start, "10 seconds"), emit="final", start=start)
    figures: list[Any] = []
    written = written_by(streaming, out, tmp_path, figures)
    written = written.selectExpr("kind", "unix_seconds(le) as le", "unix_seconds(re_new) as re_new", "n")
    rows = [tuple(row) for row in written.collect()]
    assert [row for row in rows if row[0] == "insert"] == [("insert", 0, None, 2), ("insert", 20, None, 2)]
    assert [row for row in rows if row[0] == "rejected"] == [("rejected", 12, 21, None)]
    assert ("cti", 30, None, None) in rows
    assert figures[-1]["cti"] == 30 * second
    assert figures[-1]["input_ctis"] == {"s": 35 * second}
