"""Streams on Spark: the same bids through shards, whose number grows, beside the local engine alone in this process.

Count and sum per key over tumbling windows; a million bids of 1,000 keys in ten files, each of which is a micro-batch, results of
`final` into Spark's sink that drops them. Wall-clock seconds and rows a second; the first micro-batch, in which workers start, is
left out of both. Needs Java.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import streamdsl as sd
from benchmarks.data import bids

ROWS = 1_000_000
FILES = 10
SHARDS = (1, 2, 4)
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def query() -> Any:
    source = sd.source("bids", unit="tick", progress=sd.Progress.slack(30_000))
    return source.group_by("key").tumbling_window(10_000).aggregate(n=sd.count(), total=sd.sum(lambda e: e.price))


def parts() -> list[Any]:
    table = pa.table(dict(bids(ROWS, keys=1_000, late=0.1)))
    size = ROWS // FILES
    return [table.slice(n * size, size) for n in range(FILES)]


def alone(tables: list[Any]) -> float:
    """Return the seconds that the local engine takes for all but the first part."""
    session = query().open(emit="final")
    session.feed(tables[0]).to_arrow()
    start = time.perf_counter()
    for table in tables[1:]:
        session.feed(table).to_arrow()
    return time.perf_counter() - start


def on_spark(spark: Any, folder: Path, shards: int) -> tuple[float, int]:
    """Return the seconds of all micro-batches but the first, and the bytes of the checkpoint."""
    spark.conf.set("spark.sql.shuffle.partitions", str(shards))
    checkpoint = folder / f"checkpoint-{shards}"
    frame = spark.readStream.schema("le long, key long, price long").option("maxFilesPerTrigger", 1).parquet(str(folder / "bids"))
    writer = query().on_spark(spark).stream({"bids": frame}, emit="final").writeStream.format("noop")
    running = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    running.awaitTermination()
    batches = [progress["durationMs"]["triggerExecution"] for progress in running.recentProgress if progress["numInputRows"]]
    return sum(batches[1:]) / 1000, sum(file.stat().st_size for file in checkpoint.rglob("*") if file.is_file())


def main() -> None:
    """Print the table."""
    from pyspark.sql import SparkSession

    tables, rows = parts(), ROWS - ROWS // FILES
    print("| | seconds | rows/s | checkpoint, MB |\n|---|---|---|---|")
    seconds = alone(tables)
    print(f"| the local engine alone | {seconds:.2f} | {rows / seconds:,.0f} | |")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.sql.streaming.stateStore.providerClass", ROCKSDB).getOrCreate()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bids").mkdir()
        for n, table in enumerate(tables):
            pq.write_table(table, folder / "bids" / f"{n}.parquet")
        for shards in (SHARDS[0], *SHARDS):
            seconds, size = on_spark(spark, folder, shards)
            print(f"| Spark, {shards} shards, local[2] | {seconds:.2f} | {rows / seconds:,.0f} | {size / 1e6:.1f} |")
            if shards == SHARDS[0]:
                for file in sorted((folder / f"checkpoint-{shards}").rglob("*"), reverse=True):
                    file.rmdir() if file.is_dir() else file.unlink()


if __name__ == "__main__":
    main()
