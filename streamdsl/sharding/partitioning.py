"""Partitionings: the shard of each row of a stream. They are stable, as state outlives a process: no salted hash is used."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.batch import Batch, PointBatch
from streamdsl.engine.operator import inputs_of
from streamdsl.expr.deferred import AnyColumn, DeferredColumn
from streamdsl.expr.describe import describe
from streamdsl.expr.evaluate import evaluate_deferred
from streamdsl.expr.nodes import Expr
from streamdsl.expr.table import Column
from streamdsl.sharding.key_encoding import encode_key
from streamdsl.temporal.payload import payload_key

_MIX = np.uint64(0x9E3779B97F4A7C15)
_MANY = 64
"""Of fewer values each is hashed, be it the same as another."""


@dataclass(frozen=True, slots=True)
class HashByKey:
    """Hash partitioning by key: rows with equal keys go to the same shard."""

    parts: tuple[Expr, ...]

    def __str__(self) -> str:
        return ", ".join(map(describe, self.parts))

    def shard_indexes(self, rows: Batch, ids: Any, shards: int) -> NDArray[np.int64]:
        """Return for each row the index of its shard."""
        return hash_to_shards([evaluate_deferred(part, inputs_of(rows)) for part in self.parts], shards)


@dataclass(frozen=True, slots=True)
class HashById:
    """Hash partitioning by event id: an insertion and its retractions go to the same shard. It suits row operators."""

    def __str__(self) -> str:
        return "the ids of rows"

    def shard_indexes(self, rows: Batch, ids: Any, shards: int) -> NDArray[np.int64]:
        """Return for each row the index of its shard; rows without ids are dealt out in turn.

        For `ids=None` it goes by the LEs, which what is told of a row has too.
        """
        if ids is None:
            if type(rows) is PointBatch:  # rows without ids, which nothing is told of later
                return np.asarray(rows.ids) % shards
            return hash_to_shards([rows.le], shards)
        if ids.null_count == len(ids):
            return np.arange(len(ids)) % shards
        from pandas.util import hash_array  # a worker that is sent its rows starts without pandas

        hashes = hash_array(ids.to_numpy(zero_copy_only=False), categorize=False)
        return (hashes % np.uint64(shards)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class SinglePartition:
    """A single partition: all rows go to the first shard."""

    def __str__(self) -> str:
        return "one shard"

    def shard_indexes(self, rows: Batch, ids: Any, shards: int) -> NDArray[np.int64]:
        """Return for each row the index of its shard."""
        return np.zeros(len(rows), dtype=np.int64)


Partitioning: TypeAlias = HashByKey | HashById | SinglePartition


def hash_to_shards(columns: Sequence[AnyColumn], shards: int) -> NDArray[np.int64]:
    """Return for each row an integer in `[0, shards)`; rows whose key parts are all equal, as Python compares them, get the same.

    >>> floats = np.array([7.0, 8.0, 7.0], dtype=object)
    >>> hash_to_shards([np.array([7, 8, 7])], 4).tolist() == hash_to_shards([floats], 4).tolist()
    True
    """
    if len(columns) == 1 and isinstance(first := columns[0], DeferredColumn):
        return first.mapped(_shards_of, shards)
    mixed = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        mixed ^= column.mapped(_hashes).view(np.uint64) if isinstance(column, DeferredColumn) else _hashes(column)
        mixed *= _MIX
        mixed ^= mixed >> np.uint64(29)
    return (mixed % np.uint64(shards)).astype(np.int64)


def _shards_of(column: AnyColumn, shards: int) -> NDArray[np.int64]:
    return hash_to_shards([column.column if isinstance(column, DeferredColumn) else column], shards)


def _hashes(column: AnyColumn) -> NDArray[np.uint64]:
    if isinstance(column, DeferredColumn):
        column = column.column
    if column.dtype.kind in "bi":
        return column.astype(np.int64).view(np.uint64)
    if len(column) > _MANY and column.dtype == object:
        import pandas as pd

        if pd.api.types.infer_dtype(column, skipna=False) == "string":
            codes, texts = pd.factorize(column)  # each text is hashed once
            return _hashes(texts)[codes] if len(texts) < len(column) else _each(column)
    return _each(column)


def _each(column: Column) -> NDArray[np.uint64]:
    return np.array([_hash(value) for value in column.tolist()], dtype=np.uint64)


def _hash(value: Any) -> int:
    key = value if type(value) is str else payload_key(value)
    if type(key) is not str and isinstance(key, (int, float, Decimal, Fraction)) and -(2**63) <= key < 2**63 and int(key) == key:
        return int(key) % 2**64
    return zlib.crc32(encode_key(key).encode("utf-8", "surrogatepass"))
