"""From a plan to a streaming DataFrame: rows are routed, shards run the plan, and what these send is unpacked."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame

from streamdsl.emit import Emit, EmitMode
from streamdsl.errors import QueryError, UnsupportedOnSpark
from streamdsl.io.layout import PHYSICAL
from streamdsl.plan.node import Node, Source
from streamdsl.plan.units import in_unit
from streamdsl.spark.flow import Flow
from streamdsl.spark.frames import events_of_frame
from streamdsl.spark.lower import lower, lowering
from streamdsl.spark.public import payload_texts
from streamdsl.spark.shipping import ship
from streamdsl.spark.stages import payload_of
from streamdsl.spark.streaming.cut import Route, cut
from streamdsl.spark.streaming.route import RouteStage
from streamdsl.spark.streaming.shard import ShardStage
from streamdsl.spark.streaming.shards import shard_ids
from streamdsl.spark.streaming.wire import CTI, PARCEL, RETRACT
from streamdsl.spark.times import from_ticks
from streamdsl.spark.types import Type
from streamdsl.spark.values import edge_of
from streamdsl.temporal import Unit, common_unit, to_duration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_KIND: Final = f"CASE kind WHEN {CTI} THEN 'cti' WHEN {RETRACT} THEN 'retract' ELSE 'insert' END as kind"


def stream(plan: Node, spark: SparkSession, frames: Mapping[str, DataFrame], emit: EmitMode | Emit) -> DataFrame:
    """Return the physical events of a plan over streaming frames."""
    _check_settings(spark)
    flows = {node.source: events_of_frame(node, frames[node.source]) for node in plan.walk() if isinstance(node, Source)}
    unit = common_unit(*(flow.unit for flow in flows.values()))
    plan = in_unit(plan, unit)
    made = cut(plan)
    shards = shard_ids(spark, int(spark.conf.get("spark.sql.shuffle.partitions") or 1)) if made.is_keyed else [0]
    out = lower(lowering(plan, flows)).type
    types = {each.name: lower(lowering(each.before, flows)).type for each in made.routes}
    parcels = [_routed(each, flows[each.source.source], types[each.name], shards) for each in made.routes]
    payloads = {each.name: payload_of(types[each.name], each.before.schema) for each in made.routes}
    stage = ShardStage(_without_progress(made.after), payloads, out, emit, len(shards))
    return _unpacked(_in_shards(reduce(DataFrame.unionByName, parcels), ship(stage, "the query")), edge_of(out), unit)


def _in_shards(parcels: DataFrame, blob: bytes) -> DataFrame:
    from streamdsl.spark.streaming.processor import ShardProcessor

    grouped = parcels.groupBy("shard")
    return grouped.transformWithState(ShardProcessor(blob), "shard int, blob binary", "append", "none")


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


def _routed(route: Route, flow: Flow, out: Type, shards: list[int]) -> DataFrame:
    """Return the parcels of a source's rows."""
    stage = RouteStage(
        route.source.source,
        route.name,
        payload_of(flow.type, route.source.payload),
        _without_progress(route.before) if route.key else None,
        route.key,
        out,
        tuple(shards),
        _slack(route.source, flow.unit),
    )
    return flow.make().mapInArrow(_function(ship(stage, f"source:{route.source.source}")), PARCEL)


def _slack(node: Source, unit: Unit | None) -> int | None:
    if node.on_violation != "error":
        raise UnsupportedOnSpark(
            f"the source {node.source!r} asks for on_violation={node.on_violation!r}; streams cannot tell what was dropped",
            hint="give its Progress more slack, or filter late rows out before",
        )
    if node.progress is None:
        return None
    if node.progress.kind != "slack":
        raise UnsupportedOnSpark(
            f"the source {node.source!r} has a progress policy that streams on Spark do not take: {node.progress!r}",
            hint="use Progress.slack or Progress.ordered, or send CTIs as rows of kind 'cti'",
        )
    return to_duration(node.progress.delay, unit)


def _without_progress(plan: Node) -> Node:
    if isinstance(plan, Source):
        return replace(plan, progress=None)
    return plan.map_inputs(_without_progress)


def _function(blob: bytes) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def run(batches: Iterable[Any]) -> Iterator[Any]:
        from streamdsl.spark.worker import run_rows

        return run_rows(blob, batches)

    return run


def _unpacked(sent: DataFrame, kind: Type, unit: Unit | None) -> DataFrame:
    """Return the events that shards have sent, flat; ids are told apart by shard."""
    columns = f"shard int, kind tinyint, id string, le bigint, re bigint, re_new bigint, p {kind.ddl}"
    events = sent.mapInArrow(_open, columns)
    times = [f"{from_ticks(name, unit)} as {name}" for name in ("le", "re", "re_new")]
    return events.selectExpr(_KIND, "id", *times, *payload_texts(kind, (*PHYSICAL, "shard")), "shard")


def _open(batches: Iterable[Any]) -> Iterator[Any]:
    from streamdsl.spark.streaming.wire import opened

    return opened(batches)
