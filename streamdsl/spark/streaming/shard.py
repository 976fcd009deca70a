"""What a shard does with its rows: it runs the plan on the local engine."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from streamdsl.emit import Emit, EmitMode
from streamdsl.engine.outgoing import Outgoing
from streamdsl.engine.session import Session
from streamdsl.engine.starting import open_session
from streamdsl.engine.state.checkpoint import Checkpoint
from streamdsl.expr.table import Table
from streamdsl.io.binding import Inserts
from streamdsl.io.frames import PhysicalRows
from streamdsl.plan.node import Node
from streamdsl.spark.codec import arrow_type, decode_table, encode_table
from streamdsl.spark.row_stage import Payload
from streamdsl.spark.streaming.wire import CTI, INSERT, RETRACT, packed, unpacked
from streamdsl.spark.types import Type
from streamdsl.spark.values import edge_of, edge_value
from streamdsl.temporal import MIN_TIME, Cti, Event, Insert, Retract


@dataclass(frozen=True, slots=True)
class Parcel:
    """What has come for a shard: rows of a source, or how far it has come."""

    source: str
    cti: int | None
    blob: bytes | None


@dataclass(frozen=True, slots=True)
class ShardStage:
    """A plan that runs in shards: how the rows of its sources are read, and of which type its results are."""

    plan: Node
    inputs: Mapping[str, Payload]
    out: Type
    emit: EmitMode | Emit
    shards: int = 1

    def open(self, state: bytes | None) -> Session[Any]:
        """Return the running query of a shard, as it was when its state was saved; None: a new one.

        Raises `CheckpointError` for the state of another query, or of one that emits otherwise.
        """
        session = open_session(self.plan, {}, self.emit, {"attach": "off"})
        if state is not None:
            # It is that of the job's own checkpoint, which nobody but the job writes.
            Checkpoint(state).lay_over(session, trust=True)
        return session

    def take(self, session: Session[Any], parcels: Sequence[Parcel]) -> Iterator[bytes]:
        """Feed what has come to a running query, first rows, then CTIs, and yield what it sends."""
        blobs: dict[str, list[bytes]] = defaultdict(list)
        ctis: dict[str, int] = {}
        for parcel in parcels:
            if parcel.blob is not None:
                blobs[parcel.source].append(parcel.blob)
            if parcel.cti is not None:
                ctis[parcel.source] = max(parcel.cti, ctis.get(parcel.source, MIN_TIME))
        for source in sorted(blobs):
            yield from self._sent(session.feed(self._read(unpacked(blobs[source]), self.inputs[source]), source))
        for source, cti in sorted(ctis.items()):
            if cti > session.ctis[source]:
                yield from self._sent(session.feed([Cti(cti)], source))

    def _read(self, rows: Any, payload: Payload) -> Inserts | list[Event[Any]]:
        table = decode_table(rows.column("p").combine_chunks(), payload.type, payload.schema)
        ids = None if rows.column("id").null_count == rows.num_rows else rows.column("id").to_pylist()
        kinds, le, re, re_new = (rows.column(name).to_numpy() for name in ("kind", "le", "re", "re_new"))
        if not (kinds == RETRACT).any():
            return Inserts(ids, le, re, table)
        return in_sequence(list(_events(kinds, ids or [None] * len(le), le, re, re_new, table)))

    def _sent(self, out: Outgoing[Any]) -> Iterator[bytes]:
        if len(out):
            yield packed(self._table(out.rows(), out.changes().table))

    def _table(self, rows: PhysicalRows, payloads: Table) -> Any:
        place, is_cti = rows.places
        spread = pa.array(place, mask=is_cti)
        kinds = np.where(is_cti, CTI, np.where(np.append(rows.is_retraction, False)[place], RETRACT, INSERT)).astype(np.int8)
        times = {name: pa.array(each) for name, each in rows.times().items()}
        return pa.table({"kind": kinds, "id": rows.ids.take(spread), **times, "p": self._encoded(payloads).take(spread)})

    def _encoded(self, payloads: Table) -> Any:
        edge = edge_of(self.out)
        if edge == self.out:
            return encode_table(payloads, edge)
        return pa.array([edge_value(payload, edge) for payload in payloads.payloads()], arrow_type(edge))


def _events(kinds: Any, ids: Sequence[Hashable], le: Any, re: Any, re_new: Any, table: Table) -> Iterator[Insert[Any] | Retract]:
    columns = (kinds.tolist(), ids, le.tolist(), re.tolist(), re_new.tolist(), table.payloads())
    for kind, id, start, end, new, payload in zip(*columns, strict=True):
        yield Insert(id, start, end, payload) if kind == INSERT else Retract(id, start, end, new, payload)


def in_sequence(events: Iterable[Insert[Any] | Retract]) -> list[Event[Any]]:
    """Return events that have come in no order in one in which they can come: insertions, then for each id one retraction.

    >>> in_sequence([Retract("a", 1, 5, 3), Retract("a", 1, 9, 5), Insert("a", 1, 9, "x")])[1:]
    [Retract(id='a', le=1, re=9, re_new=3, payload=...)]
    """
    inserted: list[Event[Any]] = []
    retracted: dict[Hashable, list[Retract]] = defaultdict(list)
    for event in events:
        if isinstance(event, Insert):
            inserted.append(event)
        else:
            retracted[event.id].append(event)
    return [*inserted, *(each for chain in retracted.values() for each in _together(chain))]


def _together(retractions: list[Retract]) -> list[Retract]:
    """Return the retractions of an id as one, from the first end to the last; as they are if they are no chain."""
    ends = Counter(each.re for each in retractions)
    ends.subtract(Counter(each.re_new for each in retractions))
    left = [(end, n) for end, n in ends.items() if n]
    if not left:
        return []
    if sorted(n for _, n in left) != [-1, 1] or len({each.le for each in retractions}) > 1:
        return retractions
    (first,), (last,) = ([end for end, n in left if n == sign] for sign in (1, -1))
    return [replace(retractions[0], re=first, re_new=last)]
