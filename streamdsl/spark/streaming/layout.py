"""A plan as streams on Spark run it: for each stage what its shards run, and how rows come to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from streamdsl.emit import Emit, EmitMode
from streamdsl.errors import QueryError
from streamdsl.plan.node import Node, Source
from streamdsl.plan.parameters import mapped
from streamdsl.spark.flow import Flow
from streamdsl.spark.lower import lower, lowering
from streamdsl.spark.stages import payload_of
from streamdsl.spark.streaming.cut import Origin, Route, Stage, cut
from streamdsl.spark.streaming.route import FromShards, FromSource, Import, RouteStage, Way
from streamdsl.spark.streaming.shard import Input, ShardStage
from streamdsl.spark.streaming.wire import Parcel, parcels_of
from streamdsl.spark.types import Type
from streamdsl.spark.values import edge_of
from streamdsl.temporal import INFINITY, Progress, to_duration


@dataclass(frozen=True, slots=True, eq=False)
class Leg:
    """All ways of an origin's rows to a stage."""

    origin: Origin
    stage: RouteStage


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A stage of a plan: its legs, and what its shards run."""

    stage: Stage
    legs: tuple[Leg, ...]
    shards: ShardStage


def laid_out(
    plan: Node, flows: Mapping[str, Flow], shards: Sequence[int], emit: EmitMode | Emit, own: Mapping[str, Any] | None = None
) -> list[Part]:
    """Return the parts of a plan, each after those that it reads; `own` holds the rows of sources that the query brings."""
    last = cut(plan)
    return [_Layout(plan, flows, tuple(shards), own or {}).part(each, emit, each is last) for each in last.all()]


class _Layout:
    """What the parts of a plan share."""

    def __init__(self, plan: Node, flows: Mapping[str, Flow], shards: tuple[int, ...], own: Mapping[str, Any]) -> None:
        self._plan = plan
        self._flows = flows
        self._shards = shards
        self._own = own

    def part(self, stage: Stage, emit: EmitMode | Emit, is_last: bool) -> Part:
        """Return a stage as Spark runs it; only the last one waits until its results are final."""
        legs = self._legs(stage)
        brought = [leg for leg in legs if isinstance(leg.origin, Source) and leg.origin.source in self._own]
        out = self._type(stage.root)
        running = ShardStage(
            stage.plan,
            {route.name: self._input(route) for route in stage.routes},
            out,
            edge_of(out) if is_last else out,
            emit if is_last or emit == "watermark" else "speculative",
            len(self._places(stage)),
            self._parcels(brought),
        )
        return Part(stage, tuple(leg for leg in legs if leg not in brought), running)

    def _places(self, stage: Stage) -> tuple[int, ...]:
        return self._shards if stage.is_spread else (0,)

    def _type(self, node: Node) -> Type:
        return lower(lowering(node, self._flows)).type

    def _legs(self, stage: Stage) -> list[Leg]:
        routes: dict[int, list[Route]] = defaultdict(list)
        imports: dict[int, list[Import]] = defaultdict(list)
        origins: dict[int, Origin] = {}
        for route in stage.routes:
            origins[id(route.origin)] = route.origin
            routes[id(route.origin)].append(route)
            if isinstance(route.origin, Source) and (other := self._imported_by(route.origin)) is not None:
                origins[id(other)] = other
                delay = to_duration(_progress(route.origin).delay, self._flows[other.source].unit)
                imports[id(other)].append(Import(route.name, delay, self._places(stage)))
        return [Leg(origin, self._route(origin, routes[key], imports[key], stage)) for key, origin in origins.items()]

    def _route(self, origin: Origin, routes: list[Route], imports: list[Import], stage: Stage) -> RouteStage:
        ways = [self._way(route, self._places(stage)) for route in routes]
        return RouteStage(self._from(origin), tuple(ways), tuple(imports))

    def _from(self, origin: Origin) -> FromSource | FromShards:
        if isinstance(origin, Stage):
            return FromShards("a stage before", payload_of(self._type(origin.root), origin.root.schema))
        flow = self._flows[origin.source]
        return FromSource(origin.source, payload_of(flow.type, origin.payload), origin.progress, flow.unit)

    def _way(self, route: Route, shards: tuple[int, ...]) -> Way:
        out = self._type(route.before)
        if isinstance(route.origin, Stage):
            return Way(route.name, Source(route.name, route.before.schema, route.before.unit), route.placing, out, shards)
        return Way(route.name, _without_progress(route.before), route.placing, out, shards)

    def _input(self, route: Route) -> Input:
        payload = payload_of(self._type(route.before), route.before.schema)
        if isinstance(route.origin, Stage):
            return Input(payload, origins=len(self._places(route.origin)))
        source = self._imported_by(route.origin) or route.origin
        policy = source.progress
        is_counted = policy is not None and policy.kind == "count"
        return Input(payload, step=policy.generator(self._flows[source.source].unit).step if policy and is_counted else 1)

    def _imported_by(self, source: Source) -> Source | None:
        """Return the source whose CTIs another one imports."""
        policy = source.progress
        if policy is None or policy.kind != "imported":
            return None
        named = {node.source: node for node in self._plan.walk() if isinstance(node, Source)}
        if policy.source not in named:
            raise QueryError(
                f"the source {source.source!r} imports its CTIs from {policy.source!r}, which this query does not read",
                hint=f"the sources of this query are: {', '.join(named)}",
            )
        return named[policy.source]

    def _parcels(self, legs: Iterable[Leg]) -> dict[int, list[Parcel]]:
        """Return what shards have from the beginning: rows that the query brings, and that there are no more of them."""
        found: dict[int, list[Parcel]] = defaultdict(list)
        for leg in legs:
            assert isinstance(leg.origin, Source)
            for batch in leg.stage.run([self._own[leg.origin.source]]):
                for parcel in parcels_of(batch):
                    found[parcel.shard].append(parcel)
            for way in leg.stage.ways:
                for shard in way.shards:
                    found[shard].append(Parcel(shard, way.name, INFINITY))
        return dict(found)


def _progress(source: Source) -> Progress:
    assert source.progress is not None
    return source.progress


def _without_progress(plan: Node) -> Node:
    return mapped(plan, lambda node: replace(node, progress=None, table=False) if isinstance(node, Source) else node)
