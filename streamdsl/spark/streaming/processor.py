"""Shards as Spark's stateful processors: a shard's state is in the state store, of whose chunks changed ones are written."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from streamdsl.errors import QueryError
from streamdsl.spark.streaming.shard import Shard, ShardStage
from streamdsl.spark.streaming.wire import message_of
from streamdsl.spark.worker import load_stage

CHUNK: Final = 2**18
"""The size of a chunk of state, in bytes."""
_DIGEST: Final = 16
_MAX_CACHED: Final = 64
_cache: dict[str, Shard] = {}
"""Shards of this process by the token of their state. The state store is authoritative; a hit saves reading and decoding it."""


def shard_processor(stage: bytes) -> StatefulProcessor:
    """Return the processor that runs the shards' plan; `stage` is a pickled `ShardStage`.

    The class is local, so it is pickled by value: the process that Spark starts before a stream's first micro-batch, to learn
    the state's schema, need not import streamdsl.
    """

    class ShardProcessor(StatefulProcessor):  # type: ignore[misc]
        def init(self, handle: StatefulProcessorHandle) -> None:
            # `head` holds a token of the state that the chunks hold, the digest of each chunk, and the number of shards.
            self._head = handle.getValueState("head", "token string, digests binary, shards int")
            self._chunks = handle.getMapState("chunks", "place int", "chunk binary")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803  (Spark's)
            from streamdsl.spark.streaming.processor import StoredShard

            yield from StoredShard(stage, self._head, self._chunks).run(int(key[0]), rows)

        def close(self) -> None:
            pass

    return ShardProcessor()


class StoredShard:
    """A shard whose state is in Spark's state store. A step reads nothing on a cache hit, and writes the chunks that changed."""

    def __init__(self, stage: bytes, head: Any, chunks: Any) -> None:
        self._stage: ShardStage = load_stage(stage)
        self._head = head
        self._chunks = chunks

    def run(self, number: int, rows: Iterator[Any]) -> Iterator[Row]:
        """Run a step over the messages of a micro-batch, and yield what the shard sends."""
        stage = self._stage
        token, digests, shards = self._head.get() if self._head.exists() else (None, b"", stage.shards)
        if shards != stage.shards:
            raise QueryError(
                f"the stream's state is that of {shards} shards, and it would go on with {stage.shards}",
                hint=f"set spark.sql.shuffle.partitions to {shards}, or begin a new checkpoint",
            )
        known = None if token is None else _cache.pop(token, None)
        shard = known or stage.open(None if token is None else self._read_state(len(digests) // _DIGEST), number)
        for blob in shard.take([message_of(row) for row in rows]):
            yield Row(shard=number, blob=blob)
        self._write_state(shard, bytes(digests), shards)

    def _read_state(self, n_chunks: int) -> bytes:
        return b"".join(bytes(self._chunks.getValue((place,))[0]) for place in range(n_chunks))

    def _write_state(self, shard: Shard, before: bytes, shards: int) -> None:
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
        while len(_cache) >= _MAX_CACHED:
            del _cache[next(iter(_cache))]
        _cache[token] = shard
