"""Ids of shards that Spark's hash partitioning spreads evenly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamdsl.spark.job_descriptions import described

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def shard_ids(spark: SparkSession, shards: int) -> list[int]:
    """Return an id for each shard, such that Spark's hash puts each into a partition of its own: no task runs two shards."""
    rows = spark.range(64 * shards).selectExpr("id", f"pmod(hash(cast(id as int)), {shards}) as place")
    with described(spark, "the ids of shards"):
        first = rows.groupBy("place").min("id").collect()
    if len(first) < shards:
        return list(range(shards))
    return [int(row[1]) for row in sorted(first)]
