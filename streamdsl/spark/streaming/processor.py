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


def shard_processor(stage: bytes) -> StatefulProcessor:
    """Return what runs the shards' plan: `stage` is a `ShardStage` as bytes.

    A class inside a function travels by value: the process that Spark starts before a stream's first micro-batch, to ask what
    state there is, need not load streamdsl.
    """

    class ShardProcessor(StatefulProcessor):  # type: ignore[misc]
        def init(self, handle: StatefulProcessorHandle) -> None:
            # `head` has a token for what the chunks hold, the digest of each, and of how many shards this is one.
            self._head = handle.getValueState("head", "token string, digests binary, shards int")
            self._chunks = handle.getMapState("chunks", "place int", "chunk binary")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803  (Spark's)
            from streamdsl.spark.streaming.processor import Kept

            yield from Kept(stage, self._head, self._chunks).run(int(key[0]), rows)

        def close(self) -> None:
            pass

    return ShardProcessor()


class Kept:
    """The state of a shard in Spark's state store."""

    def __init__(self, stage: bytes, head: Any, chunks: Any) -> None:
        self._stage: ShardStage = loaded(stage)
        self._head = head
        self._chunks = chunks

    def run(self, number: int, rows: Iterator[Any]) -> Iterator[Row]:
        """Yield what the shard sends when it is fed what has come for it."""
        stage = self._stage
        token, digests, shards = self._head.get() if self._head.exists() else (None, b"", stage.shards)
        if shards != stage.shards:
            raise QueryError(
                f"the stream's state is that of {shards} shards, and it would go on with {stage.shards}",
                hint=f"set spark.sql.shuffle.partitions to {shards}, or begin a new checkpoint",
            )
        known = None if token is None else _running.pop(token, None)
        shard = known or stage.open(None if token is None else self._saved(len(digests) // _DIGEST), number)
        for blob in shard.take([parcel_of(row) for row in rows]):
            yield Row(shard=number, blob=blob)
        self._save(shard, bytes(digests), shards)

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
