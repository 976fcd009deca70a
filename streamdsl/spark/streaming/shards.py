"""Which shard a row goes to: by its key, equal keys to the same one."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamdsl.expr.table import Column
from streamdsl.spark.keys import canonical
from streamdsl.temporal.payload import payload_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MIX = np.uint64(0x9E3779B97F4A7C15)


def shard_places(columns: Sequence[Column], shards: int) -> NDArray[np.int64]:
    """Return for each row a number in `[0, shards)`, equal where all parts of its key are.

    >>> shard_places([np.array([7, 8, 7])], 4).tolist() == shard_places([np.array([7.0, 8.0, 7.0], dtype=object)], 4).tolist()
    True
    """
    mixed = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        mixed ^= _hashes(column)
        mixed *= _MIX
        mixed ^= mixed >> np.uint64(29)
    return (mixed % np.uint64(shards)).astype(np.int64)


def _hashes(column: Column) -> NDArray[np.uint64]:
    if column.dtype.kind in "bi":
        return column.astype(np.int64).view(np.uint64)
    return np.array([_hash(value) for value in column.tolist()], dtype=np.uint64)


def _hash(value: Any) -> int:
    key = payload_key(value)
    if isinstance(key, (int, float, Decimal, Fraction)) and -(2**63) <= key < 2**63 and int(key) == key:
        return int(key) % 2**64
    return zlib.crc32(canonical(key).encode("utf-8", "surrogatepass"))


def shard_ids(spark: SparkSession, shards: int) -> list[int]:
    """Return an id for each shard, such that Spark's hash sends each to a partition of its own."""
    rows = spark.range(64 * shards).selectExpr("id", f"pmod(hash(cast(id as int)), {shards}) as place")
    first = rows.groupBy("place").min("id").collect()
    if len(first) < shards:
        return list(range(shards))
    return [int(row[1]) for row in sorted(first)]
