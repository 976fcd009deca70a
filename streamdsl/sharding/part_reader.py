"""Workers that read: each has some of the files of a source, keeps the rows of its own shards, and hands the others over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from streamdsl.engine.batch import Batch, PointBatch
from streamdsl.engine.ids import PairIds
from streamdsl.engine.ingress import Ingress
from streamdsl.io.binding import Bound
from streamdsl.plan.node import Node, Source
from streamdsl.sharding.partitioning import HashById, Partitioning
from streamdsl.sharding.routing import Router
from streamdsl.temporal import Unit

_ROWS: Final = 2**18
"""The rows that are read at once, unless pieces of files are larger."""
_NUMBERS: Final = 2**40
"""Rows of a file are numbered from a multiple of this on, so that no two have one number."""

Place: TypeAlias = tuple[int, int]
"""The number of a stage, and that of a shard."""
PartsOf: TypeAlias = dict[Place, dict[str, list[Batch]]]
"""Rows by stage and shard, and by the stage's input."""


@dataclass(frozen=True, slots=True)
class ReadInput:
    """An input of a stage that reads the source: how its rows get to the shards."""

    stage: int
    name: str
    pushed_down: Node
    partitioning: Partitioning
    labels: tuple[str, ...]
    shards: int

    def router(self) -> Router:
        """Return what splits the rows."""
        names = {id(node): label for node, label in zip(self.pushed_down.walk_all(), self.labels, strict=True)}
        return Router(self.pushed_down, self.partitioning, names)


@dataclass(frozen=True, slots=True)
class ReadWork:
    """What a worker reads of a source: some inputs, each with its number, and where rows that nothing places go."""

    source: Source
    unit: Unit | None
    bounds: Sequence[tuple[int, Bound]]
    inputs: Sequence[ReadInput]
    own_shard: int

    def parts(self) -> Iterator[PartsOf]:
        """Yield the rows, checked as those of a session are, a part of the input at a time."""
        ways = [(each, each.router()) for each in self.inputs]
        for number, bound in self.bounds:
            ingress = Ingress(self.source, self.unit)
            for read in bound.parts(_ROWS):
                found: PartsOf = defaultdict(lambda: defaultdict(list))
                for piece in ingress.stage(read):
                    numbered = _numbered(piece.batch, number * _NUMBERS)
                    for each, router in ways:
                        for shard, rows in self._split(each, router, numbered).items():
                            found[each.stage, shard][each.name].append(rows)
                ingress.commit()
                yield found

    def _split(self, each: ReadInput, router: Router, rows: Batch) -> dict[int, Batch]:
        if isinstance(each.partitioning, HashById) and each.shards > 1:
            passed = router.passed(rows)
            return {self.own_shard: passed} if len(passed) else {}
        return router.split(rows, each.shards)


def _numbered(rows: Batch, first: int) -> Batch:
    """Return rows of a file, which are numbered from 0 on, with numbers from another one on."""
    if type(rows) is PointBatch:
        return PointBatch(rows.first + first, rows.le, rows.table, None, rows.rows)
    ids = rows.ids
    if isinstance(ids, np.ndarray) and ids.dtype.kind == "i":
        return rows.with_ids(ids + first)
    return rows.with_ids(PairIds(np.full(len(rows), first), ids)) if len(rows) else rows
