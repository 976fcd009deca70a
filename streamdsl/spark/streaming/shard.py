"""What a shard does with its rows: it runs the plan of its stage on the local engine."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from streamdsl.emit import Emit, EmitMode
from streamdsl.engine.outgoing import Outgoing
from streamdsl.engine.session import Session
from streamdsl.engine.starting import open_session
from streamdsl.engine.state.checkpoint import Checkpoint
from streamdsl.errors import CheckpointError, EventError
from streamdsl.expr.table import Table
from streamdsl.io.binding import Inserts
from streamdsl.io.frames import PhysicalRows
from streamdsl.plan.node import Node
from streamdsl.spark.codec import arrow_type, decode_table, encode_table
from streamdsl.spark.row_stage import Payload
from streamdsl.spark.streaming.hearing import Hearing
from streamdsl.spark.streaming.wire import CTI, INSERT, REJECTED, RETRACT, Parcel, packed, unpacked
from streamdsl.spark.types import Type
from streamdsl.spark.values import edge_value
from streamdsl.temporal import Cti, Insert, Rejected, Retract, sync_time

_COLUMNS: Final = ["kind", "id", "le", "re", "re_new"]
_HEAD: Final = 8
"""Bytes of the length of what a shard keeps besides its session."""


@dataclass(frozen=True, slots=True)
class Input:
    """A source of a stage's plan: how its rows are read, how many shards send them, after how many rows its progress moves."""

    payload: Payload
    origins: int = 0
    step: int = 1


@dataclass(frozen=True, slots=True)
class ShardStage:
    """A plan that runs in shards: its sources, the type of its results, that in which they are sent, and rows that it brings."""

    plan: Node
    inputs: Mapping[str, Input]
    out: Type
    sent_as: Type
    emit: EmitMode | Emit
    shards: int = 1
    own: Mapping[int, Sequence[Parcel]] = field(default_factory=dict)

    def open(self, state: bytes | None, shard: int = 0) -> Shard:
        """Return a running shard, as it was when its state was saved; None: a new one.

        Raises `CheckpointError` for the state of another query, or of one that emits otherwise.
        """
        session = open_session(self.plan, {}, self.emit)
        if state is None:
            return Shard(self, session, self.own.get(shard, ()))
        size = int.from_bytes(state[:_HEAD], "little")
        # It is that of the job's own checkpoint, which nobody but the job writes.
        Checkpoint(state[_HEAD + size :]).lay_over(session, trust=True)
        return Shard(self, session, heard=json.loads(state[_HEAD : _HEAD + size]))


class Shard:
    """A running query over a part of the rows, and how far its sources have come."""

    def __init__(
        self, stage: ShardStage, session: Session[Any], own: Sequence[Parcel] = (), heard: Mapping[str, Any] | None = None
    ) -> None:
        self._stage = stage
        self._session = session
        session.keep_all_rejected()
        self._own = list(own)
        self._heard = {name: Hearing(each.origins, each.step) for name, each in stage.inputs.items()}
        for name, saved in (heard or {}).items():
            if name not in self._heard:
                raise CheckpointError(f"the state of the stream has a source {name!r}, which this query has not")
            self._heard[name].restore(saved)

    def snapshot(self) -> bytes:
        """Return the state as bytes."""
        heard = json.dumps({name: each.saved() for name, each in self._heard.items()}, sort_keys=True).encode()
        return b"".join([len(heard).to_bytes(_HEAD, "little"), heard, self._session.snapshot(trust=True)])

    def take(self, parcels: Iterable[Parcel]) -> Iterator[bytes]:
        """Take what has come, first rows, then CTIs, and yield what that sends."""
        blobs: dict[str, list[bytes]] = defaultdict(list)
        for parcel in (*self._own, *parcels):
            if not parcel.source:
                yield from self._passed(parcel)
                continue
            if parcel.blob is not None:
                blobs[parcel.source].append(parcel.blob)
            self._heard[parcel.source].take(parcel)
        self._own = []
        ctis = {source: heard.cti() for source, heard in sorted(self._heard.items())}
        for source in sorted(blobs):
            # In an order of their own, so that a micro-batch that comes again numbers its rows as before.
            yield from self._fed(unpacked(sorted(blobs[source])), source, ctis[source])
        for source, cti in ctis.items():
            if cti > self._session.ctis[source]:
                yield from self._sent(self._session.feed([Cti(cti)], source))
        if rejected := list(self._session.rejected(forget=True)):
            yield packed(self._rows(_rejected(rejected)))

    def _passed(self, parcel: Parcel) -> Iterator[bytes]:
        """Yield rows that are not for this query, in the form of what it sends."""
        if parcel.blob is not None:
            yield packed(self._rows(unpacked([parcel.blob])))

    def _rows(self, rows: Any) -> Any:
        """Return rows without payloads in the form of those that are sent."""
        payloads = pa.nulls(rows.num_rows, arrow_type(self._stage.sent_as))
        return pa.table({**{name: rows.column(name) for name in _COLUMNS}, "p": payloads})

    def _fed(self, rows: Any, source: str, cti: int) -> Iterator[bytes]:
        """Feed the session rows, and yield what that sends; after all of them comes the CTI."""
        payload = self._stage.inputs[source].payload
        table = decode_table(rows.column("p").combine_chunks(), payload.type, payload.schema)
        ids = None if rows.column("id").null_count == rows.num_rows else rows.column("id").to_pylist()
        kinds, le, re, re_new = (rows.column(name).to_numpy() for name in ("kind", "le", "re", "re_new"))
        inserts = Inserts(ids, le, re, table)
        if ids is None:
            yield from self._sent(self._session.feed(inserts, source))
            return
        events = in_sequence(_events(kinds, ids, le, re, re_new, table)) if (kinds == RETRACT).any() else None
        try:
            yield from self._sent(self._session.feed(inserts if events is None else events, source))
        except EventError:
            yield from self._in_turns(sorted(events or inserts.events(), key=sync_time), source, cti)

    def _in_turns(self, events: Sequence[Insert[Any] | Retract], source: str, cti: int) -> Iterator[bytes]:
        """Feed the session events in order of sync time, as many at once as can be, with CTIs between them.

        An id is used again once a CTI has passed its event; which of a micro-batch's CTIs came between the two nobody knows, but
        not one after the later event's LE.
        """
        yield from self._sent(self._session.feed([Cti(min(sync_time(events[0]), cti))], source))
        try:
            yield from self._sent(self._session.feed(list(events), source))
        except EventError:
            if len(events) < 2:
                raise
            for part in (events[: len(events) // 2], events[len(events) // 2 :]):
                yield from self._in_turns(part, source, cti)

    def _sent(self, out: Outgoing[Any]) -> Iterator[bytes]:
        if len(out):
            yield packed(self._table(out.rows(), out.changes().table))

    def _table(self, rows: PhysicalRows, payloads: Table) -> Any:
        kinds = np.array([INSERT, RETRACT, CTI], dtype=np.int8)[rows.kind_codes()]
        times = {name: pa.array(each) for name, each in rows.times().items()}
        return pa.table({"kind": kinds, "id": rows.over_all(rows.ids), **times, "p": rows.over_all(self._encoded(payloads))})

    def _encoded(self, payloads: Table) -> Any:
        kind = self._stage.sent_as
        if kind == self._stage.out:
            return encode_table(payloads, kind)
        return pa.array([edge_value(payload, kind) for payload in payloads.payloads()], arrow_type(kind))


def _rejected(rejected: Sequence[Rejected]) -> Any:
    """Return events that were dropped or adjusted as rows: where a retraction has its new end, they have the CTI they broke."""
    kinds = pa.array([REJECTED] * len(rejected), pa.int8())
    ids = pa.array([str(each.event.id) for each in rejected], pa.string())
    le, re = (pa.array([getattr(each.event, name) for each in rejected], pa.int64()) for name in ("le", "re"))
    return pa.table([kinds, ids, le, re, pa.array([each.cti for each in rejected], pa.int64())], names=_COLUMNS)


def _events(kinds: Any, ids: Sequence[Hashable], le: Any, re: Any, re_new: Any, table: Table) -> Iterator[Insert[Any] | Retract]:
    columns = (kinds.tolist(), ids, le.tolist(), re.tolist(), re_new.tolist(), table.payloads())
    for kind, id, start, end, new, payload in zip(*columns, strict=True):
        yield Insert(id, start, end, payload) if kind == INSERT else Retract(id, start, end, new, payload)


def in_sequence(events: Iterable[Insert[Any] | Retract]) -> list[Insert[Any] | Retract]:
    """Return events that have come in no order in one in which they can come: insertions, then for each row one retraction.

    >>> in_sequence([Retract("a", 1, 5, 3), Retract("a", 1, 9, 5), Insert("a", 1, 9, "x")])[1:]
    [Retract(id='a', le=1, re=9, re_new=3, payload=...)]
    """
    inserted: list[Insert[Any] | Retract] = []
    retracted: dict[tuple[Hashable, int], list[Retract]] = defaultdict(list)
    for event in events:
        if isinstance(event, Insert):
            inserted.append(event)
        else:
            retracted[event.id, event.le].append(event)
    return [*inserted, *(each for chain in retracted.values() for each in _together(chain))]


def _together(retractions: list[Retract]) -> list[Retract]:
    """Return the retractions of a row as one, from the first end to the last; as they are if they are no chain."""
    ends = Counter(each.re for each in retractions)
    ends.subtract(Counter(each.re_new for each in retractions))
    left = [(end, n) for end, n in ends.items() if n]
    if not left:
        return []
    if sorted(n for _, n in left) != [-1, 1]:
        return retractions
    (first,), (last,) = ([end for end, n in left if n == sign] for sign in (1, -1))
    return [replace(retractions[0], re=first, re_new=last)]
