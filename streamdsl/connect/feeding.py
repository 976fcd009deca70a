"""What comes from sources is pushed into a session: rows of all forms, bad records, and functions of the query that fail."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from streamdsl.connect.bad_records import halves, is_of_record, record_of, text_of
from streamdsl.connect.commits import MicroBatches
from streamdsl.connect.position_ledger import Progressed
from streamdsl.connect.protocols import BadRecord, Batch
from streamdsl.emit import Emit, EmitMode
from streamdsl.engine.outgoing import Outgoing
from streamdsl.engine.query_session import Session
from streamdsl.errors import InputError, StreamDslError, UserCodeError, without_hint
from streamdsl.io.binding import Bound
from streamdsl.io.readers import bind, read_records
from streamdsl.plan.node import Source as SourceNode
from streamdsl.temporal import INFINITY, Cti, Rejected
from streamdsl.temporal.events import PhysicalEvent

if TYPE_CHECKING:
    from streamdsl.stream import Stream


@dataclass(slots=True)
class Uncommitted:
    """What has come since the last micro-batch, and how far the sources are with it."""

    progressed: Progressed
    sent: list[Outgoing[Any]] = field(default_factory=list)
    letters: list[tuple[str, BadRecord]] = field(default_factory=list)
    late: list[tuple[str, Rejected]] = field(default_factory=list)
    rows: int = 0
    batches: int = 0
    begun: float | None = None
    engine_seconds: float = 0.0

    @property
    def is_empty(self) -> bool:
        """Whether nothing has come."""
        return self.begun is None and not self.sent


class RewindError(Exception):
    """A batch has made a function of the query fail: so many are read again, each as a micro-batch of its own."""

    def __init__(self, batches: int) -> None:
        self.batches = batches


class Feeder:
    """A session, which is opened when it is needed, and what is pending of it."""

    def __init__(
        self,
        query: Stream[Any],
        nodes: Mapping[str, SourceNode],
        emits: Sequence[EmitMode | Emit],
        keeps: Collection[str],
        batches: MicroBatches,
        where: object,
        workers: int | None = None,
    ) -> None:
        self._query, self._nodes, self._emits, self._workers = query, nodes, emits, workers
        self._keeps_letters, self._keeps_late = "letters" in keeps, "late" in keeps
        self._batches, self._where, self._fed = batches, where, ""
        self.session: Session[Any] | None = None
        self.pending = Uncommitted(Progressed())
        self._late_before = 0

    def begin(self, progressed: Progressed) -> int:
        """Forget what is pending, and go on from a micro-batch; return how many late events there were in it."""
        self.pending, before = Uncommitted(progressed), self._late_before
        self._late_before = before if self.session is None else _n_late(self.session)
        return self._late_before - before

    def rewind(self, progressed: Progressed) -> None:
        """Forget what has come since a micro-batch, the session too."""
        self.leave()
        self.begin(progressed)

    def leave(self) -> None:
        """Let the session go, with its workers."""
        if self.session is not None:
            self.session.release()
        self.session = None

    def opened(self) -> Session[Any]:
        """Return the session."""
        return self._session_for("", None)

    def tick(self) -> None:
        """Let clocks that sources go by advance the session."""
        if self.session is not None and self.session._clocks:
            self._feed(next(iter(self._nodes)), [])
            if self.pending.sent:
                self.pending.begun = self.pending.begun or time.monotonic()

    def take(self, name: str, batch: Batch) -> None:
        """Push a batch of a source. Raises `InputError` for a bad record where no dead letters are kept."""
        pending, is_alone = self.pending, self.pending.is_empty
        pending.begun, pending.batches = pending.begun or time.monotonic(), pending.batches + 1
        for bad in batch.bad:
            self._refuse(name, bad)
        places = batch.places or _Numbered(pending.progressed.positions.get(name))
        try:
            if len(batch.data):
                self._feed_or_refuse(name, batch.data, places)
        except UserCodeError as error:
            # Only where results come at once is it the record's: else it may be one of any row before.
            if not self._keeps_letters or self._emits[0] != "speculative":
                raise
            if not is_alone:
                raise RewindError(pending.batches) from error
            pending.letters[len(batch.bad) :] = []
            self._try(name, self._sifted(name, batch.data, places, []))
        pending.rows += len(batch.data) + len(batch.bad)
        pending.progressed = pending.progressed.at(name, batch.position)

    def end(self, name: str) -> None:
        """Let a source end for ever: nothing holds back the others' results any more."""
        self.pending.begun = self.pending.begun or time.monotonic()
        self._feed(name, [Cti(INFINITY)])
        self.pending.progressed = replace(self.pending.progressed, ended=(*self.pending.progressed.ended, name))

    def _feed(self, name: str, data: Any) -> None:
        self._fed = name
        if isinstance(data, list) and (not data or isinstance(data[0], PhysicalEvent)):
            self._keep(self._session_for(name, None).feed(data, name))
            return
        node = self._nodes[name]
        if isinstance(data, list) and isinstance(data[0], Mapping):
            data = read_records(data, node.payload, node.time_unit, node.lifetime_columns)
        bound = bind(data, node)
        self._keep(self._session_for(name, bound).feed(bound.whole(), name))

    def _keep(self, out: Outgoing[Any]) -> None:
        if len(out):
            self.pending.sent.append(out)

    def _session_for(self, name: str, bound: Bound | None) -> Session[Any]:
        """Return the session; it is opened when the first rows come, which tell the unit of time."""
        progressed = self.pending.progressed
        if bound is not None and bound.unit is not None and name not in progressed.units:
            self.pending.progressed = progressed = replace(progressed, units={**progressed.units, name: bound.unit})
        if self.session is None:
            units = {each: Bound(unit, None, lambda: iter(())) for each, unit in progressed.units.items()}
            self.session = self._batches.session(self._query, units, self._emits, self._where, self._workers)
            self._late_before = _n_late(self.session)
            if self._keeps_late:
                self.session.on_late(self._keep_late)
        return self.session

    def _keep_late(self, late: Sequence[Rejected]) -> None:
        self.pending.late += [(self._fed, each) for each in late]

    def _feed_or_refuse(self, name: str, data: Any, places: Sequence[str] | _Numbered) -> None:
        """Push a batch; of one that is refused, push all but the records for which it is."""
        try:
            self._feed(name, data)
        except StreamDslError as error:
            failed = self.session is not None and self.session._failure is not None
            if failed or not is_of_record(error):
                raise
            if len(data) == 1:
                self._refuse(name, BadRecord(record_of(data), without_hint(error), places[0]), error)
                return
            first, second = halves(data)
            self._feed_or_refuse(name, first, places[: len(first)])
            self._feed_or_refuse(name, second, places[len(first) :])

    def _sifted(self, name: str, data: Any, places: Sequence[str] | _Numbered, good: list[Any]) -> list[Any]:
        """Return the parts of a batch that the session takes after those in `good`, with these; the records between are bad."""
        error = self._try(name, [*good, data])
        if error is None:
            return [*good, data]
        if len(data) == 1:
            if isinstance(record := record_of(data), Cti):
                raise error
            self._refuse(name, BadRecord(record, without_hint(error), places[0]), error)
            return good
        first, second = halves(data)
        good = self._sifted(name, first, places[: len(first)], good)
        return self._sifted(name, second, places[len(first) :], good)

    def _try(self, name: str, parts: Sequence[Any]) -> StreamDslError | None:
        """Push parts of a batch into a session in the state after the last micro-batch; return what it raises."""
        self.leave()
        self.pending.sent, self.pending.late = [], []
        try:
            for part in parts:
                self._feed(name, part)
        except StreamDslError as error:
            if not (isinstance(error, UserCodeError) or is_of_record(error)):
                raise
            return error
        return None

    def _refuse(self, name: str, bad: BadRecord, cause: Exception | None = None) -> None:
        """Keep a bad record for the dead letters. Raises `InputError`, which names it, if there are none."""
        if not self._keeps_letters:
            raise InputError(
                f"a record of the source {name!r} cannot be taken, {bad.where}, {text_of(bad.record):.200}: {bad.reason}",
                hint="mend it, or serve(..., dead_letters=sink) keeps such records there and goes on",
            ) from cause
        self.pending.letters.append((name, bad))


def _n_late(session: Session[Any]) -> int:
    """Return how many events the sources of a session have dropped or adjusted."""
    return sum(len(each.rejected) for each in session._sources.values())


@dataclass(frozen=True, slots=True)
class _Numbered:
    """The places of the records of a batch whose source tells none."""

    position: Any
    first: int = 0

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return _Numbered(self.position, self.first + (place.start or 0))
        return f"record {self.first + place} after position {self.position!r}"
