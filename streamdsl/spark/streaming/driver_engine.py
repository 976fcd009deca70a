"""Streams whose engine runs in the driver, for sessions in which Spark's state API for Python does not work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from streamdsl.emit import Emit, EmitMode
from streamdsl.engine.state.whole_files import write_whole
from streamdsl.errors import CheckpointError
from streamdsl.plan.node import Source
from streamdsl.sharding.plan_stages import PlanStage
from streamdsl.spark.job_descriptions import described
from streamdsl.spark.micro_batches import query_id
from streamdsl.spark.stream_metrics import record_figures
from streamdsl.spark.streaming.shard import Shard
from streamdsl.spark.streaming.stage_layout import ShardedStage, lay_out
from streamdsl.spark.streaming.stream_inputs import StreamInputs
from streamdsl.spark.streaming.streaming_frame import routed, union, unpacked_events
from streamdsl.spark.streaming.wire import CTI, OUTPUT, REJECTED, Message, from_ipc, messages_of
from streamdsl.temporal import Unit

Sink = Callable[[DataFrame, int], Any]
"""What `foreachBatch` takes: a micro-batch and its number."""
_OUTPUT: Final = pa.schema([("shard", pa.int32()), ("blob", pa.binary())])
_LENGTH_BYTES: Final = 8
"""How many bytes hold the length of a shard's state."""


@dataclass(frozen=True, slots=True, eq=False)
class DriverPlan:
    """A plan whose stages have one shard each, and the streaming frame of the messages for them, with the stage's index.

    `initial` is such a frame of the rows of bounded inputs, if there are any.
    """

    messages: DataFrame
    initial: DataFrame | None
    stages: Sequence[ShardedStage]
    unit: Unit | None


def plan_on_driver(inputs: StreamInputs, emit: EmitMode | Emit) -> DriverPlan:
    """Return a plan over streaming frames; Spark's workers read the rows, push down what they can, and pack messages."""
    stages = lay_out(inputs.plan, inputs.flows, (0,), emit, inputs.bounded)
    messages, initial = (
        [
            routed(inputs.flows[exchange.origin.source].make(), exchange, number).withColumn("part", lit(number))
            for number, exchanges in enumerate(by_stage)
            for exchange in exchanges
            if isinstance(exchange.origin, Source)
        ]
        for by_stage in ([each.exchanges for each in stages], [each.initial for each in stages])
    )
    return DriverPlan(union(messages), union(initial) if initial else None, stages, inputs.unit)


class DriverEngine:
    """Runs all stages in the driver: the output of a micro-batch goes to the sink, then the state to a file named by its number.

    A micro-batch that Spark repeats starts from the state of its predecessor, so it gives the same output again: with a sink
    that ignores repeated micro-batches the output is exactly-once. `folder` keeps the states of the last two.
    """

    def __init__(self, running: DriverPlan, sink: Sink, folder: Path) -> None:
        self._running = running
        self._sink = sink
        self._folder = folder
        self._shards: tuple[int, list[Shard]] | None = None
        self._cti: int | None = None

    def __call__(self, messages: DataFrame, batch: int) -> None:
        """Take a micro-batch, as `foreachBatch` hands it over."""
        shards = self._restored(batch)
        with described(messages.sparkSession, "rows to the engine in the driver"):
            rows = messages.toArrow()
            if batch == 0 and self._running.initial is not None:
                rows = pa.concat_tables([rows, self._running.initial.toArrow()])
        blobs = self._run(shards, rows)
        last = self._running.stages[-1]
        # Not with the micro-batch's own session: creating a frame would make that the active session of this process.
        sent = self._running.messages.sparkSession.createDataFrame(_output_table(blobs), OUTPUT)
        self._sink(unpacked_events(sent, last.shard_stage.sent_as, self._running.unit), batch)
        size = self._save(shards, batch)
        record_figures(query_id(messages), batch, {**self._figures(shards, blobs), "state_bytes": size})

    def _run(self, shards: Sequence[Shard], rows: Any) -> list[bytes]:
        """Run each stage over its messages from sources and from earlier stages; return what the last one sends."""
        sent: dict[int, list[bytes]] = {}
        for number, (sharded, shard) in enumerate(zip(self._running.stages, shards, strict=True)):
            own = rows.filter(pc.equal(rows.column("part"), number)).drop_columns(["part"])
            sent[id(sharded.stage)] = list(shard.take([*messages_of(own), *_from_earlier_stages(sharded, sent)]))
        return sent[id(self._running.stages[-1].stage)]

    def _restored(self, batch: int) -> list[Shard]:
        """Return the shards in the state after the previous micro-batch, from memory or from its file."""
        known, self._shards = self._shards, None
        if known is not None and known[0] == batch - 1:
            return known[1]
        before = self._folder / str(batch - 1)
        if batch and not before.exists():
            raise CheckpointError(
                f"there is no state of micro-batch {batch - 1} in {self._folder}, and {batch} is to be run",
                hint="the state was lost: begin a new checkpoint, and a new output",
            )
        states = _split_states(before.read_bytes()) if batch else [None] * len(self._running.stages)
        if len(states) != len(self._running.stages):
            raise CheckpointError(f"the state in {self._folder} is that of a query with {len(states)} stages")
        return [sharded.shard_stage.open(state) for sharded, state in zip(self._running.stages, states, strict=True)]

    def _save(self, shards: list[Shard], batch: int) -> int:
        states = [shard.snapshot() for shard in shards]
        self._folder.mkdir(parents=True, exist_ok=True)
        write_whole(self._folder / str(batch), b"".join(len(state).to_bytes(_LENGTH_BYTES, "little") + state for state in states))
        (self._folder / str(batch - 2)).unlink(missing_ok=True)
        self._shards = batch, shards
        return sum(map(len, states))

    def _figures(self, shards: Sequence[Shard], blobs: Sequence[bytes]) -> dict[str, Any]:
        """Return the numbers of rows that were sent and rejected, the CTI of the output, and those of the sources."""
        kinds: list[int] = []
        for blob in blobs:
            rows = from_ipc([blob])
            kinds += rows.column("kind").to_pylist()
            reached = pc.max(rows.filter(pc.equal(rows.column("kind"), CTI)).column("le")).as_py()
            self._cti = self._cti if reached is None else reached
        rejected = kinds.count(REJECTED)
        inputs = {
            exchange.origin.source: shard.cti(route.name)
            for sharded, shard in zip(self._running.stages, shards, strict=True)
            for exchange in sharded.exchanges
            if isinstance(exchange.origin, Source)
            for route in exchange.stage.routes
        }
        rows_out = len(kinds) - kinds.count(CTI) - rejected
        return {"rows_out": rows_out, "rows_rejected": rejected, "cti": self._cti, "input_ctis": inputs}


def _from_earlier_stages(sharded: ShardedStage, sent: Mapping[int, Sequence[bytes]]) -> Iterator[Message]:
    """Yield the messages of earlier stages to one that reads them."""
    for exchange in sharded.exchanges:
        if isinstance(exchange.origin, PlanStage):
            for batch in exchange.stage.run(_output_table(sent[id(exchange.origin)]).to_batches()):
                yield from messages_of(batch)


def _output_table(blobs: Sequence[bytes]) -> Any:
    """Return a shard's output in the form in which shards on Spark send it."""
    return pa.table([pa.array([0] * len(blobs), pa.int32()), pa.array(blobs, pa.binary())], schema=_OUTPUT)


def _split_states(states: bytes) -> list[bytes | None]:
    """Return the states of the stages, which a file holds one after the other, each after its length."""
    found: list[bytes | None] = []
    while states:
        size = int.from_bytes(states[:_LENGTH_BYTES], "little")
        found.append(states[_LENGTH_BYTES : _LENGTH_BYTES + size])
        states = states[_LENGTH_BYTES + size :]
    return found
