"""The physical layout of a streaming plan: for each stage what its shards run, and the exchanges that feed them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from streamdsl.emit import Emit, EmitMode
from streamdsl.errors import QueryError
from streamdsl.plan.node import Node, Source, sources
from streamdsl.sharding.plan_stages import Origin, PlanStage, StageInput, cut_into_stages
from streamdsl.spark.column_types import ColumnType
from streamdsl.spark.flow import Flow
from streamdsl.spark.lower import lower, lowering
from streamdsl.spark.public_values import public_type
from streamdsl.spark.stages import payload_of
from streamdsl.spark.streaming.exchange import Clock, CtiImport, ExchangeStage, Route, ShardsOrigin, SourceOrigin
from streamdsl.spark.streaming.shard import ShardInput, ShardStage
from streamdsl.temporal import Progress, to_duration


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """The exchange from one origin to a stage: all its routes run in one task, so the origin is read once."""

    origin: Origin
    stage: ExchangeStage


@dataclass(frozen=True, slots=True, eq=False)
class ShardedStage:
    """A stage with its physical form: the exchanges that feed it, those of bounded inputs for its first state, and its shards."""

    stage: PlanStage
    exchanges: tuple[Exchange, ...]
    initial: tuple[Exchange, ...]
    shard_stage: ShardStage


def lay_out(
    plan: Node, flows: Mapping[str, Flow], shards: Sequence[int], emit: EmitMode | Emit, bounded: Collection[str] = ()
) -> list[ShardedStage]:
    """Return the stages of a plan in topological order; `bounded` names sources whose rows are there before the stream begins."""
    last = cut_into_stages(plan)
    return [_StageLayout(plan, flows, tuple(shards), bounded).part(each, emit, each is last) for each in last.all()]


class _StageLayout:
    """What the stages of one plan share: the sources' flows, the ids of the shards, and the names of bounded sources."""

    def __init__(self, plan: Node, flows: Mapping[str, Flow], shards: tuple[int, ...], bounded: Collection[str]) -> None:
        self._plan = plan
        self._flows = flows
        self._shards = shards
        self._bounded = bounded

    def part(self, stage: PlanStage, emit: EmitMode | Emit, is_last: bool) -> ShardedStage:
        """Return the physical form of a stage; only the last one holds results back, as others would add delay."""
        exchanges = self._exchanges(stage)
        initial = tuple(exchange for exchange in exchanges if self._is_bounded(exchange.origin))
        out = self._type(stage.root)
        shard_stage = ShardStage(
            stage.plan,
            {stage_input.name: self._input(stage_input) for stage_input in stage.inputs},
            out,
            public_type(out) if is_last else out,
            emit if is_last or emit == "watermark" else "speculative",
            len(self._shards_of(stage)),
        )
        return ShardedStage(stage, tuple(each for each in exchanges if each not in initial), initial, shard_stage)

    def _is_bounded(self, origin: Origin) -> bool:
        return isinstance(origin, Source) and origin.source in self._bounded

    def _shards_of(self, stage: PlanStage) -> tuple[int, ...]:
        return self._shards if stage.is_sharded else (0,)

    def _type(self, node: Node) -> ColumnType:
        return lower(lowering(node, self._flows)).type

    def _exchanges(self, stage: PlanStage) -> list[Exchange]:
        stage_inputs: dict[int, list[StageInput]] = defaultdict(list)
        imports: dict[int, list[CtiImport]] = defaultdict(list)
        origins: dict[int, Origin] = {}
        for stage_input in stage.inputs:
            origins[id(stage_input.origin)] = stage_input.origin
            stage_inputs[id(stage_input.origin)].append(stage_input)
            if isinstance(stage_input.origin, Source) and (other := self._imported_by(stage_input.origin)) is not None:
                origins[id(other)] = other
                delay = to_duration(_progress(stage_input.origin).delay, self._flows[other.source].unit)
                imports[id(other)].append(CtiImport(stage_input.name, delay, self._shards_of(stage)))
        return [
            Exchange(origin, self._exchange_stage(origin, stage_inputs[key], imports[key], stage))
            for key, origin in origins.items()
        ]

    def _exchange_stage(
        self, origin: Origin, stage_inputs: list[StageInput], imports: list[CtiImport], stage: PlanStage
    ) -> ExchangeStage:
        routes = [self._route(stage_input, self._shards_of(stage)) for stage_input in stage_inputs]
        clocks = () if self._is_bounded(origin) else tuple(self._clocks(stage))
        return ExchangeStage(self._origin(origin), tuple(routes), tuple(imports), clocks)

    def _clocks(self, stage: PlanStage) -> Iterator[Clock]:
        for each in stage.inputs:
            if isinstance(each.origin, Source) and (policy := each.origin.progress) is not None and policy.kind == "wall":
                yield Clock(each.name, policy, self._flows[each.origin.source].unit, self._shards_of(stage))

    def _origin(self, origin: Origin) -> SourceOrigin | ShardsOrigin:
        if isinstance(origin, PlanStage):
            return ShardsOrigin("a stage before", payload_of(self._type(origin.root), origin.root.schema))
        flow = self._flows[origin.source]
        return SourceOrigin(origin.source, payload_of(flow.type, origin.payload), origin.progress, flow.unit)

    def _route(self, stage_input: StageInput, shards: tuple[int, ...]) -> Route:
        out = self._type(stage_input.pushed_down)
        if isinstance(stage_input.origin, PlanStage):
            return Route(
                stage_input.name,
                Source(stage_input.name, stage_input.pushed_down.schema, stage_input.pushed_down.unit),
                stage_input.partitioning,
                out,
                shards,
            )
        return Route(stage_input.name, _without_progress(stage_input.pushed_down), stage_input.partitioning, out, shards)

    def _input(self, stage_input: StageInput) -> ShardInput:
        payload = payload_of(self._type(stage_input.pushed_down), stage_input.pushed_down.schema)
        if isinstance(stage_input.origin, PlanStage):
            return ShardInput(payload, origins=len(self._shards_of(stage_input.origin)))
        source = self._imported_by(stage_input.origin) or stage_input.origin
        policy = source.progress
        is_counted = policy is not None and policy.kind == "count"
        step = policy.generator(self._flows[source.source].unit).step if policy and is_counted else 1
        return ShardInput(payload, step=step, is_bounded=self._is_bounded(stage_input.origin))

    def _imported_by(self, source: Source) -> Source | None:
        """Return the source whose CTIs a source imports, or None."""
        policy = source.progress
        if policy is None or policy.kind != "imported":
            return None
        named = sources(self._plan)
        if policy.source not in named:
            raise QueryError(
                f"the source {source.source!r} imports its CTIs from {policy.source!r}, which this query does not read",
                hint=f"the sources of this query are: {', '.join(named)}",
            )
        if self._is_bounded(named[policy.source]):
            raise QueryError(
                f"the source {source.source!r} imports its CTIs from {policy.source!r}, which is complete: its CTI is INFINITY",
                hint="import them from a stream, or give the source a policy of its own",
            )
        return named[policy.source]


def _progress(source: Source) -> Progress:
    assert source.progress is not None
    return source.progress


def _without_progress(plan: Node) -> Node:
    return plan.mapped(lambda node: replace(node, progress=None, table=False) if isinstance(node, Source) else node)
