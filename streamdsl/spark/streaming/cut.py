"""Where a plan is cut: into stages, each of which runs in shards; rows go from one to the next where they have to meet others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from streamdsl.expr.nodes import Expr, Field, Make, Opaque, Whole, reads_lifetime
from streamdsl.plan.labels import labels
from streamdsl.plan.node import Node, Select, Source, Where
from streamdsl.plan.properties import expressions, reads_re
from streamdsl.spark.streaming.placing import ById, ByKey, Placing, Together


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """How rows come into a stage: from a source or another stage, as which source, what they pass before, and to which shard."""

    origin: Origin
    name: str
    before: Node
    placing: Placing


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """What shards run: a plan over the rows that routes bring, which computes the node `root` of the query."""

    root: Node
    plan: Node
    routes: tuple[Route, ...]
    inside: tuple[Node, ...]

    @property
    def is_spread(self) -> bool:
        """Whether there may be more than one shard."""
        return any(isinstance(each.placing, (ByKey, ById)) for each in self.routes)

    def all(self) -> list[Stage]:
        """Return this stage and those that it reads, each after what it reads."""
        found: dict[int, Stage] = {}
        for route in self.routes:
            if isinstance(route.origin, Stage):
                found |= {id(stage): stage for stage in route.origin.all()}
        return [*found.values(), self]


Origin: TypeAlias = Source | Stage


def cut(plan: Node) -> Stage:
    """Return the last stage of a plan; its routes lead to those before it."""
    return _Cutter().stage(plan)


def explain_cut(plan: Node) -> str:
    """Return how a plan is cut: shards by which keys, or one shard, and why.

    >>> import streamdsl as sd
    >>> trips = sd.source("trips")
    >>> print(explain_cut(trips.where(lambda e: e.fare > 5).group_by("venue").tumbling_window(10).aggregate(n=sd.count()).plan()))
    shards by e.venue
    >>> print(explain_cut(trips.tumbling_window(10).aggregate(n=sd.count()).plan()))
    one shard: window_aggregate_1 is outside of any group
    """
    stages, named = cut(plan).all(), labels(plan)
    if len(stages) == 1:
        return _spread(stages[0], named)
    numbers = {id(stage): number for number, stage in enumerate(stages, 1)}
    return "\n".join(f"stage {numbers[id(each)]}{_reads(each, numbers)}: {_spread(each, named)}" for each in stages)


def _reads(stage: Stage, numbers: dict[int, int]) -> str:
    found = [f"stage {numbers[id(each.origin)]}" for each in stage.routes if isinstance(each.origin, Stage)]
    found += [each.origin.source for each in stage.routes if isinstance(each.origin, Source)]
    return f" of {', '.join(dict.fromkeys(found))}"


def _spread(stage: Stage, named: dict[int, str]) -> str:
    if not stage.is_spread:
        alone = [named[id(node)] for node in stage.inside if _is_alone(node)]
        return f"one shard: {', '.join(alone)} {'is' if len(alone) == 1 else 'are'} outside of any group"
    return f"shards by {' or '.join(dict.fromkeys(str(each.placing) for each in stage.routes))}"


class _Cutter:
    """Makes the stages of a plan, that of each node once."""

    def __init__(self) -> None:
        self._stages: dict[int, Stage] = {}

    def stage(self, root: Node) -> Stage:
        if id(root) not in self._stages:
            region = _Region(self, Together() if _is_in_one(root) else ById())
            plan = region.inside(root)
            self._stages[id(root)] = Stage(root, plan, tuple(region.routes.values()), tuple(region.nodes.values()))
        return self._stages[id(root)]


class _Region:
    """The nodes that one stage runs, and the routes that lead to them; rows that may be anywhere are where `default` says."""

    def __init__(self, cutter: _Cutter, default: Placing) -> None:
        self._cutter = cutter
        self._default = default
        self._made: dict[int, Node] = {}
        self.routes: dict[object, Route] = {}
        self.nodes: dict[int, Node] = {}

    def inside(self, node: Node) -> Node:
        """Return a node as the stage runs it."""
        if id(node) not in self._made:
            self.nodes[id(node)] = node
            self._made[id(node)] = self._place(node, self._default) if _is_free(node) else self._over(node)
        return self._made[id(node)]

    def _over(self, node: Node) -> Node:
        if node.row_wise:
            return node.map_inputs(self._joined)
        placings = iter(_inputs(node))
        return node.map_inputs(lambda below: self._routed(below, next(placings)))

    def _joined(self, node: Node) -> Node:
        """Return the rows of a node that an operator takes one by one: what is in one shard comes from there."""
        if isinstance(self._default, ById) and _is_in_one(node):
            return self._route(self._cutter.stage(node), node, ById(), ())
        return self.inside(node)

    def _routed(self, node: Node, placing: Placing) -> Node:
        """Return the rows of a node where they are to be: as they are sent from sources, or from the stage that has them."""
        if isinstance(placing, Together) and _is_in_one(node):
            return self.inside(node)
        if _is_free(node) and (not isinstance(placing, ByKey) or _sinks(node)):
            return self._place(node, placing)
        return self._route(self._cutter.stage(node), node, placing, ())

    def _place(self, node: Node, placing: Placing, above: tuple[Node, ...] = ()) -> Node:
        """Return rows that come from sources; `above`, innermost first, is what they pass before they are sent, if they can."""
        if isinstance(node, Source):
            return self._route(node, _over(node, above), placing, above)
        if _passes_before(node):
            return self._place(node.inputs[0], placing, (node, *above))
        if all(_commute(node, each) for each in above):
            return node.map_inputs(lambda below: self._place(below, placing, above))
        return _over(node.map_inputs(lambda below: self._place(below, placing)), above)

    def _route(self, origin: Origin, before: Node, placing: Placing, above: tuple[Node, ...]) -> Node:
        """Return the source as which rows come; the same ones come once."""
        place = (id(origin), tuple(map(id, above)), placing)
        if place not in self.routes:
            name = origin.source if isinstance(origin, Source) else "stage"
            taken = {each.name for each in self.routes.values()}
            free = (f"{name}/{n}" if n else name for n in range(len(taken) + 1))
            self.routes[place] = Route(origin, next(each for each in free if each not in taken), before, placing)
        route = self.routes[place]
        if isinstance(origin, Source):
            return replace(origin, source=route.name, payload=before.schema, progress=None, table=False)
        return Source(route.name, before.schema, before.unit)


def _over(node: Node, above: tuple[Node, ...]) -> Node:
    for each in above:
        below = node
        node = each.map_inputs(lambda _, below=below: below)  # type: ignore[misc]
    return node


def _is_free(node: Node) -> bool:
    """Say whether all rows below pass alone, from the sources on."""
    return all(below.row_wise for below in node.walk())


def _is_in_one(node: Node) -> bool:
    """Say whether the stage that has a node's rows has them all in one shard."""
    if node.row_wise:
        rest = [below for below in node.inputs if not _is_free(below)]
        return bool(rest) and all(map(_is_in_one, rest))
    return _is_alone(node)


def _sinks(node: Node, above: tuple[Node, ...] = ()) -> bool:
    """Say whether the payloads that a node gives can be had where its rows come from, before they are sent."""
    if isinstance(node, Source):
        return True
    if _passes_before(node):
        return _sinks(node.inputs[0], (node, *above))
    keeps = node.passes_payload and all(_commute(node, each) for each in above)
    return keeps and all(_sinks(below, above) for below in node.inputs)


def _passes_before(node: Node) -> bool:
    """Say whether rows can pass before they are sent: with ends as they are, which may still change."""
    return isinstance(node, (Where, Select)) and not reads_re(node)


def _commute(lifetimes: Node, payloads: Node) -> bool:
    """Say whether a filter or a projection may come before what is below it: neither sees what the other changes."""
    if not lifetimes.passes_payload or any(map(reads_lifetime, expressions(payloads))):
        return False
    return isinstance(payloads, Where) or not any(isinstance(part, (Field, Whole, Opaque)) for part in _parts_of(lifetimes))


def _parts_of(node: Node) -> Iterator[Expr]:
    return (part for expr in expressions(node) for part in expr.walk())


def _inputs(node: Node) -> list[Placing]:
    """Return which rows an operator has to have together, for each of its inputs."""
    keys = node.partition_by
    if any(key is None for key in keys):
        return [Together() for _ in keys]
    return [ByKey(key.values if isinstance(key, Make) else (key,)) for key in keys if key is not None]


def _is_alone(node: Node) -> bool:
    """Say whether an operator has to have all rows together."""
    return not node.row_wise and isinstance(_inputs(node)[0], Together)
