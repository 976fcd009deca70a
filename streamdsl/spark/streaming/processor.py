"""Shards as Spark's stateful processors: a shard's state is in the state store, and a micro-batch adds what it has changed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructType

from streamdsl.errors import CheckpointError, QueryError
from streamdsl.spark.streaming.shard import Shard, ShardStage
from streamdsl.spark.streaming.state_log import DELTAS, StateLog
from streamdsl.spark.streaming.wire import MESSAGE, Message, message_of
from streamdsl.spark.worker import load_stage

_FORM: Final = "2-"
"""With this a token begins. Those of the first form, whose chunks were cut at fixed places, began with nothing of the kind."""
_MAX_CACHED: Final = 64


class _CachedShard(NamedTuple):
    """A shard, and its state as it was last written, with which the next one is compared."""

    shard: Shard
    state: bytes


_cache: dict[str, _CachedShard] = {}
"""Shards of this process by the token of their state. The state store is authoritative; a hit saves reading and decoding it."""


def shard_processor(stage: bytes, has_initial: bool = False) -> StatefulProcessor:
    """Return the processor that runs the shards' plan; `stage` is a pickled `ShardStage`.

    With `has_initial` its initial state is the messages of bounded inputs: a shard takes them with its first other messages.
    The class is local, so it is pickled by value: the process that Spark starts before a stream's first micro-batch, to learn
    the state's schema, need not import streamdsl.
    """

    # As text, each task would have Spark's JVM parse them anew.
    head = StructType().add("token", "string").add("log", "binary").add("shards", "integer")
    place, chunk = StructType().add("place", "integer"), StructType().add("chunk", "binary")

    class ShardProcessor(StatefulProcessor):  # type: ignore[misc]
        def init(self, handle: StatefulProcessorHandle) -> None:
            # `head` holds a token of the state that the chunks hold, what `StateLog` says of them, and the number of shards.
            self._head = handle.getValueState("head", head)
            self._chunks = handle.getMapState("chunks", place, chunk)
            self._initial: Any = handle.getListState("initial", MESSAGE) if has_initial else None

        def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803  (Spark's)
            self._initial.appendValue(tuple(initialState))

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803  (Spark's)
            from streamdsl.spark.streaming.processor import StoredShard

            yield from StoredShard(stage, self._head, self._chunks, self._initial).run(int(key[0]), rows)

        def close(self) -> None:
            pass

    return ShardProcessor()


class StoredShard:
    """A shard whose state is in Spark's state store. A step reads nothing on a cache hit, and writes what it has changed."""

    def __init__(self, stage: bytes, head: Any, chunks: Any, initial: Any) -> None:
        self._stage: ShardStage = load_stage(stage)
        self._head = head
        self._chunks = chunks
        self._initial = initial

    def run(self, number: int, rows: Iterator[Any]) -> Iterator[Row]:
        """Run a step over the messages of a micro-batch, and yield what the shard sends."""
        token, log = self._stored()
        cached = None if token is None else _cache.pop(token, None)
        shard, state = cached or self._opened(log)
        first = self._initial_messages() if token is None else []
        for blob in shard.take([*first, *map(message_of, rows)]):
            yield Row(shard=number, blob=blob)
        if token is None or shard.is_changed:
            token, state = self._write(shard, log, state, number)
        while len(_cache) >= _MAX_CACHED:
            del _cache[next(iter(_cache))]
        _cache[token] = _CachedShard(shard, state)

    def _stored(self) -> tuple[str | None, StateLog]:
        """Return the token and the log of the state, if there is one; raises where it cannot be gone on with."""
        if not self._head.exists():
            return None, StateLog()
        token, log, shards = self._head.get()
        if not token.startswith(_FORM):
            raise CheckpointError(
                "the stream's state is in the form of an earlier version of streamdsl",
                hint="let that version end the stream, or begin a new checkpoint",
            )
        if shards != self._stage.shards:
            raise QueryError(
                f"the stream's state is that of {shards} shards, and it would go on with {self._stage.shards}",
                hint=f"set spark.sql.shuffle.partitions to {shards}, or begin a new checkpoint",
            )
        return token, StateLog.from_bytes(bytes(log))

    def _initial_messages(self) -> list[Message]:
        """Return the messages of bounded inputs, which the store need not keep any longer."""
        if self._initial is None:
            return []
        messages = list(map(message_of, self._initial.get()))
        self._initial.clear()
        return messages

    def _opened(self, log: StateLog) -> _CachedShard:
        state = log.read(lambda place: bytes(self._chunks.getValue((place,))[0]))
        return _CachedShard(self._stage.open(state or None), state)

    def _write(self, shard: Shard, log: StateLog, state: bytes, number: int) -> tuple[str, bytes]:
        """Write what the shard has changed; return the token of its state, and the state."""
        token, following = f"{_FORM}{uuid.uuid4().hex}", shard.snapshot()
        # Shards that begin together do not write their whole states in the same micro-batch.
        after, entries = log.followed_by(state, following, DELTAS // 2 + number % (DELTAS // 2))
        for place, chunk in entries.items():
            self._chunks.updateValue((place,), (chunk,))
        for place in range(len(after), len(log)):
            self._chunks.removeKey((place,))
        self._head.update((token, after.to_bytes(), self._stage.shards))
        return token, following
