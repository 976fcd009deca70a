"""Routing: rows pass what is pushed down before an exchange, and each gets the index of its shard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.batch import Batch
from streamdsl.engine.lower import Graph, lower
from streamdsl.engine.operator import Piece
from streamdsl.engine.row_batch import RowBatch
from streamdsl.errors import UserCodeError
from streamdsl.expr.evaluate import RowError
from streamdsl.plan.node import Node, Source, sources
from streamdsl.sharding.partitioning import Partitioning
from streamdsl.temporal import MIN_TIME


class Router:
    """One way of rows to the shards of a stage. What is pushed down runs as a graph of the local engine, without state."""

    def __init__(self, pushed_down: Node, partitioning: Partitioning, names: Mapping[int, str] | None = None) -> None:
        self.graph: Graph | None = None if isinstance(pushed_down, Source) else lower(pushed_down, names=names)
        self.partitioning = partitioning
        self._name = next(iter(sources(pushed_down)))

    def split(self, rows: Batch, shards: int, tells_high_water: bool = False) -> dict[int, Batch]:
        """Return the rows of each shard that has some, after what is pushed down.

        With `tells_high_water` each shard hears of the latest row, too, if only by a change that says no more than that.
        """
        rows = self.passed(rows)
        if not len(rows):
            return {}
        if shards == 1:
            return {0: rows}
        places = self.shard_indexes(rows, None, shards)
        order = np.argsort(places.astype(np.uint16), kind="stable")  # 16 bits are sorted by radix
        stops = np.searchsorted(places[order], np.arange(shards + 1)).tolist()
        ranges = zip(range(shards), stops, stops[1:], strict=False)
        if tells_high_water:
            latest = int(rows.le.argmax())
            return {shard: _with_noop(rows.take(np.append(order[start:stop], latest))) for shard, start, stop in ranges}
        return {shard: rows.take(order[start:stop]) for shard, start, stop in ranges if stop > start}

    def passed(self, rows: Batch) -> Batch:
        """Return the rows that what is pushed down leaves."""
        rows = rows.columns if type(rows) is RowBatch else rows
        if self.graph is None or not len(rows):
            return rows
        (out,) = self.graph.step({self._name: Piece(rows, MIN_TIME)}, {self._name: MIN_TIME})
        return out.batch

    def shard_indexes(self, rows: Batch, ids: Any, shards: int) -> NDArray[np.int64]:
        """Return for each row the index of its shard; raises `UserCodeError` for a key that cannot be computed."""
        try:
            return self.partitioning.shard_indexes(rows, ids, shards)
        except RowError as error:
            (payload,) = rows.table.take(np.array([error.row])).payloads()
            raise UserCodeError(error.cause, operator=f"the key of source:{self._name}", payloads=(payload,)) from error


def _with_noop(rows: Batch) -> Batch:
    """Return rows of which the last one says only that it has come."""
    re_old = rows.re_old.copy()
    re_old[-1] = rows.re_new[-1]
    return Batch(rows.ids, rows.le, re_old, rows.re_new, rows.table)
