"""Shards in Spark: the state of each is kept in Spark's state store, in chunks, of which only those that change are written."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from streamdsl.errors import QueryError
from streamdsl.spark.streaming.shard import Shard, ShardStage
from streamdsl.spark.streaming.wire import parcel_of
from streamdsl.spark.worker import loaded

CHUNK: Final = 2**18
"""Bytes of state that are written as one."""
_DIGEST: Final = 16
_KEPT: Final = 64
_running: dict[str, Shard] = {}
"""Running shards of this process by the state that they are in: the state store has the truth, this saves reading it."""


class ShardProcessor(StatefulProcessor):  # type: ignore[misc]
    """Runs the shards' plan: `stage` is a `ShardStage` as bytes."""

    def __init__(self, stage: bytes) -> None:
        self._stage = stage

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state: `head` has a token for what the chunks hold, the digest of each, and of how many shards this is one."""
        self._head = handle.getValueState("head", "token string, digests binary, shards int")
        self._chunks = handle.getMapState("chunks", "place int", "chunk binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803  (Spark's)
        """Yield what a shard sends when it is fed what has come for it."""
        stage: ShardStage = loaded(self._stage)
        token, digests, shards = self._head.get() if self._head.exists() else (None, b"", stage.shards)
        if shards != stage.shards:
            raise QueryError(
                f"the stream's state is that of {shards} shards, and it would go on with {stage.shards}",
                hint=f"set spark.sql.shuffle.partitions to {shards}, or begin a new checkpoint",
            )
        known = None if token is None else _running.pop(token, None)
        shard = known or stage.open(None if token is None else self._saved(len(digests) // _DIGEST), int(key[0]))
        for blob in shard.take([parcel_of(row) for row in rows]):
            yield Row(shard=int(key[0]), blob=blob)
        self._save(shard, bytes(digests), shards)

    def close(self) -> None:
        """Leave everything as it is."""

    def _saved(self, n_chunks: int) -> bytes:
        return b"".join(bytes(self._chunks.getValue((place,))[0]) for place in range(n_chunks))

    def _save(self, shard: Shard, before: bytes, shards: int) -> None:
        data, token = shard.snapshot(), uuid.uuid4().hex
        digests = []
        for place in range(-(-len(data) // CHUNK)):
            chunk = data[place * CHUNK : (place + 1) * CHUNK]
            digests.append(hashlib.blake2b(chunk, digest_size=_DIGEST).digest())
            if digests[-1] != before[place * _DIGEST : (place + 1) * _DIGEST]:
                self._chunks.updateValue((place,), (chunk,))
        for place in range(len(digests), len(before) // _DIGEST):
            self._chunks.removeKey((place,))
        self._head.update((token, b"".join(digests), shards))
        while len(_running) >= _KEPT:
            del _running[next(iter(_running))]
        _running[token] = shard
