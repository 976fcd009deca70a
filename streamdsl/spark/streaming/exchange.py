"""The exchange of rows between stages: each row passes what is pushed down and goes to its shard; CTIs go to all shards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamdsl.engine.batch import Batch, PointBatch
from streamdsl.errors import EventError, SchemaError
from streamdsl.plan.node import Node
from streamdsl.sharding.partitioning import Partitioning, SinglePartition
from streamdsl.sharding.routing import Router
from streamdsl.spark.codec import decode_table, encode_table
from streamdsl.spark.column_types import ColumnType
from streamdsl.spark.row_stage import PayloadColumn
from streamdsl.spark.streaming.wire import CTI, INSERT, REJECTED, RETRACT, Message, messages_to_arrow, to_ipc, unpack_output
from streamdsl.temporal import CHRONON, INFINITY, MIN_TIME, Progress, Unit, add_time

_KINDS: Final = pa.array(["insert", "retract", "cti"])
"""The kinds of rows, each in the place of its number."""
_TIMES = ("le", "re", "re_new")


@dataclass(frozen=True, slots=True)
class SourceOrigin:
    """A streaming frame as the origin of rows: physical events, with CTIs among them or made by a progress policy."""

    name: str
    payload: PayloadColumn
    progress: Progress | None
    unit: Unit | None

    def reader(self) -> SourceReader:
        """Return a reader of the rows of one micro-batch."""
        return SourceReader(self)


@dataclass(frozen=True, slots=True)
class ShardsOrigin:
    """The shards of an earlier stage as the origin of rows."""

    name: str
    payload: PayloadColumn

    def reader(self) -> ShardsReader:
        """Return a reader of the rows of one micro-batch."""
        return ShardsReader(self)


class SourceReader:
    """Reads the rows of a source that one task has of a micro-batch, and keeps their largest CTI, largest LE and number."""

    def __init__(self, source: SourceOrigin) -> None:
        self._source = source
        self._cti = MIN_TIME
        self._latest: int | None = None
        self._count = 0
        self.passthrough: list[Any] = []

    def rows(self, batch: Any) -> Iterator[Any]:
        """Yield the insertions and retractions of a batch; one without kinds has insertions alone."""
        columns = {name: batch.column(name) for name in ("id", *_TIMES) if name in batch.schema.names}
        rows = pa.table({**columns, "p": batch.column(self._source.payload.column)})
        starts = rows.column("le")
        if "kind" in batch.schema.names:
            kinds = self._kinds(batch.column("kind"))
            self._take_ctis(starts.filter(pc.equal(kinds, CTI)))
            rows = rows.add_column(0, "kind", kinds).filter(pc.not_equal(kinds, CTI))
            starts = rows.column("le").filter(pc.equal(rows.column("kind"), INSERT))
        if not rows.num_rows:
            return
        self._check_starts(rows)
        if (latest := pc.max(starts).as_py()) is not None:
            self._latest = latest if self._latest is None else max(self._latest, latest)
            if "re" not in columns:
                add_time(latest, CHRONON)
        self._count += rows.num_rows
        yield rows

    def _kinds(self, kinds: Any) -> Any:
        """Return the numbers of kinds; raises `SchemaError` for one that is unknown."""
        numbers = pc.index_in(kinds, _KINDS).cast(pa.int8())
        for kind in pc.unique(kinds.filter(pc.is_null(numbers))).to_pylist():
            known = "insert, retract or cti"
            raise SchemaError(f"a row of the source {self._source.name!r} is refused: its kind is {kind!r}, not {known}")
        return numbers

    def _take_ctis(self, ctis: Any) -> None:
        cti = pc.max(pc.fill_null(ctis, INFINITY)).as_py()
        self._cti = self._cti if cti is None else max(self._cti, int(cti))

    def _check_starts(self, rows: Any) -> None:
        """Raise `EventError` for a row without an LE; shards check the rest."""
        if rows.column("le").null_count:
            (row,) = rows.filter(pc.is_null(rows.column("le"))).slice(0, 1).to_pylist()
            raise EventError(row, "its le is null", where=self._source.name, hint="only an end may be null: it means INFINITY")

    def progress_messages(self) -> Iterator[Message]:
        """Yield the largest CTI of the rows, and the CTI that the progress policy derives from their largest LE and number."""
        if self._cti > MIN_TIME:
            yield Message(-1, "", self._cti)
        policy, unit = self._source.progress, self._source.unit
        if policy is None or policy.kind == "imported":
            return
        if policy.kind == "wall":
            yield Message(-1, "", policy.time_of_day(unit))
            return
        generator = policy.generator(unit)
        if self._count and policy.kind == "count":
            largest = MIN_TIME if self._latest is None else add_time(self._latest, -generator.delay)
            yield Message(-1, "", largest, seen=self._count)
        elif self._latest is not None and (cti := generator.after(self._latest)) > MIN_TIME:
            yield Message(-1, "", cti)


class ShardsReader:
    """Reads the output of an earlier stage that one task has of a micro-batch, and keeps the largest CTI of each shard."""

    def __init__(self, shards: ShardsOrigin) -> None:
        self._ctis: dict[int, int] = {}
        self.passthrough: list[Any] = []

    def rows(self, batch: Any) -> Iterator[Any]:
        """Yield the insertions and retractions of a batch."""
        for part in unpack_output([batch]):
            is_cti = pc.equal(part.column("kind"), CTI)
            ctis = part.filter(is_cti)
            for shard, cti in zip(ctis.column("shard").to_pylist(), ctis.column("le").to_pylist(), strict=True):
                self._ctis[shard] = max(cti, self._ctis.get(shard, MIN_TIME))
            is_rejected = pc.equal(part.column("kind"), REJECTED)
            if pc.any(is_rejected).as_py():
                self.passthrough.append(pa.table(part.filter(is_rejected)).drop_columns(["shard"]))
            rows = pa.table(part.filter(pc.invert(pc.or_(is_cti, is_rejected)))).drop_columns(["shard"])
            if rows.num_rows:
                yield rows

    def progress_messages(self) -> Iterator[Message]:
        """Yield the largest CTI of each shard of the earlier stage."""
        return (Message(-1, "", cti, origin=shard) for shard, cti in self._ctis.items())


@dataclass(frozen=True, slots=True)
class Route:
    """One route of an exchange: the source of the stage that gets the rows, what is pushed down before, and the partitioning.

    `pushed_down` is a plan of row operators over one source; `out` is the type of the payloads that it gives.
    """

    name: str
    pushed_down: Node
    partitioning: Partitioning
    out: ColumnType
    shards: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CtiImport:
    """Another source of the stage that imports this origin's CTI, reduced by a delay."""

    name: str
    delay: int
    shards: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Clock:
    """A source of the stage that goes by the wall clock, also while it has no rows, so that no task reads it."""

    name: str
    policy: Progress
    unit: Unit | None
    shards: tuple[int, ...]

    def messages(self) -> Iterator[Message]:
        """Yield the CTI by the clock for each shard."""
        cti = self.policy.time_of_day(self.unit)
        return (Message(shard, self.name, cti) for shard in self.shards)


@dataclass(frozen=True, slots=True)
class ExchangeStage:
    """What a task runs to send an origin's rows to the shards of a stage: its routes, and the sources that import its CTI.

    Each exchange of a stage tells the shards of all its `clocks`.
    """

    origin: SourceOrigin | ShardsOrigin
    routes: tuple[Route, ...]
    imports: tuple[CtiImport, ...] = ()
    clocks: tuple[Clock, ...] = ()

    def run(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield messages: first the rows of each batch, last the CTIs, so that a CTI never overtakes the rows of its task."""
        reader, senders = self.origin.reader(), [_RouteSender(route, self.origin.payload) for route in self.routes]
        is_first = True
        for batch in batches:
            if is_first and batch.num_rows and self.routes:
                # The first shard exists whatever the number of shards, and its state holds the number that the stream began with.
                yield messages_to_arrow([Message(min(self.routes[0].shards), self.routes[0].name)])
                is_first = False
            for rows in reader.rows(batch):
                for sender in senders:
                    if messages := sender.sent(rows):
                        yield messages_to_arrow(messages)
        for rows in reader.passthrough:
            yield messages_to_arrow([Message(self.routes[0].shards[0], "", blob=to_ipc(rows))])
        progress = [message for reported in reader.progress_messages() for message in self._broadcast(reported)]
        if progress := [*progress, *(message for clock in self.clocks for message in clock.messages())]:
            yield messages_to_arrow(progress)

    def _broadcast(self, reported: Message) -> Iterator[Message]:
        """Yield an origin's CTI for every shard of every route, and for the sources that import it."""
        for route in self.routes:
            yield from (replace(reported, shard=shard, source=route.name) for shard in route.shards)
        for each in self.imports:
            cti = reported.cti if reported.cti in (None, MIN_TIME, INFINITY) else add_time(reported.cti, -each.delay)
            yield from (Message(shard, each.name, cti, seen=reported.seen) for shard in each.shards)


class _RouteSender:
    """Sends rows along one route; what is pushed down runs as a graph of the local engine, without state."""

    def __init__(self, route: Route, payload: PayloadColumn) -> None:
        self._route = route
        self._payload = payload
        self._router = Router(route.pushed_down, route.partitioning)
        self._as_it_is = self._router.graph is None and payload.type == route.out

    def sent(self, rows: Any) -> list[Message]:
        route = self._route
        if self._as_it_is and isinstance(route.partitioning, SinglePartition):
            return [Message(route.shards[0], route.name, blob=to_ipc(rows))]
        batch = self._router.passed(self._batch_of(rows))
        if not len(batch):
            return []
        ids = rows.column("id").take(pa.array(batch.ids)) if "id" in rows.column_names else pa.nulls(len(batch), pa.string())
        places = self._router.shard_indexes(batch, ids, len(route.shards))
        order = np.argsort(places.astype(np.min_scalar_type(len(route.shards))), kind="stable")  # 16 bits are sorted by radix
        stops = np.searchsorted(places[order], np.arange(len(route.shards) + 1)).tolist()
        sent = rows if self._as_it_is else rows.drop_columns(["p"])
        ordered = sent.take(pa.array(batch.ids[order]))
        if not self._as_it_is:
            ordered = ordered.append_column("p", encode_table(batch.table.take(order), route.out))
        parts = [(shard, ordered.slice(a, b - a)) for shard, a, b in zip(route.shards, stops, stops[1:], strict=False) if b > a]
        return [Message(shard, route.name, blob=to_ipc(part)) for shard, part in parts]

    def _batch_of(self, rows: Any) -> Batch:
        """Return rows as changes; their ids are their positions in `rows`."""
        payloads = decode_table(rows.column("p").combine_chunks(), self._payload.type, self._payload.schema)
        le, *ends = (rows.column(name).to_numpy() for name in _TIMES if name in rows.column_names)
        if not ends:
            return PointBatch(0, le, payloads)
        if "kind" not in rows.column_names:
            return Batch(np.arange(len(le)), le, le, ends[0], payloads)
        is_retraction = rows.column("kind").to_numpy() == RETRACT
        re, re_new = ends
        return Batch(np.arange(len(le)), le, np.where(is_retraction, re, le), np.where(is_retraction, re_new, re), payloads)
