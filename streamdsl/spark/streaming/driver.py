"""A stream whose engine runs in the driver: for sessions where Spark's state API for Python does not work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from streamdsl.emit import Emit, EmitMode
from streamdsl.engine.state.files import write_whole
from streamdsl.errors import CheckpointError
from streamdsl.io.binding import Bound
from streamdsl.plan.node import Node, Source
from streamdsl.spark.micro_batches import stream_of
from streamdsl.spark.progress import note
from streamdsl.spark.streaming.cut import Stage
from streamdsl.spark.streaming.layout import Part
from streamdsl.spark.streaming.shard import Shard
from streamdsl.spark.streaming.stream import parted, shipped, unpacked_events, worker_function
from streamdsl.spark.streaming.wire import CTI, PARCEL, REJECTED, SENT, Parcel, parcels_of, unpacked
from streamdsl.temporal import Unit

Sink = Callable[[DataFrame, int], Any]
"""What `foreachBatch` takes: a micro-batch and its number."""
_SENT: Final = pa.schema([("shard", pa.int32()), ("blob", pa.binary())])
_HEAD: Final = 8
"""Bytes of the length of a shard's state."""


@dataclass(frozen=True, slots=True, eq=False)
class OnDriver:
    """A plan whose stages have one shard each: what comes for them in micro-batches, tagged with the stage's number."""

    parcels: DataFrame
    parts: Sequence[Part]
    unit: Unit | None


def on_driver(
    plan: Node, frames: Mapping[str, DataFrame], emit: EmitMode | Emit, own: Mapping[str, Bound] | None = None
) -> OnDriver:
    """Return a plan over streaming frames, whose rows are read and packed by Spark's workers."""
    parts, flows, unit = parted(plan, frames, (0,), emit, own)
    parcels = [
        flows[leg.origin.source].make().mapInArrow(worker_function(shipped(leg)), PARCEL).withColumn("part", lit(number))
        for number, part in enumerate(parts)
        for leg in part.legs
        if isinstance(leg.origin, Source)
    ]
    return OnDriver(reduce(DataFrame.unionByName, parcels), parts, unit)


class DriverEngine:
    """Runs the stages in this process: each micro-batch's output goes to the sink, then their state to a file of its number.

    A micro-batch that comes again starts from the state of the one before it, so it gives the same output again. The states of
    the last two are kept in `folder`.
    """

    def __init__(self, running: OnDriver, sink: Sink, folder: Path) -> None:
        self._running = running
        self._sink = sink
        self._folder = folder
        self._shards: tuple[int, list[Shard]] | None = None
        self._cti: int | None = None

    def __call__(self, parcels: DataFrame, batch: int) -> None:
        """Take a micro-batch, as `foreachBatch` hands it over."""
        shards = self._opened(batch)
        blobs = self._run(shards, parcels.toArrow())
        last = self._running.parts[-1]
        # Not by the session of the micro-batch: to make a frame would make that the active one of this process.
        sent = self._running.parcels.sparkSession.createDataFrame(_sent(blobs), SENT)
        self._sink(unpacked_events(sent, last.shards.sent_as, self._running.unit), batch)
        size = self._save(shards, batch)
        note(stream_of(parcels), batch, {**self._figures(blobs), "state_bytes": size})

    def _run(self, shards: Sequence[Shard], rows: Any) -> list[bytes]:
        """Run each stage over what has come for it from sources, and from the stages before; return what the last one sends."""
        sent: dict[int, list[bytes]] = {}
        for number, (part, shard) in enumerate(zip(self._running.parts, shards, strict=True)):
            own = rows.filter(pc.equal(rows.column("part"), number)).drop_columns(["part"])
            sent[id(part.stage)] = list(shard.take([*parcels_of(own), *_from_stages(part, sent)]))
        return sent[id(self._running.parts[-1].stage)]

    def _opened(self, batch: int) -> list[Shard]:
        """Return the stages as they were after the micro-batch before."""
        known, self._shards = self._shards, None
        if known is not None and known[0] == batch - 1:
            return known[1]
        before = self._folder / str(batch - 1)
        if batch and not before.exists():
            raise CheckpointError(
                f"there is no state of micro-batch {batch - 1} in {self._folder}, and {batch} is to be run",
                hint="the state was lost: begin a new checkpoint, and a new output",
            )
        states = _parted(before.read_bytes()) if batch else [None] * len(self._running.parts)
        if len(states) != len(self._running.parts):
            raise CheckpointError(f"the state in {self._folder} is that of a query with {len(states)} stages")
        return [part.shards.open(state) for part, state in zip(self._running.parts, states, strict=True)]

    def _save(self, shards: list[Shard], batch: int) -> int:
        states = [shard.snapshot() for shard in shards]
        self._folder.mkdir(parents=True, exist_ok=True)
        write_whole(self._folder / str(batch), b"".join(len(state).to_bytes(_HEAD, "little") + state for state in states))
        (self._folder / str(batch - 2)).unlink(missing_ok=True)
        self._shards = batch, shards
        return sum(map(len, states))

    def _figures(self, blobs: Sequence[bytes]) -> dict[str, Any]:
        """Return how many rows were sent, and how far the output has come."""
        kinds: list[int] = []
        for blob in blobs:
            rows = unpacked([blob])
            kinds += rows.column("kind").to_pylist()
            reached = pc.max(rows.filter(pc.equal(rows.column("kind"), CTI)).column("le")).as_py()
            self._cti = self._cti if reached is None else reached
        rejected = kinds.count(REJECTED)
        return {"rows_out": len(kinds) - kinds.count(CTI) - rejected, "rows_rejected": rejected, "cti": self._cti}


def _from_stages(part: Part, sent: Mapping[int, Sequence[bytes]]) -> Iterator[Parcel]:
    """Yield what the stages before have sent to one that reads them."""
    for leg in part.legs:
        if isinstance(leg.origin, Stage):
            for batch in leg.stage.run(_sent(sent[id(leg.origin)]).to_batches()):
                yield from parcels_of(batch)


def _sent(blobs: Sequence[bytes]) -> Any:
    """Return what a shard has sent as shards on Spark send it."""
    return pa.table([pa.array([0] * len(blobs), pa.int32()), pa.array(blobs, pa.binary())], schema=_SENT)


def _parted(states: bytes) -> list[bytes | None]:
    """Return the states of stages that were put together."""
    found: list[bytes | None] = []
    while states:
        size = int.from_bytes(states[:_HEAD], "little")
        found.append(states[_HEAD : _HEAD + size])
        states = states[_HEAD + size :]
    return found
