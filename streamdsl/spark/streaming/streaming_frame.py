"""From a plan to a streaming DataFrame: exchanges feed the shards of each stage, and the last one's output is unpacked."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame

from streamdsl.emit import Emit, EmitMode
from streamdsl.errors import ManyShardsWarning, QueryError, UnsupportedOnSpark, level_of_caller, with_hint
from streamdsl.io.layout import PHYSICAL
from streamdsl.plan.node import Source
from streamdsl.sharding.plan_stages import PlanStage
from streamdsl.spark.column_types import ColumnType
from streamdsl.spark.flow import Flow
from streamdsl.spark.job_descriptions import context_of
from streamdsl.spark.public_frame import payload_columns
from streamdsl.spark.shipping import ship
from streamdsl.spark.stages import run_in_worker
from streamdsl.spark.stream_metrics import with_input_ctis, with_metrics
from streamdsl.spark.streaming.shard_ids import shard_ids
from streamdsl.spark.streaming.stage_layout import Exchange, ShardedStage, lay_out
from streamdsl.spark.streaming.stream_inputs import StreamInputs
from streamdsl.spark.streaming.wire import CTI, MESSAGE, OUTPUT, REJECTED, RETRACT
from streamdsl.spark.time_columns import from_ticks
from streamdsl.temporal import Unit
from streamdsl.temporal.identifiers import snake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_SHARDS_PER_CORE: Final = 8
"""More shards than so many times the cores are warned of: Spark's own default is 200, for whatever cluster."""
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
    for number, sharded in enumerate(stages):
        sent[id(sharded.stage)] = _in_shards(number, sharded, inputs.flows, sent)
    last = stages[-1]
    return with_metrics(unpacked_events(sent[id(last.stage)], last.shard_stage.sent_as, inputs.unit), inputs.unit)


def _in_shards(number: int, sharded: ShardedStage, flows: Mapping[str, Flow], sent: Mapping[int, DataFrame]) -> DataFrame:
    """Return the frame of what the shards of a stage send."""
    from streamdsl.spark.streaming.processor import shard_processor

    def messages(exchanges: Sequence[Exchange]) -> Any:
        origins = [each.origin for each in exchanges]
        frames = [sent[id(each)] if isinstance(each, PlanStage) else flows[each.source].make() for each in origins]
        return union([routed(frame, exchange, number) for frame, exchange in zip(frames, exchanges, strict=True)])

    processor = shard_processor(ship(sharded.shard_stage, "the query"), bool(sharded.initial))
    initial = messages(sharded.initial).groupBy("shard") if sharded.initial else None
    names = [each.origin.source for each in sharded.exchanges if isinstance(each.origin, Source)]
    given = with_input_ctis(messages(sharded.exchanges), number, names) if names else messages(sharded.exchanges)
    return given.groupBy("shard").transformWithState(processor, OUTPUT, "append", "none", initial)


def routed(frame: DataFrame, exchange: Exchange, number: int) -> DataFrame:
    """Return the messages of an exchange to a stage whose origin has this frame; Spark's workers make them."""
    origin = exchange.origin
    what = f"source:{origin.source}" if isinstance(origin, Source) else snake(origin.root.name)
    name = f"{what} to stage {number + 1}"
    return frame.mapInArrow(run_in_worker(ship(exchange.stage, what), name), MESSAGE)


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
    context = context_of(spark)
    cores = shards if context is None else context.defaultParallelism
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
