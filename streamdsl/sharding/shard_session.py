"""Shards in a process: each is a session of the local engine that runs a stage's plan over its part of the rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from streamdsl.engine.batch import Batch
from streamdsl.engine.lower import Graph, lower
from streamdsl.engine.memory import MemoryMeter
from streamdsl.engine.operator import EmitPolicy, Piece
from streamdsl.engine.query_session import Session
from streamdsl.engine.state.checkpoint import Checkpoint
from streamdsl.plan.node import Node
from streamdsl.sharding.wire import Tables

Place: TypeAlias = tuple[int, int]
"""The number of a stage, and that of a shard."""


class Sent(NamedTuple):
    """What a shard sends after a step: net changes, its CTI, and its final frontier."""

    batch: Batch
    cti: int
    final: int


class Step(NamedTuple):
    """A step of a stage: the rows of each shard by input, and for each input the CTI and the final frontier after them.

    `ending`: it is the last one.
    """

    stage: int
    rows: Mapping[int, Mapping[str, Batch]]
    ctis: Mapping[str, int]
    finals: Mapping[str, int]
    ending: bool


@dataclass(frozen=True, slots=True)
class StageWork:
    """What the shards of a stage run: its plan, the labels of the plan's nodes in order, and how windows show their results."""

    plan: Node
    labels: tuple[str, ...]
    policy: EmitPolicy
    options: Mapping[str, str]

    def graph(self, *_: object) -> Graph:
        """Return the operators."""
        names = {id(node): label for node, label in zip(self.plan.walk_all(), self.labels, strict=True)}
        return lower(self.plan, self.policy, self.options, names)


class ShardSession(Session[Any]):
    """A session whose input has been checked, and whose output is changes."""

    undoes = False

    def __init__(self, work: StageWork) -> None:
        super().__init__(work.plan, lowered=work.graph)

    @property
    def tables_by_label(self) -> Tables:
        """The key tables of the plan."""
        return self._graph.tables_by_label

    def take(self, rows: Mapping[str, Batch], step: Step) -> Sent:
        """Run a step."""
        if step.ending:
            self._end()
        pieces = {name: Piece(batch, step.ctis[name]) for name, batch in rows.items()}
        self._ctis.update(step.ctis)
        ((batch, cti),) = self._graph.step(pieces, self._ctis)
        return Sent(batch, cti, self._graph.final_frontier(self._ctis, step.finals))

    def figures(self) -> dict[str, dict[str, int]]:
        """Return the figures of the operators by their labels."""
        self._flush_for_reading()
        return self._operator_figures(MemoryMeter([*self._graph.operators, *self._graph.key_tables]))


class ShardHost:
    """The shards that a process has."""

    def __init__(self, works: Iterable[StageWork], places: Mapping[Place, bytes | None], types: Iterable[type], trust: bool) -> None:
        works = list(works)
        self._shards = {(stage, shard): ShardSession(works[stage]) for stage, shard in places}
        for place, state in places.items():
            if state is not None:
                Checkpoint(state).lay_over(self._shards[place], trust, types)

    def labels(self) -> dict[int, str]:
        """Return the labels of all key tables by their `id()`."""
        tables = [each for shard in self._shards.values() for each in shard.tables_by_label.items()]
        return {id(table): label for label, table in tables}

    def step(self, step: Step) -> dict[int, Sent]:
        """Run a step, and return what each shard sends."""
        return {shard: self._shards[step.stage, shard].take(rows, step) for shard, rows in step.rows.items()}

    def snapshot(self, types: Iterable[type], trust: bool) -> dict[Place, bytes]:
        """Return the state of each shard."""
        return {place: shard.snapshot(types, trust) for place, shard in self._shards.items()}

    def figures(self) -> list[dict[str, dict[str, int]]]:
        """Return the figures of the operators of each shard."""
        return [shard.figures() for shard in self._shards.values()]
