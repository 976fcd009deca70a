"""A streaming job of two stages in a process of its own, from a folder of cars' reports to one, a file per micro-batch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import streamdsl as sd
from tests.spark.conftest import FAST

SCHEMA = "le long, road string, speed long"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def query() -> sd.Stream[Any]:
    cars = sd.source("cars", progress=sd.Progress.slack(20))
    means = cars.group_by("road").tumbling_window(10).aggregate(n=sd.count(), mean=sd.avg(lambda e: e.speed))
    return means.group_by("n").tumbling_window(10).aggregate(roads=sd.count(), most=sd.max(lambda e: e.mean))


def main(folder: Path) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("streamdsl-job")
    settings = {**FAST, "spark.sql.shuffle.partitions": "2", "spark.sql.streaming.stateStore.providerClass": ROCKSDB}
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    cars = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    writer = query().on_spark(spark).stream({"cars": cars}).writeStream.format("parquet").option("path", str(folder / "out"))
    writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
