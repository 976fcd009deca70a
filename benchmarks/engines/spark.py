"""Spark Structured Streaming: each batch is a file, each file a micro-batch, time in seconds, no delay of the watermark."""

from __future__ import annotations

import json
import os
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.engines.engine import HOPPING, Engine

EPOCH = datetime.fromtimestamp(0, UTC)


def append(size: int, slide: int, tuples: list[Any]) -> list[list[int]]:
    """What a micro-batch says of windows that are over."""
    return _run(size, slide, tuples, "append")


def update(size: int, slide: int, tuples: list[Any]) -> list[list[int]]:
    """What a micro-batch says of windows that it changes, in order of window."""
    return _run(size, slide, tuples, "update")


def _run(size: int, slide: int, tuples: list[Any], mode: str) -> list[list[int]]:
    from pyspark.sql import functions as f

    spark = _session()
    found: list[list[int]] = []

    def keep(frame: Any, _: int) -> None:
        rows = sorted(frame.collect(), key=lambda row: row["window"]["start"])
        found.extend(sorted(row["all"]) for row in rows)

    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder, "in"), tuples)
        given = spark.readStream.schema("v long, t timestamp").option("maxFilesPerTrigger", 1).json(f"{folder}/in")
        window = f.window("t", f"{size} seconds", f"{slide} seconds")
        result = given.withWatermark("t", "0 seconds").groupBy(window).agg(f.collect_list("v").alias("all"))
        writer = result.writeStream.outputMode(mode).foreachBatch(keep).option("checkpointLocation", f"{folder}/state")
        writer.trigger(availableNow=True).start().awaitTermination()
    return found


def _write(folder: Path, tuples: list[Any]) -> None:
    """Write a file for each batch, older ones first."""
    folder.mkdir()
    batches: dict[int, list[Any]] = {}
    for value, t_app, _, bid in tuples:
        batches.setdefault(bid, []).append({"v": value, "t": (EPOCH + timedelta(seconds=t_app)).isoformat()})
    for number, rows in enumerate(batches.values()):
        path = folder / f"{number:05d}.json"
        path.write_text("\n".join(map(json.dumps, rows)))
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))


def _session() -> Any:
    from pyspark.sql import SparkSession

    settings = {"spark.sql.shuffle.partitions": "1", "spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC"}
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


ENGINES = [
    Engine(
        "spark-append",
        "Spark Structured Streaming, append mode",
        append,
        HOPPING,
        "SPARK_APPEND",
        ended=False,
        late="as its profile",
        gaps=False,
        is_slow=True,
        package="pyspark",
    ),
    Engine(
        "spark-update",
        "Spark Structured Streaming, update mode",
        update,
        HOPPING,
        "SPARK_UPDATE",
        late="beyond the model",
        gaps=False,
        is_slow=True,
        package="pyspark",
    ),
]
