"""A shard: a session of the local engine that runs the plan of a stage over the rows of its partition."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from streamdsl.emit import Emit, EmitMode
from streamdsl.engine.outgoing import Outgoing
from streamdsl.engine.query_session import Session
from streamdsl.engine.starting import open_session
from streamdsl.engine.state.checkpoint import Checkpoint
from streamdsl.errors import CheckpointError, EventError
from streamdsl.expr.table import Table
from streamdsl.io.binding import Inserts
from streamdsl.io.data_frames import PhysicalRows
from streamdsl.plan.node import Node
from streamdsl.spark.codec import arrow_type, decode_table, encode_table
from streamdsl.spark.column_types import ColumnType
from streamdsl.spark.public_values import public_value
from streamdsl.spark.row_stage import PayloadColumn
from streamdsl.spark.streaming.input_progress import InputProgress
from streamdsl.spark.streaming.wire import CTI, INSERT, REJECTED, RETRACT, Message, from_ipc, to_ipc
from streamdsl.temporal import INFINITY, MIN_TIME, Cti, Insert, Rejected, Retract, sync_time

_COLUMNS: Final = ["kind", "id", "le", "re", "re_new"]
_LENGTH_BYTES: Final = 8
"""How many bytes hold the length of the inputs' progress, which comes before the session's state."""


@dataclass(frozen=True, slots=True)
class ShardInput:
    """A source of a stage's plan: its payloads, how many shards send it rows, and after how many rows its CTI moves.

    If it `is_bounded`, all its rows are among the first messages of a shard.
    """

    payload: PayloadColumn
    origins: int = 0
    step: int = 1
    is_bounded: bool = False

    def progress(self) -> InputProgress:
        """Return the progress before any message."""
        return InputProgress(self.origins, self.step, INFINITY if self.is_bounded else MIN_TIME)


@dataclass(frozen=True, slots=True)
class ShardStage:
    """A plan that runs in shards. `out` is the type of its payloads, `sent_as` the type in which they are sent."""

    plan: Node
    inputs: Mapping[str, ShardInput]
    out: ColumnType
    sent_as: ColumnType
    emit: EmitMode | Emit
    shards: int = 1

    def open(self, state: bytes | None) -> Shard:
        """Return a shard with a saved state, or a new one for None.

        Raises `CheckpointError` for the state of another query, or of another emit policy.
        """
        session = open_session(self.plan, {}, self.emit)
        if state is None:
            return Shard(self, session)
        size = int.from_bytes(state[:_LENGTH_BYTES], "little")
        # The state is from the job's own checkpoint, which nobody else writes: so pickles in it are trusted.
        Checkpoint(state[_LENGTH_BYTES + size :]).lay_over(session, trust=True)
        return Shard(self, session, json.loads(state[_LENGTH_BYTES : _LENGTH_BYTES + size]))


class Shard:
    """A session over one partition of the rows, and the progress of each of its inputs."""

    def __init__(self, stage: ShardStage, session: Session[Any], progress: Mapping[str, Any] | None = None) -> None:
        self._stage = stage
        self._session = session
        session.keep_all_rejected()
        # The progress as it was saved with the session, as long as that has taken nothing since.
        self._saved = b""
        self._progress = {name: each.progress() for name, each in stage.inputs.items()}
        for name, saved in (progress or {}).items():
            if name not in self._progress:
                raise CheckpointError(f"the state of the stream has a source {name!r}, which this query has not")
            self._progress[name].restore(saved)
        if progress is not None:
            self._saved = self._progress_bytes()

    @property
    def is_changed(self) -> bool:
        """Whether the state may be another one than when it was last saved."""
        return self._saved != self._progress_bytes()

    def cti(self, source: str) -> int | None:
        """Return the CTI of a source of the stage's plan, None before the first."""
        cti = self._session.ctis[source]
        return None if cti == MIN_TIME else cti

    def _progress_bytes(self) -> bytes:
        return json.dumps({name: each.to_json() for name, each in self._progress.items()}, sort_keys=True).encode()

    def snapshot(self) -> bytes:
        """Return the state as bytes."""
        progress = self._saved = self._progress_bytes()
        return b"".join([len(progress).to_bytes(_LENGTH_BYTES, "little"), progress, self._session.snapshot(trust=True)])

    def take(self, messages: Iterable[Message]) -> Iterator[bytes]:
        """Run a step over the messages of a micro-batch, all rows before all CTIs, and yield the output.

        The first step of a shard has the rows of its bounded inputs too.
        """
        blobs: dict[str, list[bytes]] = defaultdict(list)
        for message in messages:
            if not message.source:
                yield from self._passed_through(message)
                continue
            if message.blob is not None:
                blobs[message.source].append(message.blob)
            self._progress[message.source].receive(message)
        ctis = {source: progress.cti() for source, progress in sorted(self._progress.items())}
        for source in sorted(blobs):
            # Sorted, as Spark delivers messages in any order: a repeated micro-batch must give its rows the same ids as before.
            rows = from_ipc(sorted(blobs[source]))
            yield from self._feed(_sorted(rows) if self._stage.inputs[source].is_bounded else rows, source, ctis[source])
        for source, cti in ctis.items():
            if cti > self._session.ctis[source]:
                yield from self._output(self._session.feed([Cti(cti)], source))
        if rejected := list(self._session.rejected(forget=True)):
            yield to_ipc(self._rows(_rejected(rejected)))

    def _passed_through(self, message: Message) -> Iterator[bytes]:
        """Yield rows that pass the shard unchanged, such as rejected rows of an earlier stage."""
        if message.blob is not None:
            yield to_ipc(self._rows(from_ipc([message.blob])))

    def _rows(self, rows: Any) -> Any:
        """Return rows with null payloads in the columns of the output."""
        payloads = pa.nulls(rows.num_rows, arrow_type(self._stage.sent_as))
        return pa.table({**{name: rows.column(name) for name in _COLUMNS}, "p": payloads})

    def _feed(self, rows: Any, source: str, cti: int) -> Iterator[bytes]:
        """Feed the session a source's rows, and yield the output; `cti` is the CTI that follows them."""
        payload = self._stage.inputs[source].payload
        table = decode_table(rows.column("p").combine_chunks(), payload.type, payload.schema)
        if "kind" not in rows.column_names:
            le, *ends = (rows.column(name).to_numpy() for name in ("le", "re") if name in rows.column_names)
            yield from self._output(self._session.feed(Inserts(None, le, ends[0] if ends else None, table), source))
            return
        kinds, le, re, re_new = (rows.column(name).to_numpy() for name in ("kind", "le", "re", "re_new"))
        ids = rows.column("id").to_pylist()
        inserts = Inserts(ids, le, re, table)
        events = in_valid_order(_events(kinds, ids, le, re, re_new, table)) if (kinds == RETRACT).any() else None
        try:
            yield from self._output(self._session.feed(inserts if events is None else events, source))
        except EventError:
            yield from self._feed_in_parts(sorted(events or inserts.events(), key=sync_time), source, cti)

    def _feed_in_parts(self, events: Sequence[Insert[Any] | Retract], source: str, cti: int) -> Iterator[bytes]:
        """Feed events in order of sync time, with CTIs between them, in as large parts as the session accepts.

        A micro-batch may hold two uses of an id, and has lost the CTI that came between them. Any CTI up to the later event's LE
        is legal, so one is made. Halving finds the parts: O(log n) attempts per reused id.
        """
        yield from self._output(self._session.feed([Cti(min(sync_time(events[0]), cti))], source))
        try:
            yield from self._output(self._session.feed(list(events), source))
        except EventError:
            if len(events) < 2:
                raise
            for part in (events[: len(events) // 2], events[len(events) // 2 :]):
                yield from self._feed_in_parts(part, source, cti)

    def _output(self, out: Outgoing[Any]) -> Iterator[bytes]:
        """Yield what the session has sent, whose state is then another one."""
        self._saved = b""
        if len(out):
            yield to_ipc(self._table(out.rows(), out.changes().table))

    def _table(self, rows: PhysicalRows, payloads: Table) -> Any:
        kinds = np.array([INSERT, RETRACT, CTI], dtype=np.int8)[rows.kind_codes()]
        times = {name: pa.array(each) for name, each in rows.times().items()}
        return pa.table({"kind": kinds, "id": rows.over_all(rows.ids), **times, "p": rows.over_all(self._encoded(payloads))})

    def _encoded(self, payloads: Table) -> Any:
        kind = self._stage.sent_as
        if kind == self._stage.out:
            return encode_table(payloads, kind)
        return pa.array([public_value(payload, kind) for payload in payloads.payloads()], arrow_type(kind))


def _sorted(rows: Any) -> Any:
    """Return rows in an order that only their values decide: a frame that Spark computes again may have another order."""
    values = list(map(repr, rows.to_pylist()))
    return rows.take(sorted(range(len(values)), key=values.__getitem__))


def _rejected(rejected: Sequence[Rejected]) -> Any:
    """Return rejected events as rows; the column `re_new` holds the CTI that each violated."""
    kinds = pa.array([REJECTED] * len(rejected), pa.int8())
    ids = pa.array([str(each.event.id) for each in rejected], pa.string())
    le, re = (pa.array([getattr(each.event, name) for each in rejected], pa.int64()) for name in ("le", "re"))
    return pa.table([kinds, ids, le, re, pa.array([each.cti for each in rejected], pa.int64())], names=_COLUMNS)


def _events(kinds: Any, ids: Sequence[Hashable], le: Any, re: Any, re_new: Any, table: Table) -> Iterator[Insert[Any] | Retract]:
    columns = (kinds.tolist(), ids, le.tolist(), re.tolist(), re_new.tolist(), table.payloads())
    for kind, id, start, end, new, payload in zip(*columns, strict=True):
        yield Insert(id, start, end, payload) if kind == INSERT else Retract(id, start, end, new, payload)


def in_valid_order(events: Iterable[Insert[Any] | Retract]) -> list[Insert[Any] | Retract]:
    """Return unordered events in a valid order: all insertions, then one retraction for each row.

    >>> in_valid_order([Retract("a", 1, 5, 3), Retract("a", 1, 9, 5), Insert("a", 1, 9, "x")])[1:]
    [Retract(id='a', le=1, re=9, re_new=3, payload=...)]
    """
    inserted: list[Insert[Any] | Retract] = []
    retracted: dict[tuple[Hashable, int], list[Retract]] = defaultdict(list)
    for event in events:
        if isinstance(event, Insert):
            inserted.append(event)
        else:
            retracted[event.id, event.le].append(event)
    return [*inserted, *(each for chain in retracted.values() for each in _merged(chain))]


def _merged(retractions: list[Retract]) -> list[Retract]:
    """Return a chain of retractions of one row as a single one, from the first RE to the last; unchanged if it is no chain."""
    ends = Counter(each.re for each in retractions)
    ends.subtract(Counter(each.re_new for each in retractions))
    left = [(end, n) for end, n in ends.items() if n]
    if not left:
        return []
    if sorted(n for _, n in left) != [-1, 1]:
        return retractions
    (first,), (last,) = ([end for end, n in left if n == sign] for sign in (1, -1))
    return [replace(retractions[0], re=first, re_new=last)]
