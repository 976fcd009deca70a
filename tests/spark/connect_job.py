"""Queries of every kind on a Spark Connect session, and a stream, each answer beside the definition's; a program of its own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamdsl as sd
from streamdsl.spark import Meter, ParquetTable
from tests.spark import streams
from tests.spark.conftest import FEW_ROWS

ROWS = [(1, 5, "a", 2.5), (2, 9, "a", 7.0), (3, 4, "b", 9.0), (6, 12, None, -1.0)]
S = sd.source("s", unit="tick")


@sd.udf
def named(key: str | None) -> bool:
    return key is not None


class Spread(sd.UDA[float, float]):
    def compute_result(self, payloads: Sequence[float]) -> float:
        return max(payloads) - min(payloads)


QUERIES: dict[str, sd.Stream[Any]] = {
    "native": S.where(lambda e: e.v > 2).group_by("k").tumbling_window(5).aggregate(n=sd.count(), mean=sd.avg(lambda e: e.v)),
    "Arrow": S.where(lambda e: named(e.k)),
    "UDA": S.group_by("k").snapshot_window().aggregate(spread=Spread().of(lambda e: e.v)),
    "join": S.join(S, on="k", select=lambda a, b: {"a": a.v, "b": b.v}),
    "join without key": S.join(S, select=lambda a, b: {"a": a.v, "b": b.v}),
}


def shown(rows: Any) -> list[str]:
    """Return rows as texts, in order."""
    return sorted(repr(tuple(row)) for row in rows)


def check_stream(spark: Any, frame: Any, folder: Path) -> None:
    """Stream rows beside a static frame into a table, whose files a process of the server writes, and look at its figures."""
    joined = streams.by_value().join(sd.source("t", unit="tick"), on="k", select=streams.SIDES)
    query = joined.group_by("k").tumbling_window(5).aggregate(n=sd.count())
    rows = [(le, re, {"k": k or "", "v": n, "f": v, "m": None}) for n, (le, re, k, v) in enumerate(ROWS)]
    events = [*(sd.Insert(f"e{n}", *row) for n, row in enumerate(rows)), sd.Cti(sd.INFINITY)]
    streams.files_of(events, 1, folder / "in")
    static = [sd.Insert(i, le, re, {"k": k, "v": v}) for i, (le, re, k, v) in enumerate(ROWS)]
    frames = {"s": streams.frame_of(spark, folder / "in"), "t": frame}
    table = ParquetTable(folder / "out")
    running = query.on_spark(spark).write(frames, table, folder / "checkpoint", emit="final", trigger="available-now")
    running.awaitTermination()
    expected = [
        (row.le, row.re, *row.payload.values()) for row in query.run({"s": events, "t": static}, engine="reference").cht()
    ]
    assert shown(spark.read.parquet(str(table.path)).drop("id").collect()) == shown(expected)
    figures = Meter()(running.recentProgress[-1])
    assert (figures["rows_out"], figures["cti"]) == (len(expected), sd.INFINITY), figures


def main(server: str, folder: Path) -> None:
    """Run all queries, and say how many there were."""
    from pyspark.sql import SparkSession

    settings = {**FEW_ROWS, streams.PROVIDER: streams.ROCKSDB}
    builder = SparkSession.builder.remote(server)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    assert "connect" in type(spark).__module__
    frame = spark.createDataFrame(ROWS, "le long, re long, k string, v double")
    events = [sd.Insert(i, le, re, {"k": k, "v": v}) for i, (le, re, k, v) in enumerate(ROWS)]
    for name, query in QUERIES.items():
        expected = [(row.le, row.re, *row.payload.values()) for row in query.run({"s": events}, engine="reference").cht()]
        assert shown(query.on_spark(spark).batch({"s": frame}).collect()) == shown(expected), name
        if name == "join":
            named = frame.withColumnsRenamed({"le": "began", "re": "ended"})
            assert shown(query.on_spark(spark).batch(named, start="began", end="ended").collect()) == shown(expected), name
    assert "== Physical Plan ==" in QUERIES["native"].on_spark(spark).explain({"s": frame})
    assert "MapInArrow where_1(" in QUERIES["Arrow"].on_spark(spark).explain({"s": frame})
    own = sd.from_rows([(1, 5, {"v": 2})]).where(lambda e: e.v > 1)
    assert own.run(engine="spark").cht() == own.run().cht()
    check_stream(spark, frame, folder)
    print(f"{len(QUERIES)} queries and a stream give the same rows")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
