"""From a plan to a streaming DataFrame: rows are routed, shards run the plan's stages, and what the last sends is unpacked."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame

from streamdsl.denote.source import sources
from streamdsl.emit import Emit, EmitMode
from streamdsl.errors import QueryError, UnsupportedOnSpark
from streamdsl.io.binding import Bound
from streamdsl.io.layout import PHYSICAL
from streamdsl.plan.node import Node, Source
from streamdsl.plan.parameters import mapped
from streamdsl.plan.units import in_unit
from streamdsl.spark.flow import Flow
from streamdsl.spark.frames import events_of_frame
from streamdsl.spark.progress import observed
from streamdsl.spark.public import payload_texts
from streamdsl.spark.shipping import ship
from streamdsl.spark.streaming.brought import brought
from streamdsl.spark.streaming.cut import Stage
from streamdsl.spark.streaming.layout import Leg, Part, laid_out
from streamdsl.spark.streaming.shards import shard_ids
from streamdsl.spark.streaming.wire import CTI, PARCEL, REJECTED, RETRACT, SENT
from streamdsl.spark.times import from_ticks
from streamdsl.spark.types import Type
from streamdsl.temporal import Progress, Unit, common_unit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_WATERMARK: Final = "spark.watermarkDelayMs"
_KIND: Final = (
    f"CASE kind WHEN {CTI} THEN 'cti' WHEN {RETRACT} THEN 'retract' WHEN {REJECTED} THEN 'rejected' ELSE 'insert' END as kind"
)


def stream(
    plan: Node,
    spark: SparkSession,
    frames: Mapping[str, DataFrame],
    emit: EmitMode | Emit,
    own: Mapping[str, Bound] | None = None,
) -> DataFrame:
    """Return the physical events of a plan over streaming frames, with figures; `own` has the sources that the query brings."""
    _check_settings(spark)
    shards = shard_ids(spark, int(spark.conf.get("spark.sql.shuffle.partitions") or 1))
    parts, flows, unit = parted(plan, frames, shards, emit, own)
    sent: dict[int, DataFrame] = {}
    for part in parts:
        sent[id(part.stage)] = _in_shards(part, flows, sent)
    last = parts[-1]
    return observed(unpacked_events(sent[id(last.stage)], last.shards.sent_as, unit), unit)


def parted(
    plan: Node,
    frames: Mapping[str, DataFrame],
    shards: Sequence[int],
    emit: EmitMode | Emit,
    own: Mapping[str, Bound] | None = None,
) -> tuple[list[Part], dict[str, Flow], Unit | None]:
    """Return the stages of a plan over streaming frames, its sources' rows, and the unit of time."""
    made = brought(_with_watermarks(plan, frames), own or {})
    named = sources(made.plan)
    flows = {name: events_of_frame(named[name], frame) for name, frame in frames.items()}
    unit = common_unit(*(flow.unit for flow in (*flows.values(), *made.flows.values())))
    return laid_out(in_unit(made.plan, unit), {**flows, **made.flows}, shards, emit, made.rows), flows, unit


def _with_watermarks(plan: Node, frames: Mapping[str, DataFrame]) -> Node:
    """Return the plan with Spark's watermark on `le` as the progress policy of each source that has none."""

    def marked(node: Node) -> Node:
        if not isinstance(node, Source) or node.progress is not None or node.source not in frames:
            return node
        fields = {field.name: field for field in frames[node.source].schema.fields}
        delay = fields["le"].metadata.get(_WATERMARK) if "le" in fields else None
        return node if delay is None else replace(node, progress=Progress.slack(timedelta(milliseconds=delay)))

    return mapped(plan, marked)


def _in_shards(part: Part, flows: Mapping[str, Flow], sent: Mapping[int, DataFrame]) -> DataFrame:
    """Return what the shards of a stage send."""
    from streamdsl.spark.streaming.processor import shard_processor

    frames = [sent[id(leg.origin)] if isinstance(leg.origin, Stage) else flows[leg.origin.source].make() for leg in part.legs]
    routed = [frame.mapInArrow(worker_function(shipped(leg)), PARCEL) for frame, leg in zip(frames, part.legs, strict=True)]
    processor = shard_processor(ship(part.shards, "the query"))
    return reduce(DataFrame.unionByName, routed).groupBy("shard").transformWithState(processor, SENT, "append", "none")


def shipped(leg: Leg) -> bytes:
    """Return how rows come to a stage, as bytes for workers."""
    return ship(leg.stage, f"source:{leg.origin.source}" if isinstance(leg.origin, Source) else "the query")


def _check_settings(spark: SparkSession) -> None:
    if not has_protobuf():
        raise UnsupportedOnSpark(
            "Spark's state API for Python needs protobuf, which is not installed", hint="pip install 'streamdsl[spark]'"
        )
    if spark.conf.get(PROVIDER, "") != ROCKSDB:
        raise QueryError(
            "streams with state need Spark's RocksDB state store, and the session has another one",
            hint=f'spark.conf.set("{PROVIDER}", "{ROCKSDB}")',
        )


def has_protobuf() -> bool:
    """Say whether Spark's state API for Python works here."""
    try:
        return importlib.util.find_spec("google.protobuf") is not None
    except ModuleNotFoundError:
        return False


def worker_function(blob: bytes) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return what runs a shipped stage on a worker."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        from streamdsl.spark.worker import run_rows

        return run_rows(blob, batches)

    return run


def unpacked_events(sent: DataFrame, kind: Type, unit: Unit | None) -> DataFrame:
    """Return the events that shards have sent, flat; ids are told apart by shard."""
    columns = f"shard int, kind tinyint, id string, le bigint, re bigint, re_new bigint, p {kind.ddl}"
    events = sent.mapInArrow(_open, columns)
    times = [f"{from_ticks(name, unit)} as {name}" for name in ("le", "re", "re_new")]
    return events.selectExpr(_KIND, "id", *times, *payload_texts(kind, (*PHYSICAL, "shard")), "shard")


def _open(batches: Iterable[Any]) -> Iterator[Any]:
    from streamdsl.spark.streaming.wire import opened

    return opened(batches)
