"""Which shard each row of a stream goes to."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from streamdsl.engine.batch import Batch
from streamdsl.engine.operator import inputs_of
from streamdsl.expr.describe import describe
from streamdsl.expr.evaluate import evaluate
from streamdsl.expr.nodes import Expr
from streamdsl.expr.table import Column
from streamdsl.spark.keys import canonical
from streamdsl.temporal.payload import payload_key

_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class ByKey:
    """Rows with equal keys go to the same shard."""

    parts: tuple[Expr, ...]

    def __str__(self) -> str:
        return ", ".join(map(describe, self.parts))

    def places(self, rows: Batch, ids: Any, shards: int) -> NDArray[np.int64]:
        """Return for each row the number of its shard."""
        return shard_places([evaluate(part, inputs_of(rows)) for part in self.parts], shards)


@dataclass(frozen=True, slots=True)
class ById:
    """What is told of one event goes to the same shard: for operators that take each row alone."""

    def __str__(self) -> str:
        return "the ids of rows"

    def places(self, rows: Batch, ids: Any, shards: int) -> NDArray[np.int64]:
        """Return for each row the number of its shard; a row without an id may go to any."""
        if ids.null_count == len(ids):
            return np.arange(len(ids)) % shards
        hashes = pd.util.hash_array(ids.to_numpy(zero_copy_only=False), categorize=False)
        return (hashes % np.uint64(shards)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Together:
    """All rows go to the first shard."""

    def __str__(self) -> str:
        return "one shard"

    def places(self, rows: Batch, ids: Any, shards: int) -> NDArray[np.int64]:
        """Return for each row the number of its shard."""
        return np.zeros(len(rows), dtype=np.int64)


Placing: TypeAlias = ByKey | ById | Together


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
