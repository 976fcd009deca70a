"""A stream whose engine runs in the driver: for sessions where Spark's state API for Python does not work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from streamdsl.emit import Emit, EmitMode
from streamdsl.engine.session import Session
from streamdsl.engine.state.files import write_whole
from streamdsl.errors import CheckpointError
from streamdsl.plan.node import Node, Source
from streamdsl.plan.units import in_unit
from streamdsl.spark.frames import events_of_frame
from streamdsl.spark.lower import lower, lowering
from streamdsl.spark.micro_batches import stream_of
from streamdsl.spark.progress import note
from streamdsl.spark.stages import payload_of
from streamdsl.spark.streaming.cut import Route
from streamdsl.spark.streaming.shard import Parcel, ShardStage
from streamdsl.spark.streaming.stream import _routed, _unpacked, _without_progress
from streamdsl.spark.streaming.wire import CTI, unpacked
from streamdsl.spark.values import edge_of
from streamdsl.temporal import common_unit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Sink = Callable[[DataFrame, int], Any]
"""What `foreachBatch` takes: a micro-batch and its number."""
_SENT: Final = "shard int, blob binary"


@dataclass(frozen=True, slots=True)
class OnDriver:
    """A plan as one shard runs it: what comes for it, micro-batch by micro-batch, the shard, and how what it sends is read."""

    parcels: DataFrame
    shard: ShardStage
    opened: Callable[[DataFrame], DataFrame]


def on_driver(plan: Node, frames: Mapping[str, DataFrame], emit: EmitMode | Emit) -> OnDriver:
    """Return a plan over streaming frames as one shard runs it; rows are read and packed by Spark's workers."""
    flows = {node.source: events_of_frame(node, frames[node.source]) for node in plan.walk() if isinstance(node, Source)}
    unit = common_unit(*(flow.unit for flow in flows.values()))
    plan = in_unit(plan, unit)
    routes = {node.source: Route(node, node, (), node.source) for node in plan.walk() if isinstance(node, Source)}
    out = lower(lowering(plan, flows)).type
    types = {name: lower(lowering(route.before, flows)).type for name, route in routes.items()}
    parcels = [_routed(route, flows[name], types[name], [0]) for name, route in routes.items()]
    payloads = {name: payload_of(types[name], route.before.schema) for name, route in routes.items()}
    shard = ShardStage(_without_progress(plan), payloads, out, emit)
    return OnDriver(reduce(DataFrame.unionByName, parcels), shard, lambda sent: _unpacked(sent, edge_of(out), unit))


class DriverEngine:
    """Runs a shard in this process: each micro-batch's output goes to the sink, then its state to a file of its number.

    A micro-batch that comes again starts from the state of the one before it, so it gives the same output again. The states of
    the last two are kept in `folder`.
    """

    def __init__(self, running: OnDriver, sink: Sink, folder: Path) -> None:
        self._running = running
        self._sink = sink
        self._folder = folder
        self._session: tuple[int, Session[Any]] | None = None
        self._cti: int | None = None

    def __call__(self, parcels: DataFrame, batch: int) -> None:
        """Take a micro-batch, as `foreachBatch` hands it over."""
        session = self._opened(batch)
        rows = [Parcel(row["source"], row["cti"], row["blob"]) for row in parcels.toArrow().to_pylist()]
        blobs = list(self._running.shard.take(session, rows))
        self._sink(self._running.opened(_sent(parcels.sparkSession, blobs)), batch)
        size = self._save(session, batch)
        note(stream_of(parcels), batch, {**self._figures(blobs), "state_bytes": size})

    def _figures(self, blobs: list[bytes]) -> dict[str, Any]:
        """Return how many rows were sent, and how far the output has come."""
        kinds_and_times = [unpacked([blob]).select(["kind", "le"]) for blob in blobs]
        is_cti = [pc.equal(each.column("kind"), CTI) for each in kinds_and_times]
        ctis = [pc.max(each.filter(mask).column("le")).as_py() for each, mask in zip(kinds_and_times, is_cti, strict=True)]
        self._cti = max((each for each in (*ctis, self._cti) if each is not None), default=None)
        rows = sum(each.num_rows - pc.sum(mask).as_py() for each, mask in zip(kinds_and_times, is_cti, strict=True))
        return {"rows_out": rows, "cti": self._cti}

    def _opened(self, batch: int) -> Session[Any]:
        """Return the session as it was after the micro-batch before."""
        known, self._session = self._session, None
        if known is not None and known[0] == batch - 1:
            return known[1]
        before = self._folder / str(batch - 1)
        if batch and not before.exists():
            raise CheckpointError(
                f"there is no state of micro-batch {batch - 1} in {self._folder}, and {batch} is to be run",
                hint="the state was lost: begin a new checkpoint, and a new output",
            )
        return self._running.shard.open(before.read_bytes() if batch else None)

    def _save(self, session: Session[Any], batch: int) -> int:
        data = session.snapshot()
        self._folder.mkdir(parents=True, exist_ok=True)
        write_whole(self._folder / str(batch), data)
        (self._folder / str(batch - 2)).unlink(missing_ok=True)
        self._session = batch, session
        return len(data)


def _sent(spark: SparkSession, blobs: list[bytes]) -> DataFrame:
    """Return what a shard has sent as a frame, as shards on Spark send it."""
    if not blobs:
        return spark.createDataFrame([], _SENT)
    shards = pa.array([0] * len(blobs), pa.int32())
    return spark.createDataFrame(pa.table({"shard": shards, "blob": pa.array(blobs, pa.binary())}), _SENT)
