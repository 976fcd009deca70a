"""A streaming job in a process of its own: reports of cars by road, from a folder to a table, one file per micro-batch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import streamdsl as sd
from streamdsl.spark import ParquetTable
from tests.spark.conftest import FAST

SCHEMA = "le long, road string, speed long"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def query() -> sd.Stream[Any]:
    cars = sd.source("cars", progress=sd.Progress.slack(20))
    return cars.group_by("road").tumbling_window(10).aggregate(n=sd.count(), mean=sd.avg(lambda e: e.speed))


def main(folder: Path) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("streamdsl-job")
    settings = {**FAST, "spark.sql.shuffle.partitions": "2", "spark.sql.streaming.stateStore.providerClass": ROCKSDB}
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    cars = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    table = ParquetTable(folder / "out", every=50)
    running = query().on_spark(spark).write({"cars": cars}, table, folder / "checkpoint", trigger="available-now")
    running.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
