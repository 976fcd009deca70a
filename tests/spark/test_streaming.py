"""Streams on Spark: what they write over many small micro-batches, folded, is what the definition says."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.errors import QueryError, UnsupportedOnSpark
from streamdsl.spark import canonical
from streamdsl.testing import arrival_orders
from tests.spark.helpers import history, stream
from tests.spark.streams import PHYSICAL, PROVIDER, QUERIES, ROCKSDB, files_of, frame_of

pytestmark = [pytest.mark.spark]

NUMBERS = itertools.count()


def streamed(spark: Any, query: sd.Stream[Any], folders: dict[str, Path], emit: Any, where: Path) -> Any:
    """Return what a stream writes, file by file."""
    frames = {name: frame_of(spark, folder) for name, folder in folders.items()}
    out = query.on_spark(spark).stream(frames, emit=emit)
    writer = (
        out.writeStream.format("memory").queryName(f"t{next(NUMBERS)}").option("checkpointLocation", str(where / "checkpoint"))
    )
    running = writer.trigger(availableNow=True).start()
    running.awaitTermination()
    return spark.table(running.name)


@pytest.mark.parametrize("name", QUERIES)
def test_it_is_what_the_definition_says(streaming: Any, name: str, tmp_path: Path) -> None:
    query = QUERIES[name]
    sources = sorted({node.source for node in query.plan().walk() if hasattr(node, "source")})
    inputs = {source: history(7 + n, 18, unending=False) for n, source in enumerate(sources)}
    for source in sources:
        (events,) = arrival_orders(inputs[source], 1, seed=5)
        files_of([*events, sd.Cti(sd.INFINITY)], 3, tmp_path / source)
    emit = "final" if name == "tumbling" else "speculative"
    events = streamed(streaming, query, {source: tmp_path / source for source in sources}, emit, tmp_path)
    assert {row.kind for row in events.collect()} >= {"insert", "cti"}
    expected = denote(query.plan(), inputs, sd.INFINITY)
    assert sorted(map(tuple, canonical(events).collect())) == sorted((row.le, row.re, *row.payload.values()) for row in expected)


def test_what_streams_need_is_said(streaming: Any, tmp_path: Path) -> None:
    files_of([sd.Insert("a", 1, 5, {"k": "a", "v": 1, "f": 0.5, "m": 1})], 1, tmp_path / "s")
    frame = streaming.readStream.schema(PHYSICAL).parquet(str(tmp_path / "s"))
    on_spark = QUERIES["tumbling"].on_spark(streaming)
    with pytest.raises(QueryError, match="'s' is bound to nothing"):
        on_spark.stream({})
    with pytest.raises(QueryError, match="no source 'x'"):
        on_spark.stream({"x": frame})
    counted = sd.source("s", progress=sd.Progress.every(3)).group_by("k").tumbling_window(5).aggregate(n=sd.count())
    with pytest.raises(UnsupportedOnSpark, match="a progress policy"):
        counted.on_spark(streaming).stream({"s": frame})
    dropping = sd.source("s", on_violation="drop").group_by("k").tumbling_window(5).aggregate(n=sd.count())
    with pytest.raises(UnsupportedOnSpark, match="cannot tell what was dropped"):
        dropping.on_spark(streaming).stream({"s": frame})
    tables = stream().join(sd.from_table([{"k": "a", "name": "A"}]), on="k", select=lambda e, table: table.name)
    with pytest.raises(UnsupportedOnSpark, match="brings its own rows"):
        tables.on_spark(streaming).stream({"s": frame})
    named = stream().select(kind=lambda e: e.k, id=lambda e: e.v, shard=lambda e: e.m).on_spark(streaming).stream({"s": frame})
    assert named.columns == ["kind", "id", "le", "re", "re_new", "payload_kind", "payload_id", "payload_shard", "shard"]
    streaming.conf.unset(PROVIDER)
    with pytest.raises(QueryError, match="RocksDB"):
        on_spark.stream({"s": frame})
    streaming.conf.set(PROVIDER, ROCKSDB)


def test_a_query_says_how_it_is_spread() -> None:
    said = {name: query.on_spark(None).explain_stream() for name, query in QUERIES.items()}
    assert said["tumbling"] == "shards by e.k"
    assert said["rows"] == "one shard: there is no group whose key could tell rows apart"
    assert said["join"] == "shards by e.k"
    ends = stream().where(lambda e, life: life.re > 5).group_by("k").tumbling_window(5).aggregate(n=sd.count())
    assert ends.on_spark(None).explain_stream() == "one shard: where_1 is outside of any group"
    assert said["anti join, grouped after it"] == "one shard: anti_join_1 is outside of any group"
