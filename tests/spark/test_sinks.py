"""Tables that follow a stream on Spark, written by its workers, hold what the definition says."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.errors import SchemaError, SinkError
from streamdsl.spark import DatabaseTable, ParquetTable
from tests.spark.helpers import history, stream
from tests.spark.kills import SINKS
from tests.spark.streams import frame_of, told_in_files, union_of, windows_of_every_kind

pytestmark = [pytest.mark.spark]


def test_tables_follow_a_stream(streaming: Any, tmp_path: Path) -> None:
    query, rows = union_of(windows_of_every_kind()), history(11, 18)
    told_in_files(rows, 2, tmp_path / "s", seed=5)
    files, database = ParquetTable(tmp_path / "files", every=10), DatabaseTable(lambda: sqlite3.connect(tmp_path / "db"), "rows")
    streams: list[Any] = []

    def write(frame: Any, batch: int) -> None:
        frame.persist()
        for table in (files, database, database, files):
            table(frame, batch)
        streams.append(frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"))
        frame.unpersist()

    out = query.on_spark(streaming).stream({"s": frame_of(streaming, tmp_path / "s")})
    writer = out.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "checkpoint"))
    running = writer.trigger(availableNow=True).start()
    running.awaitTermination()
    expected = {
        (row.le, None if row.re == sd.INFINITY else row.re, *row.payload.values()) for row in denote(query.plan(), {"s": rows})
    }
    read = streaming.read.parquet(str(tmp_path / "files"))
    assert read.columns == ["id", "le", "re", "k", "n", "most"]
    assert set(map(tuple, read.drop("id").collect())) == expected
    with closing(sqlite3.connect(tmp_path / "db")) as connection:
        assert set(connection.execute("SELECT le, re, k, n, most FROM rows")) == expected
        assert list(connection.execute("SELECT * FROM streamdsl_batches")) == [("rows", 1, running.id)]
    assert streams == [running.id] * 2
    assert {path.name for path in (tmp_path / "files").glob("le_*")} == {f"le_{le // 10}.parquet" for le, *_ in expected}


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_events_in_a_lakehouse_mean_what_the_definition_says(form: str, streaming: Any, tmp_path: Path) -> None:
    """With nulls, retractions and names that formats lack; it is cut off when the table has a micro-batch, and Spark has not."""
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[form])
    fields = {"k": lambda e: e.k, "a b": lambda e: e.m, "V": lambda e: e.v, "v": lambda e: e.f, "": lambda e: "x`.y"}
    query, rows = stream().select(**fields).distinct(), history(11, 18)
    told_in_files(rows, 3, tmp_path / "s", seed=5)
    batches: list[int] = []

    def write(frame: Any, batch: int) -> None:
        SINKS[form].open(tmp_path)(frame, batch)
        batches.append(batch)
        if batches.count(1) == 1 == batch:
            raise RuntimeError("the power is gone")

    def run() -> None:
        frames = {"s": frame_of(streaming, tmp_path / "s")}
        query.on_spark(streaming).write(frames, write, tmp_path / "c", trigger="available-now").awaitTermination()

    with pytest.raises(Exception, match="the power is gone"):
        run()
    run()
    assert batches == [0, 1, 1, 2]
    expected = [
        (row.le, None if row.re == sd.INFINITY else row.re, *row.payload.values()) for row in denote(query.plan(), {"s": rows})
    ]
    assert sorted(SINKS[form].rows(streaming, tmp_path), key=repr) == sorted(expected, key=repr)


def test_values_that_nothing_declares_are_json(spark: Any, tmp_path: Path) -> None:
    times = "timestamp'2026-01-02' as le, cast(null as timestamp) as re, cast(null as timestamp) as re_new"
    events = spark.sql(f"SELECT 'insert' as kind, 'a' as id, {times}, parse_json('[1]') as value, 0 as shard")
    table = ParquetTable(tmp_path / "files", "1d")
    table(events, 0)
    assert [row.value for row in spark.read.parquet(str(table.path)).collect()] == ["[1]"]
    inside = events.selectExpr("kind", "id", "le", "re", "re_new", "struct(value) as value")
    with pytest.raises(SchemaError, match="the column 'value' holds values whose type nothing declares, inside others"):
        table(inside, 1)
    with pytest.raises(SchemaError, match="has no column 'kind', 're_new'"):
        table(events.drop("kind", "re_new"), 1)
    with pytest.raises(SinkError, match="1 to 1 are missing"):
        table(events, 2)
