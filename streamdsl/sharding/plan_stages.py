"""Cutting a plan into stages that run in shards: an exchange goes where an operator requires another partitioning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from streamdsl.expr.nodes import Expr, Field, Make, Opaque, Whole, is_opaque, reads_lifetime
from streamdsl.plan.labels import labels
from streamdsl.plan.node import Node, Select, Source, Where
from streamdsl.plan.properties import expressions, reads_re
from streamdsl.sharding.partitioning import HashById, HashByKey, Partitioning, SinglePartition


@dataclass(frozen=True, slots=True, eq=False)
class StageInput:
    """One input of a stage: its origin, the name of its source in the stage's plan, and its partitioning.

    The origin is a source or an earlier stage; `pushed_down` holds the row operators that rows pass before the exchange.
    """

    origin: Origin
    name: str
    pushed_down: Node
    partitioning: Partitioning


@dataclass(frozen=True, slots=True, eq=False)
class PlanStage:
    """What shards run: a plan over the stage's inputs, which computes the node `root` of the query; `nodes` are those it runs.

    `rebuilt` tells of which node of the query one of the plan was made, where that is another one.
    """

    root: Node
    plan: Node
    inputs: tuple[StageInput, ...]
    nodes: tuple[Node, ...]
    rebuilt: Rebuilt

    @property
    def is_sharded(self) -> bool:
        """Whether the stage may have more than one shard."""
        return any(isinstance(each.partitioning, (HashByKey, HashById)) for each in self.inputs)

    def written(self, node: Node) -> Node:
        """Return the node of the query of which a node of this plan, or of what is pushed down before it, was made."""
        return self.rebuilt[id(node)][1] if id(node) in self.rebuilt else node

    def all(self) -> list[PlanStage]:
        """Return this stage and all that it reads, in topological order."""
        found: dict[int, PlanStage] = {}
        for stage_input in self.inputs:
            if isinstance(stage_input.origin, PlanStage):
                found |= {id(stage): stage for stage in stage_input.origin.all()}
        return [*found.values(), self]


Origin: TypeAlias = Source | PlanStage
Rebuilt: TypeAlias = Mapping[int, tuple[Node, Node]]
"""Nodes over other inputs, by their `id()`, each with the node of the query that it was made of."""


def cut_into_stages(plan: Node, sparing: bool = False) -> PlanStage:
    """Return the last stage of a plan; its inputs lead to the earlier ones.

    With `sparing` one process sends all rows, and little is to run in it: only what a key needs, and filters in columns.
    """
    return _StageCutter(sparing).stage(plan)


def explain_stages(plan: Node) -> str:
    """Return how a plan is cut, as text: for each stage the partitioning, or why it has a single shard.

    >>> import streamdsl as sd
    >>> trips = sd.source("trips")
    >>> by_venue = trips.where(lambda e: e.fare > 5).group_by("venue").tumbling_window(10).aggregate(n=sd.count())
    >>> print(explain_stages(by_venue.plan()))
    shards by e.venue
    >>> print(explain_stages(trips.tumbling_window(10).aggregate(n=sd.count()).plan()))
    one shard: window_aggregate_1 is outside of any group
    """
    stages, named = cut_into_stages(plan).all(), labels(plan)
    if len(stages) == 1:
        return sharding(stages[0], named)
    return "\n".join(stage_lines(stages, lambda stage: sharding(stage, named)))


def stage_lines(stages: Sequence[PlanStage], how: Callable[[PlanStage], str]) -> Iterator[str]:
    """Yield a line for each stage: what it reads, and how it runs."""
    numbers = {id(stage): number for number, stage in enumerate(stages, 1)}
    for number, stage in enumerate(stages, 1):
        of_stages = [f"stage {numbers[id(each.origin)]}" for each in stage.inputs if id(each.origin) in numbers]
        of_sources = [each.origin.source for each in stage.inputs if isinstance(each.origin, Source)]
        yield f"stage {number} of {', '.join(dict.fromkeys([*of_stages, *of_sources]))}: {how(stage)}"


def sharding(stage: PlanStage, named: dict[int, str]) -> str:
    """Return the partitioning of a stage, or why it has a single shard; `named` are the labels of the query's nodes."""
    if not stage.is_sharded:
        alone = [named[id(node)] for node in stage.nodes if _needs_all_rows(node)]
        return f"one shard: {', '.join(alone)} {'is' if len(alone) == 1 else 'are'} outside of any group"
    return f"shards by {' or '.join(dict.fromkeys(str(each.partitioning) for each in stage.inputs))}"


class _StageCutter:
    """Makes the stages of a plan; each node has at most one stage, which those above it share."""

    def __init__(self, sparing: bool) -> None:
        self._sparing = sparing
        self._stages: dict[int, PlanStage] = {}
        self._rebuilt: dict[int, tuple[Node, Node]] = {}

    def pushes(self, node: Node, partitioning: Partitioning) -> bool:
        """Say whether an operator is pushed below an exchange."""
        if not _can_push_down(node) or not self._sparing:
            return _can_push_down(node)
        return isinstance(partitioning, HashByKey) and not any(map(is_opaque, expressions(node)))

    def rebuild(self, node: Node, change: Callable[[Node], Node]) -> Node:
        """Return a node over other inputs."""
        new = node.map_inputs(change)
        if new is not node:
            self._rebuilt[id(new)] = new, node
        return new

    def stage(self, root: Node) -> PlanStage:
        if id(root) not in self._stages:
            builder = _StageBuilder(self, SinglePartition() if _is_in_one_shard(root) else HashById())
            plan = builder.build(root)
            self._stages[id(root)] = PlanStage(
                root, plan, tuple(builder.inputs.values()), tuple(builder.nodes.values()), self._rebuilt
            )
        return self._stages[id(root)]


class _StageBuilder:
    """Collects the nodes and inputs of one stage; rows that no operator partitions have the partitioning `default`."""

    def __init__(self, cutter: _StageCutter, default: Partitioning) -> None:
        self._cutter = cutter
        self._default = default
        self._made: dict[int, Node] = {}
        self.inputs: dict[object, StageInput] = {}
        self.nodes: dict[int, Node] = {}

    def build(self, node: Node) -> Node:
        """Return a node over the stage's own sources; a node that several read is built once."""
        if id(node) not in self._made:
            self.nodes[id(node)] = node
            self._made[id(node)] = self._from_sources(node, self._default) if _is_row_wise(node) else self._with_exchanges(node)
        return self._made[id(node)]

    def _with_exchanges(self, node: Node) -> Node:
        if node.row_wise:
            return self._cutter.rebuild(node, self._row_wise_input)
        partitionings = iter(_required_partitionings(node))
        return self._cutter.rebuild(node, lambda below: self._exchanged(below, next(partitionings)))

    def _row_wise_input(self, node: Node) -> Node:
        """Return an input of a row operator; it needs an exchange only from a single shard into a stage of several."""
        if isinstance(self._default, HashById) and _is_in_one_shard(node):
            return self._input(self._cutter.stage(node), node, HashById(), ())
        return self.build(node)

    def _exchanged(self, node: Node, partitioning: Partitioning) -> Node:
        """Return a node's rows with a partitioning: they are sent so from the sources, or from the stage that computes them."""
        if isinstance(partitioning, SinglePartition) and _is_in_one_shard(node):
            return self.build(node)
        if _is_row_wise(node) and (not isinstance(partitioning, HashByKey) or self._payloads_at_sources(node, partitioning)):
            return self._from_sources(node, partitioning)
        return self._input(self._cutter.stage(node), node, partitioning, ())

    def _from_sources(self, node: Node, partitioning: Partitioning, above: tuple[Node, ...] = ()) -> Node:
        """Return a node whose rows are sent from sources; `above`, innermost first, are operators to push down if possible."""
        if isinstance(node, Source):
            return self._input(node, self._over(node, above), partitioning, above)
        if self._cutter.pushes(node, partitioning):
            return self._from_sources(node.inputs[0], partitioning, (node, *above))
        if all(_commute(node, each) for each in above):
            return self._cutter.rebuild(node, lambda below: self._from_sources(below, partitioning, above))
        return self._over(self._cutter.rebuild(node, lambda below: self._from_sources(below, partitioning)), above)

    def _payloads_at_sources(self, node: Node, partitioning: Partitioning, above: tuple[Node, ...] = ()) -> bool:
        """Say whether a node's payloads can be computed at the sources, before the exchange, so that its key is known there."""
        if isinstance(node, Source):
            return True
        if self._cutter.pushes(node, partitioning):
            return self._payloads_at_sources(node.inputs[0], partitioning, (node, *above))
        keeps = node.passes_payload and all(_commute(node, each) for each in above)
        return keeps and all(self._payloads_at_sources(below, partitioning) for below in node.inputs)

    def _over(self, node: Node, above: tuple[Node, ...]) -> Node:
        """Return operators over a node, the innermost first."""
        for each in above:
            below = node
            node = self._cutter.rebuild(each, lambda _, below=below: below)  # type: ignore[misc]
        return node

    def _input(self, origin: Origin, pushed_down: Node, partitioning: Partitioning, above: tuple[Node, ...]) -> Node:
        """Return the source of an input; equal inputs are exchanged once."""
        place = (id(origin), tuple(map(id, above)), partitioning)
        if place not in self.inputs:
            name = origin.source if isinstance(origin, Source) else "stage"
            taken = {each.name for each in self.inputs.values()}
            free = (f"{name}/{n}" if n else name for n in range(len(taken) + 1))
            self.inputs[place] = StageInput(origin, next(each for each in free if each not in taken), pushed_down, partitioning)
        stage_input = self.inputs[place]
        if isinstance(origin, Source):
            return replace(origin, source=stage_input.name, payload=pushed_down.schema, progress=None, table=False)
        return Source(stage_input.name, pushed_down.schema, pushed_down.unit)


def _is_row_wise(node: Node) -> bool:
    """Say whether all operators below are row operators, down to the sources."""
    return all(below.row_wise for below in node.walk())


def _is_in_one_shard(node: Node) -> bool:
    """Say whether the stage that computes a node has a single shard."""
    if node.row_wise:
        rest = [below for below in node.inputs if not _is_row_wise(below)]
        return bool(rest) and all(map(_is_in_one_shard, rest))
    return _needs_all_rows(node)


def _can_push_down(node: Node) -> bool:
    """Say whether an operator can be pushed below an exchange: it must not read REs, which retractions may still change."""
    return isinstance(node, (Where, Select)) and not reads_re(node)


def _commute(lifetimes: Node, payloads: Node) -> bool:
    """Say whether a filter or projection commutes with the operator below it: neither reads what the other changes."""
    if not lifetimes.passes_payload or any(map(reads_lifetime, expressions(payloads))):
        return False
    return isinstance(payloads, Where) or not any(isinstance(part, (Field, Whole, Opaque)) for part in _parts_of(lifetimes))


def _parts_of(node: Node) -> Iterator[Expr]:
    return (part for expr in expressions(node) for part in expr.walk())


def _required_partitionings(node: Node) -> list[Partitioning]:
    """Return the partitioning that an operator requires of each of its inputs."""
    keys = node.partition_by
    if any(key is None for key in keys):
        return [SinglePartition() for _ in keys]
    return [HashByKey(key.values if isinstance(key, Make) else (key,)) for key in keys if key is not None]


def _needs_all_rows(node: Node) -> bool:
    """Say whether an operator requires all rows in a single shard."""
    return not node.row_wise and isinstance(_required_partitionings(node)[0], SinglePartition)
