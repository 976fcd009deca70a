"""The way to shards: rows pass what they pass alone, and are sent by key; how far a source has come is told to all shards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamdsl.engine.batch import Batch
from streamdsl.engine.lower import Graph, lower
from streamdsl.engine.operator import Piece, inputs_of
from streamdsl.errors import EventError, SchemaError, UserCodeError
from streamdsl.expr.evaluate import RowError, evaluate
from streamdsl.expr.nodes import Expr
from streamdsl.plan.node import Node
from streamdsl.spark.codec import decode_table, encode_table
from streamdsl.spark.row_stage import Payload
from streamdsl.spark.streaming.shards import shard_places
from streamdsl.spark.streaming.wire import INSERT, RETRACT, packed
from streamdsl.spark.types import Type
from streamdsl.temporal import INFINITY, MIN_TIME, add_time

_KINDS = {"insert": INSERT, "retract": RETRACT}


@dataclass(frozen=True, slots=True)
class RouteStage:
    """How the rows of a source are sent, and as which; with a `slack` its CTI follows the largest LE, else CTIs come as rows."""

    source: str
    name: str
    payload: Payload
    before: Node | None
    key: tuple[Expr, ...]
    out: Type
    shards: tuple[int, ...]
    slack: int | None

    def run(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield parcels: those of each batch's rows, at last one that says how far the source has come."""
        cti, graph, is_first = MIN_TIME, None if self.before is None else lower(self.before), True
        for batch in batches:
            if is_first and batch.num_rows:
                # The shard that there is however many there are: it knows how many there were.
                yield _parcels([(min(self.shards), self.name, None, None)])
                is_first = False
            self._check(batch)
            is_cti = pc.equal(batch.column("kind"), "cti")
            cti = max(cti, self._progress(batch, is_cti))
            rows = batch.filter(pc.invert(is_cti))
            if rows.num_rows:
                yield from self._sent(rows, graph)
        if cti > MIN_TIME:
            yield _parcels([(shard, self.name, cti, None) for shard in self.shards])

    def _check(self, batch: Any) -> None:
        """Raise `SchemaError` for a row of no known kind, `EventError` for one without an LE; shards find what else is wrong."""
        kinds = batch.column("kind")
        for kind in pc.unique(kinds).to_pylist():
            if kind != "cti" and kind not in _KINDS:
                known = "insert, retract or cti"
                raise SchemaError(f"a row of the source {self.source!r} is refused: its kind is {kind!r}, not {known}")
        for row in batch.filter(pc.and_(pc.not_equal(kinds, "cti"), pc.is_null(batch.column("le")))).slice(0, 1).to_pylist():
            raise EventError(row, "its le is null", where=self.source)

    def _progress(self, batch: Any, is_cti: Any) -> int:
        ctis = pc.max(pc.fill_null(batch.filter(is_cti).column("le"), INFINITY)).as_py()
        latest = None if self.slack is None else pc.max(batch.column("le")).as_py()
        ahead = MIN_TIME if latest is None else add_time(latest, -(self.slack or 0))
        return max(MIN_TIME if ctis is None else int(ctis), ahead)

    def _sent(self, rows: Any, graph: Graph | None) -> Iterator[Any]:
        table = pa.table(
            {
                "kind": pa.array([_KINDS[kind] for kind in rows.column("kind").to_pylist()], pa.int8()),
                **{name: rows.column(name) for name in ("id", "le", "re", "re_new")},
                "p": rows.column(self.payload.column),
            }
        )
        if graph is None:
            yield _parcels([(self.shards[0], self.name, None, packed(table))])
            return
        batch = self._passed(rows, table, graph)
        if not len(batch):
            return
        places = self._places(batch)
        sent = table.take(pa.array(batch.ids)).set_column(5, "p", encode_table(batch.table, self.out))
        order = np.argsort(places, kind="stable")
        stops = np.searchsorted(places[order], np.arange(len(self.shards) + 1)).tolist()
        ordered = sent.take(pa.array(order))
        parts = [(shard, ordered.slice(a, b - a)) for shard, a, b in zip(self.shards, stops, stops[1:], strict=False) if b > a]
        yield _parcels([(shard, self.name, None, packed(part)) for shard, part in parts])

    def _places(self, batch: Batch) -> NDArray[np.int64]:
        """Return for each row which of the shards it goes to."""
        try:
            return shard_places([evaluate(part, inputs_of(batch)) for part in self.key], len(self.shards))
        except RowError as error:
            (payload,) = batch.table.take(np.array([error.row])).payloads()
            raise UserCodeError(error.cause, operator=f"the key of source:{self.source}", event=payload) from error

    def _passed(self, rows: Any, table: Any, graph: Graph) -> Batch:
        """Return the rows that are left before they are sent; their ids are their places."""
        le, re, re_new = (table.column(name).to_numpy() for name in ("le", "re", "re_new"))
        is_retraction = table.column("kind").to_numpy() == RETRACT
        payloads = decode_table(rows.column(self.payload.column), self.payload.type, self.payload.schema)
        old, new = np.where(is_retraction, re, le), np.where(is_retraction, re_new, re)
        batch = Batch(np.arange(len(le)), le, old, new, payloads)
        (out,) = graph.step({self.source: Piece(batch, MIN_TIME)}, {self.source: MIN_TIME})
        return out.batch


def _parcels(parcels: list[tuple[int, str, int | None, bytes | None]]) -> Any:
    shards, sources, ctis, blobs = zip(*parcels, strict=True)
    arrays = [pa.array(shards, pa.int32()), pa.array(sources), pa.array(ctis, pa.int64()), pa.array(blobs, pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, ["shard", "source", "cti", "blob"])
