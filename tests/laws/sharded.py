"""Streams on Spark without Spark: the stages and shards of a plan, every shard stopped and restored after each batch."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.denote.source import history
from streamdsl.expr.schema import Schema
from streamdsl.plan.node import Node, Source, sources
from streamdsl.sharding.plan_stages import PlanStage
from streamdsl.spark.codec import decode, encode
from streamdsl.spark.column_types import INT, STR, JsonType, RecordType
from streamdsl.spark.flow import Flow
from streamdsl.spark.source_frames import type_of_rows
from streamdsl.spark.streaming.bounded_inputs import precompute_bounded
from streamdsl.spark.streaming.stage_layout import Exchange, ShardedStage, lay_out
from streamdsl.spark.streaming.wire import CTI, INSERT, REJECTED, Message, messages_of, unpack_output
from streamdsl.temporal import CHT, Cti, Insert

RECORD = Schema.record(("k", "v"))
TYPE = RecordType(RECORD, (STR, INT))


def frame_of(events: Sequence[Any]) -> Any:
    """Return events as a micro-batch has them."""
    rows: list[tuple[Any, ...]] = []
    for event in events:
        if isinstance(event, Cti):
            rows.append(("cti", None, event.time, None, None, {"k": None, "v": None}))
        elif isinstance(event, Insert):
            rows.append(("insert", str(event.id), event.le, event.re, sd.INFINITY, event.payload))
        else:
            rows.append(("retract", str(event.id), event.le, event.re, event.re_new, event.payload))
    kinds, ids, le, re, re_new, payloads = zip(*rows, strict=True)
    times = [pa.array([sd.INFINITY if time is None else time for time in column], pa.int64()) for column in (le, re, re_new)]
    arrays = [pa.array(kinds), pa.array(ids, pa.string()), *times, encode([dict(p) for p in payloads], TYPE)]
    return pa.RecordBatch.from_arrays(arrays, ["kind", "id", "le", "re", "re_new", "p"])


def rows_of(events: Sequence[Any], ends: bool) -> Any:
    """Return insertions as a micro-batch of a frame has them that has times alone, with ends or without."""
    times = {name: pa.array([getattr(each, name) for each in events], pa.int64()) for name in (("le", "re") if ends else ("le",))}
    return pa.RecordBatch.from_pydict({**times, "p": encode([dict(each.payload) for each in events], TYPE)})


FRAMES: dict[str, Callable[[Sequence[Any]], Any]] = {
    "events": frame_of,
    "lifetimes": partial(rows_of, ends=True),
    "points": partial(rows_of, ends=False),
}
"""What a frame may have: physical events, rows with ends, or rows without."""


class Streamed:
    """A query that runs over micro-batches of rows `{"k": text, "v": int}`; how many tasks each has is drawn.

    The sources `static` have all their rows before, as those that are bound in the query; the others are frames of a kind.
    """

    def __init__(
        self,
        query: sd.Stream[Any],
        shards: int,
        emit: Any = "speculative",
        seed: int = 0,
        static: Mapping[str, CHT[Any]] | None = None,
        frames: str = "events",
    ) -> None:
        self._draw = random.Random(seed)
        self._frame = FRAMES[frames]
        on_spark = query.on_spark(None)
        named = sources(on_spark._plan)
        self.static = {name: history(named[name], bound.events()) for name, bound in on_spark._own.items()} | dict(static or {})
        plan, bounded = precompute_bounded(on_spark._plan, self.static, self._computed)
        flows = {each.source: Flow.of(TYPE, each.unit or "tick", lambda: None) for each in _sources(plan)}
        self.stages = lay_out(plan, {**flows, **bounded}, range(shards), emit, bounded)
        self._initial: dict[tuple[int, int], list[Message]] = defaultdict(list)
        for number, sharded in enumerate(self.stages):
            for exchange in sharded.initial:
                for messages in exchange.stage.run([bounded[_source_of(exchange)].make()]):
                    for message in messages_of(messages):
                        self._initial[number, message.shard].append(message)
        self.out = self.stages[-1].shard_stage.sent_as
        self._states: dict[tuple[int, int], bytes] = {}
        self.rejected: list[tuple[int, int, int]] = []
        self._ctis = dict.fromkeys(range(self.stages[-1].shard_stage.shards), sd.MIN_TIME)
        self.sources = list(flows.keys() - bounded.keys())

    @property
    def cti(self) -> int:
        """The least CTI that shards of the last stage have sent."""
        return min(self._ctis.values())

    def batch(self, events: Mapping[str, Sequence[Any]]) -> list[Any]:
        """Take a micro-batch of the sources, and return what the last stage sends as events."""
        sent: dict[int, list[tuple[int, bytes]]] = {}
        for number, sharded in enumerate(self.stages):
            waiting: dict[int, list[Message]] = defaultdict(list)
            for exchange in sharded.exchanges:
                if isinstance(exchange.origin, PlanStage):
                    frames = [_sent_frame(each) for each in self._tasks(sent[id(exchange.origin)])]
                else:
                    frames = [self._framed(each) for each in self._tasks(events[exchange.origin.source])]
                for frame in frames or [None]:
                    for messages in exchange.stage.run([] if frame is None else [frame]):
                        for message in messages_of(messages):
                            waiting[message.shard].append(message)
            sent[id(sharded.stage)] = list(self._in_shards(number, sharded, waiting))
        return [
            event
            for shard, blob in sent[id(self.stages[-1].stage)]
            for event in self._events(shard, _sent_frame([(shard, blob)]))
        ]

    def _framed(self, events: Sequence[Any]) -> Any:
        """Return the frame of what a task has; a CTI alone is an event, so that any stream can be ended."""
        return frame_of(events) if all(isinstance(each, Cti) for each in events) else self._frame(events)

    def _computed(self, part: Node) -> Flow:
        """Return the rows of a part of the plan over static sources, in a random order."""
        rows = denote(part, self.static)
        _, kind = type_of_rows(part.schema, rows)
        return Flow.of(kind, rows.unit or part.unit, lambda: _insertions(self._draw.sample(list(rows), len(rows)), kind))

    def _tasks(self, rows: Sequence[Any]) -> list[list[Any]]:
        tasks: list[list[Any]] = [[] for _ in range(self._draw.randint(1, 3))]
        for row in rows:
            self._draw.choice(tasks).append(row)
        return [task for task in tasks if task]

    def _in_shards(self, number: int, sharded: ShardedStage, waiting: Mapping[int, list[Message]]) -> Iterator[tuple[int, bytes]]:
        for shard, messages in waiting.items():
            given = [*self._initial.pop((number, shard), ()), *messages]
            self._draw.shuffle(given)
            running = sharded.shard_stage.open(self._states.get((number, shard)))
            yield from ((shard, blob) for blob in running.take(given))
            if running.is_changed:
                self._states[number, shard] = running.snapshot()

    def _events(self, shard: int, sent: Any) -> Iterator[Any]:
        table = pa.Table.from_batches(unpack_output([sent]))
        payloads = decode(table.column("p").combine_chunks(), self.out)
        payloads = [_parsed(payload, self.out) for payload in payloads]
        for row, payload in zip(table.select(["kind", "id", "le", "re", "re_new"]).to_pylist(), payloads, strict=True):
            if row["kind"] == INSERT:
                yield Insert(row["id"], row["le"], row["re"], payload)
            elif row["kind"] == REJECTED:
                self.rejected.append((row["le"], row["re"], row["re_new"]))
            elif row["kind"] == CTI:
                self._ctis[shard] = row["le"]
            else:
                yield sd.Retract(row["id"], row["le"], row["re"], row["re_new"], payload)


def _parsed(value: Any, kind: Any) -> Any:
    """Return a value with what nothing declares read from its text."""
    if value is None:
        return None
    if isinstance(kind, JsonType):
        return json.loads(value)
    if isinstance(kind, RecordType):
        values = [_parsed(each, field) for each, field in zip(kind.schema.values(value), kind.fields, strict=True)]
        return kind.schema.build(values)
    return value


def _sent_frame(sent: Sequence[tuple[int, bytes]]) -> Any:
    shards, blobs = zip(*sent, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(shards, pa.int32()), pa.array(blobs, pa.binary())], ["shard", "blob"])


def _sources(plan: Node) -> list[Any]:
    return [node for node in plan.walk() if hasattr(node, "source")]


def _source_of(exchange: Exchange) -> str:
    assert isinstance(exchange.origin, Source)
    return exchange.origin.source


def _insertions(rows: Sequence[Any], kind: Any) -> Any:
    """Return rows of a history as a frame of insertions without ids."""
    le, re = (pa.array([getattr(row, name) for row in rows], pa.int64()) for name in ("le", "re"))
    return pa.RecordBatch.from_pydict({"le": le, "re": re, "p": encode([row.payload for row in rows], kind)})
