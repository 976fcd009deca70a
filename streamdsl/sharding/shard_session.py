"""Shards in a process: each is a session of the local engine that runs a stage's plan over its part of the rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from streamdsl.engine.batch import Batch
from streamdsl.engine.ids import PairIds
from streamdsl.engine.keys import KeyTable
from streamdsl.engine.lower import Graph, lower
from streamdsl.engine.memory import MemoryMeter
from streamdsl.engine.operator import EmitPolicy, Piece
from streamdsl.engine.query_session import Session
from streamdsl.engine.row_batch import RowBatch
from streamdsl.engine.state.checkpoint import Checkpoint
from streamdsl.plan.node import Node
from streamdsl.sharding.part_reader import PartsOf, Place, ReadWork
from streamdsl.sharding.sent_columns import alone


class ShardOutput(NamedTuple):
    """What a shard sends after a step: net changes, its CTI, and its final frontier."""

    batch: Batch
    cti: int
    final: int


class ShardStep(NamedTuple):
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

    def __init__(self, work: StageWork, shard: int) -> None:
        super().__init__(work.plan, lowered=work.graph)
        self._shard = shard
        self._numbers_rows = any(each.numbers_rows for each in self._graph.operators)

    def table_labels(self) -> dict[int, str]:
        """Return the labels of the plan's key tables."""
        return self._graph.table_labels()

    def take(self, rows: Mapping[str, Batch], step: ShardStep) -> ShardOutput:
        """Run a step."""
        if step.ending:
            self._end()
        pieces = {name: Piece(batch, step.ctis[name]) for name, batch in rows.items()}
        self._ctis.update(step.ctis)
        ((batch, cti),) = self._graph.step(pieces, self._ctis)
        if self._numbers_rows and len(batch):
            batch = _of_shard(batch, self._shard)
        return ShardOutput(batch, cti, self._graph.final_frontier(self._ctis, step.finals))

    def figures(self, sizes: bool) -> dict[str, dict[str, int]]:
        """Return the figures of the operators by their labels; with `sizes` their bytes too."""
        if not sizes:
            return self._operator_figures(None)
        self._flush_for_reading()
        return self._operator_figures(MemoryMeter([*self._graph.operators, *self._graph.key_tables]))


def _of_shard(batch: Batch, shard: int) -> Batch:
    """Return rows with ids that no other shard gives."""
    if type(batch) is RowBatch:
        batch = batch.columns
    return batch.with_ids(PairIds(np.full(len(batch), shard), batch.ids))


class ShardHost:
    """The shards that a process has."""

    def __init__(
        self, works: Iterable[StageWork], places: Mapping[Place, bytes | None], types: Iterable[type], trust: bool
    ) -> None:
        works = list(works)
        self._shards = {(stage, shard): ShardSession(works[stage], shard) for stage, shard in places}
        self._labels: dict[int, str] = {}
        self._reading: Iterator[PartsOf] | None = None
        self._read: PartsOf = defaultdict(lambda: defaultdict(list))
        for place, state in places.items():
            if state is not None:
                Checkpoint(state).lay_over(self._shards[place], trust, types)

    def label(self, table: KeyTable) -> str | None:
        """Return the label of a key table of a shard, None for one of something else."""
        if id(table) not in self._labels:  # it is made on first use
            self._labels = {each: label for shard in self._shards.values() for each, label in shard.table_labels().items()}
        return self._labels.get(id(table))

    def read(self, work: ReadWork | None) -> PartsOf | None:
        """Read on, from the beginning of what is given; return the rows for shards of other processes, None at the end.

        Those of the shards that are here come in with the next step.
        """
        self._reading = self._reading if work is None else work.parts()
        found = None if self._reading is None else next(self._reading, None)
        if found is None:
            return None
        for place, named in found.items():
            if place in self._shards:
                for name, rows in named.items():
                    self._read[place][name] += rows
        return {
            place: {name: list(map(alone, rows)) for name, rows in named.items()}
            for place, named in found.items()
            if place not in self._shards
        }

    def _with_read(self, place: Place, rows: Mapping[str, Batch]) -> Mapping[str, Batch]:
        """Return the rows of a step, and those that were read here."""
        read = self._read.pop(place, {})
        names = dict.fromkeys([*rows, *read])
        return {name: Batch.concat([*([rows[name]] if name in rows else []), *read.get(name, [])]) for name in names}

    def step(self, step: ShardStep) -> dict[int, ShardOutput]:
        """Run a step, and return what each shard sends."""
        steps = [((step.stage, shard), shard, rows) for shard, rows in step.rows.items()]
        return {shard: self._shards[place].take(self._with_read(place, rows), step) for place, shard, rows in steps}

    def snapshot(self, types: Iterable[type], trust: bool) -> dict[Place, bytes]:
        """Return the state of each shard."""
        return {place: shard.snapshot(types, trust) for place, shard in self._shards.items()}

    def figures(self, sizes: bool) -> list[dict[str, dict[str, int]]]:
        """Return the figures of the operators of each shard."""
        return [shard.figures(sizes) for shard in self._shards.values()]
