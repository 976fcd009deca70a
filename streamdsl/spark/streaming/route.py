"""The way to shards: rows pass what they pass alone, and are sent; how far their origin has come is told to all shards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamdsl.engine.batch import Batch
from streamdsl.engine.lower import Graph, lower
from streamdsl.engine.operator import Piece
from streamdsl.errors import EventError, SchemaError, UserCodeError
from streamdsl.expr.evaluate import RowError
from streamdsl.plan.node import Node, Source
from streamdsl.spark.codec import decode_table, encode_table
from streamdsl.spark.row_stage import Payload
from streamdsl.spark.streaming.placing import Placing, Together
from streamdsl.spark.streaming.wire import CTI, INSERT, REJECTED, RETRACT, Parcel, opened, packed, parcels_to_arrow
from streamdsl.spark.types import Type
from streamdsl.temporal import INFINITY, MIN_TIME, Progress, Unit, add_time

_KINDS: Final = pa.array(["insert", "retract"])
"""The kinds of rows, each in the place of its number."""
_TIMES = ("le", "re", "re_new")


@dataclass(frozen=True, slots=True)
class FromSource:
    """The rows of a streaming frame: physical events, with CTIs among them, or a progress policy in their stead."""

    name: str
    payload: Payload
    progress: Progress | None
    unit: Unit | None

    def reader(self) -> SourceReader:
        """Return what reads the rows of a micro-batch."""
        return SourceReader(self)


@dataclass(frozen=True, slots=True)
class FromShards:
    """The rows that the shards of a stage before have sent."""

    name: str
    payload: Payload

    def reader(self) -> ShardsReader:
        """Return what reads the rows of a micro-batch."""
        return ShardsReader(self)


class SourceReader:
    """Reads the part of a micro-batch of a source that one task has."""

    def __init__(self, source: FromSource) -> None:
        self._source = source
        self._cti = MIN_TIME
        self._latest: int | None = None
        self._count = 0
        self.passing: list[Any] = []

    def rows(self, batch: Any) -> Iterator[Any]:
        """Yield the insertions and retractions."""
        self._check(batch)
        is_cti = pc.equal(batch.column("kind"), "cti")
        cti = pc.max(pc.fill_null(batch.filter(is_cti).column("le"), INFINITY)).as_py()
        self._cti = self._cti if cti is None else max(self._cti, int(cti))
        rows = batch.filter(pc.invert(is_cti))
        if not rows.num_rows:
            return
        kinds = pc.index_in(rows.column("kind"), _KINDS).cast(pa.int8())
        starts = pc.max(rows.column("le").filter(pc.equal(kinds, INSERT))).as_py()
        self._latest = starts if self._latest is None or starts is None else max(self._latest, starts)
        self._count += rows.num_rows
        columns = {name: rows.column(name) for name in ("id", *_TIMES)}
        yield pa.table({"kind": kinds, **columns, "p": rows.column(self._source.payload.column)})

    def _check(self, batch: Any) -> None:
        """Raise `SchemaError` for a row of no known kind, `EventError` for one without an LE; shards find what else is wrong."""
        name, kinds = self._source.name, batch.column("kind")
        for kind in pc.unique(kinds).to_pylist():
            if kind not in ("insert", "retract", "cti"):
                known = "insert, retract or cti"
                raise SchemaError(f"a row of the source {name!r} is refused: its kind is {kind!r}, not {known}")
        for row in batch.filter(pc.and_(pc.not_equal(kinds, "cti"), pc.is_null(batch.column("le")))).slice(0, 1).to_pylist():
            raise EventError(row, "its le is null", where=name, hint="only an end may be null: it means INFINITY")

    def heard(self) -> Iterator[Parcel]:
        """Yield the largest CTI of the rows, and what the progress policy makes of their largest LE and their number."""
        if self._cti > MIN_TIME:
            yield Parcel(-1, "", self._cti)
        policy, unit = self._source.progress, self._source.unit
        if policy is None or policy.kind == "imported":
            return
        if policy.kind == "wall":
            yield Parcel(-1, "", policy.time_of_day(unit))
            return
        generator = policy.generator(unit)
        if self._count and policy.kind == "count":
            largest = MIN_TIME if self._latest is None else add_time(self._latest, -generator.delay)
            yield Parcel(-1, "", largest, seen=self._count)
        elif self._latest is not None and (cti := generator.after(self._latest)) > MIN_TIME:
            yield Parcel(-1, "", cti)


class ShardsReader:
    """Reads the part of a micro-batch of a stage before that one task has."""

    def __init__(self, shards: FromShards) -> None:
        self._ctis: dict[int, int] = {}
        self.passing: list[Any] = []

    def rows(self, batch: Any) -> Iterator[Any]:
        """Yield the insertions and retractions."""
        for part in opened([batch]):
            is_cti = pc.equal(part.column("kind"), CTI)
            ctis = part.filter(is_cti)
            for shard, cti in zip(ctis.column("shard").to_pylist(), ctis.column("le").to_pylist(), strict=True):
                self._ctis[shard] = max(cti, self._ctis.get(shard, MIN_TIME))
            is_rejected = pc.equal(part.column("kind"), REJECTED)
            if pc.any(is_rejected).as_py():
                self.passing.append(pa.table(part.filter(is_rejected)).drop_columns(["shard"]))
            rows = pa.table(part.filter(pc.invert(pc.or_(is_cti, is_rejected)))).drop_columns(["shard"])
            if rows.num_rows:
                yield rows

    def heard(self) -> Iterator[Parcel]:
        """Yield the CTI of each shard before."""
        return (Parcel(-1, "", cti, origin=shard) for shard, cti in self._ctis.items())


@dataclass(frozen=True, slots=True)
class Way:
    """How rows are sent: as which source of a stage, what they pass before, and which of its shards each goes to."""

    name: str
    before: Node
    placing: Placing
    out: Type
    shards: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Import:
    """Another source of a stage whose CTI follows that of this origin, later by a delay."""

    name: str
    delay: int
    shards: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RouteStage:
    """The ways of an origin's rows to the shards of a stage, and the sources that import its CTIs."""

    origin: FromSource | FromShards
    ways: tuple[Way, ...]
    imports: tuple[Import, ...] = ()

    def run(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield parcels: those of each batch's rows, at last those that say how far the origin has come."""
        reader, senders = self.origin.reader(), [_Sender(way, self.origin.payload) for way in self.ways]
        is_first = True
        for batch in batches:
            if is_first and batch.num_rows and self.ways:
                # The shard that there is however many there are: it knows how many there were.
                yield parcels_to_arrow([Parcel(min(self.ways[0].shards), self.ways[0].name)])
                is_first = False
            for rows in reader.rows(batch):
                for sender in senders:
                    if parcels := sender.sent(rows):
                        yield parcels_to_arrow(parcels)
        for rows in reader.passing:
            yield parcels_to_arrow([Parcel(self.ways[0].shards[0], "", blob=packed(rows))])
        if told := [parcel for word in reader.heard() for parcel in self._told(word)]:
            yield parcels_to_arrow(told)

    def _told(self, word: Parcel) -> Iterator[Parcel]:
        """Yield what an origin says of how far it has come to all shards of all ways."""
        for way in self.ways:
            yield from (replace(word, shard=shard, source=way.name) for shard in way.shards)
        for each in self.imports:
            cti = word.cti if word.cti in (None, MIN_TIME, INFINITY) else add_time(word.cti, -each.delay)
            yield from (Parcel(shard, each.name, cti, seen=word.seen) for shard in each.shards)


class _Sender:
    """Sends rows one way."""

    def __init__(self, way: Way, payload: Payload) -> None:
        self._way = way
        self._payload = payload
        self._graph: Graph | None = None if isinstance(way.before, Source) else lower(way.before)
        self._as_it_is = self._graph is None and payload.type == way.out
        self._name = next(node.source for node in way.before.walk() if isinstance(node, Source))

    def sent(self, rows: Any) -> list[Parcel]:
        way = self._way
        if self._as_it_is and isinstance(way.placing, Together):
            return [Parcel(way.shards[0], way.name, blob=packed(rows))]
        batch = self._passed(rows)
        if not len(batch):
            return []
        sent = rows.take(pa.array(batch.ids))
        places = self._places(batch, sent.column("id"))
        if not self._as_it_is:
            sent = sent.set_column(5, "p", encode_table(batch.table, way.out))
        order = np.argsort(places, kind="stable")
        stops = np.searchsorted(places[order], np.arange(len(way.shards) + 1)).tolist()
        ordered = sent.take(pa.array(order))
        parts = [(shard, ordered.slice(a, b - a)) for shard, a, b in zip(way.shards, stops, stops[1:], strict=False) if b > a]
        return [Parcel(shard, way.name, blob=packed(part)) for shard, part in parts]

    def _places(self, batch: Batch, ids: Any) -> NDArray[np.int64]:
        """Return for each row which of the shards it goes to."""
        try:
            return self._way.placing.places(batch, ids, len(self._way.shards))
        except RowError as error:
            (payload,) = batch.table.take(np.array([error.row])).payloads()
            raise UserCodeError(error.cause, operator=f"the key of source:{self._name}", event=payload) from error

    def _passed(self, rows: Any) -> Batch:
        """Return the rows that are left before they are sent; their ids are their places."""
        le, re, re_new = (rows.column(name).to_numpy() for name in _TIMES)
        is_retraction = rows.column("kind").to_numpy() == RETRACT
        payloads = decode_table(rows.column("p").combine_chunks(), self._payload.type, self._payload.schema)
        old, new = np.where(is_retraction, re, le), np.where(is_retraction, re_new, re)
        batch = Batch(np.arange(len(le)), le, old, new, payloads)
        if self._graph is None:
            return batch
        (out,) = self._graph.step({self._name: Piece(batch, MIN_TIME)}, {self._name: MIN_TIME})
        return out.batch
