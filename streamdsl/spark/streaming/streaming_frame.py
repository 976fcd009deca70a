"""From a plan to a streaming DataFrame: exchanges feed the shards of each stage, and the last one's output is unpacked."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame

from streamdsl.emit import Emit, EmitMode
from streamdsl.errors import ManyShardsWarning, QueryError, UnsupportedOnSpark, level_of_caller, with_hint
from streamdsl.io.layout import PHYSICAL
from streamdsl.plan.node import Node, Source, sources
from streamdsl.plan.units import in_unit
from streamdsl.spark.column_types import ColumnType
from streamdsl.spark.flow import Flow
from streamdsl.spark.frame_roles import SourceFrame
from streamdsl.spark.lower import lower, lowering
from streamdsl.spark.public_frame import payload_columns
from streamdsl.spark.shipping import ship
from streamdsl.spark.source_frames import events_of_frame, events_of_history, source_of_frame
from streamdsl.spark.stages import run_in_worker
from streamdsl.spark.stream_metrics import with_metrics
from streamdsl.spark.streaming.bounded_inputs import StreamInputs, precompute_bounded
from streamdsl.spark.streaming.plan_stages import PlanStage
from streamdsl.spark.streaming.shard_ids import shard_ids
from streamdsl.spark.streaming.stage_layout import Exchange, ShardedStage, lay_out
from streamdsl.spark.streaming.wire import CTI, MESSAGE, OUTPUT, REJECTED, RETRACT
from streamdsl.spark.time_columns import from_ticks
from streamdsl.spark.unread_columns import without_unread
from streamdsl.temporal import Progress, Unit, common_unit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_SHARDS_PER_CORE: Final = 8
"""More shards than so many times the cores are warned of: Spark's own default is 200, for whatever cluster."""
_WATERMARK: Final = "spark.watermarkDelayMs"
_KIND: Final = (
    f"CASE kind WHEN {CTI} THEN 'cti' WHEN {RETRACT} THEN 'retract' WHEN {REJECTED} THEN 'rejected' ELSE 'insert' END as kind"
)


def streaming_frame(spark: SparkSession, inputs: StreamInputs, emit: EmitMode | Emit) -> DataFrame:
    """Return the physical events of a plan over streaming frames, with metrics."""
    _check_settings(spark)
    shards = shard_ids(spark, int(spark.conf.get(_PARTITIONS) or 1))
    stages = lay_out(inputs.plan, inputs.flows, shards, emit, inputs.bounded)
    _warn_of_many(spark, len(shards), len(stages))
    sent: dict[int, DataFrame] = {}
    for sharded in stages:
        sent[id(sharded.stage)] = _in_shards(sharded, inputs.flows, sent)
    last = stages[-1]
    return with_metrics(unpacked_events(sent[id(last.stage)], last.shard_stage.sent_as, inputs.unit), inputs.unit)


def stream_inputs(plan: Node, frames: Mapping[str, SourceFrame], own: Callable[[Source], Flow]) -> StreamInputs:
    """Return the inputs of a plan over frames, some of them streaming; `own` returns the rows that a source has in the query.

    A static frame is all that its source will ever bring, as are the rows of a source that the query itself is bound to.
    """
    plan = _with_watermarks(without_unread(plan, frames), frames)
    streams, static = ({n: f for n, f in frames.items() if f.rows.isStreaming is streaming} for streaming in (True, False))
    if not streams:
        raise QueryError(
            "all sources of the query are bound to bounded data, so there is nothing to stream",
            hint="use batch(), or run(); a frame of spark.readStream makes a stream",
        )
    named = sources(plan)
    events = {name: events_of_frame(named[name], frame) for name, frame in streams.items()}
    rows = {
        name: source_of_frame(node, static[name]) if name in static else own(node)
        for name, node in named.items()
        if name not in streams
    }
    unit = common_unit(*(flow.unit for flow in (*events.values(), *rows.values())))
    rows = {name: replace(flow, unit=unit) for name, flow in rows.items()}

    def computed(part: Node) -> Flow:
        return events_of_history(rows[part.source] if isinstance(part, Source) else lower(lowering(part, rows)))

    over, bounded = precompute_bounded(in_unit(plan, unit), rows, computed)
    return StreamInputs(over, {**events, **bounded}, bounded.keys(), unit)


def _with_watermarks(plan: Node, frames: Mapping[str, SourceFrame]) -> Node:
    """Return the plan with Spark's watermark on the column of LEs as the progress policy of each source that has none."""

    def marked(node: Node) -> Node:
        if not isinstance(node, Source) or node.progress is not None or node.source not in frames:
            return node
        frame = frames[node.source]
        delays = [field.metadata.get(_WATERMARK) for field in frame.rows.schema.fields if field.name == frame.start]
        delay = delays[0] if delays else None
        return node if delay is None else replace(node, progress=Progress.slack(timedelta(milliseconds=delay)))

    return plan.mapped(marked)


def _in_shards(sharded: ShardedStage, flows: Mapping[str, Flow], sent: Mapping[int, DataFrame]) -> DataFrame:
    """Return the frame of what the shards of a stage send."""
    from streamdsl.spark.streaming.processor import shard_processor

    def messages(exchanges: Sequence[Exchange]) -> Any:
        origins = [each.origin for each in exchanges]
        frames = [sent[id(each)] if isinstance(each, PlanStage) else flows[each.source].make() for each in origins]
        return union(list(map(routed, frames, exchanges))).groupBy("shard")

    processor = shard_processor(ship(sharded.shard_stage, "the query"), bool(sharded.initial))
    initial = messages(sharded.initial) if sharded.initial else None
    return messages(sharded.exchanges).transformWithState(processor, OUTPUT, "append", "none", initial)


def routed(frame: DataFrame, exchange: Exchange) -> DataFrame:
    """Return the messages of an exchange whose origin has this frame; Spark's workers make them."""
    what = f"source:{exchange.origin.source}" if isinstance(exchange.origin, Source) else "the query"
    return frame.mapInArrow(run_in_worker(ship(exchange.stage, what)), MESSAGE)


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the union of frames, of which there is at least one."""
    return reduce(DataFrame.unionByName, frames)


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


def _warn_of_many(spark: SparkSession, shards: int, stages: int) -> None:
    """Warn of shards that are many for the session's cores, which a Connect session does not tell."""
    try:
        cores = spark.sparkContext.defaultParallelism
    except AttributeError:
        return
    if shards <= _SHARDS_PER_CORE * cores:
        return
    tasks = f"{shards} tasks" if stages == 1 else f"{shards} tasks in each of {stages} stages"
    warnings.warn(
        with_hint(
            f"the stream has {shards} shards for {cores} cores: each micro-batch runs {tasks}, which take some half a second "
            "of a core each, however few rows come",
            f'spark.conf.set("{_PARTITIONS}", "{3 * cores}") before the first start; its checkpoint keeps the number',
        ),
        ManyShardsWarning,
        stacklevel=level_of_caller(),
    )


def has_protobuf() -> bool:
    """Say whether Spark's state API for Python works here."""
    try:
        return importlib.util.find_spec("google.protobuf") is not None
    except ModuleNotFoundError:
        return False


def unpacked_events(sent: DataFrame, kind: ColumnType, unit: Unit | None) -> DataFrame:
    """Return the events that shards have sent as flat columns, with ids that are unique over all shards."""
    columns = f"shard int, kind tinyint, id string, le bigint, re bigint, re_new bigint, p {kind.ddl}"
    events = sent.mapInArrow(_unpack, columns)
    times = [f"{from_ticks(name, unit)} as {name}" for name in ("le", "re", "re_new")]
    return events.selectExpr(_KIND, "id", *times, *payload_columns(kind, (*PHYSICAL, "shard")), "shard")


def _unpack(batches: Iterable[Any]) -> Iterator[Any]:
    from streamdsl.spark.streaming.wire import unpack_output

    return unpack_output(batches)
