"""The loop of a job: what sources give is pushed into a session, and its output goes to sinks, micro-batch by micro-batch."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from streamdsl.connect.bad_records import halves, is_of_record, letter_table, record_of, text_of
from streamdsl.connect.commits import MicroBatches
from streamdsl.connect.outbox import Outbox
from streamdsl.connect.position_ledger import PositionLedger, Progressed
from streamdsl.connect.protocols import END, BadRecord, Batch, OpenSource, Sink, Source
from streamdsl.emit import Emit, EmitMode
from streamdsl.engine.outgoing import Outgoing
from streamdsl.engine.query_session import Session
from streamdsl.errors import CheckpointError, InputError, QueryError, StreamDslError, UserCodeError, without_hint
from streamdsl.io.binding import Bound
from streamdsl.io.locks import Lock
from streamdsl.io.readers import bind, read_records
from streamdsl.plan.node import Source as SourceNode
from streamdsl.temporal import INFINITY, Cti
from streamdsl.temporal.events import PhysicalEvent

if TYPE_CHECKING:
    from streamdsl.stream import Stream

_log = logging.getLogger("streamdsl.connect")
_PAUSE: Final = 0.2
"""Seconds for which sources are asked to wait at most, so that a signal is heeded soon."""
_OTHERS: Final = ("local", "metadata", "offsets", "arrivals")
"""What the checkpoints of other streams hold."""
WhyEnded: TypeAlias = Literal["ended", "caught up", "stopped"]
Watch: TypeAlias = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Served:
    """What a call of `serve` has done: rows in and out, bad records, the number of micro-batches, and why it ended.

    `end` is `ended` where every source has, `caught up` where nothing was there with `once`, `stopped` after a signal.
    """

    end: WhyEnded
    micro_batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    bad_records: int = 0


@dataclass(slots=True)
class _Pending:
    """What has come since the last micro-batch."""

    progressed: Progressed
    sent: list[Outgoing[Any]] = field(default_factory=list)
    letters: list[tuple[str, BadRecord]] = field(default_factory=list)
    rows: int = 0
    batches: int = 0
    begun: float | None = None

    @property
    def is_empty(self) -> bool:
        return self.begun is None and not any(map(len, self.sent))


@dataclass(frozen=True, slots=True)
class Settings:
    """How a job runs: when a micro-batch is full (`rows`, or so many `seconds` after its begin), and when the job ends."""

    emit: EmitMode | Emit
    rows: float
    seconds: float
    once: bool
    watch: Watch | None


class _RewindError(Exception):
    """A batch has made a function of the query fail: so many are read again, each as a micro-batch of its own."""

    def __init__(self, batches: int) -> None:
        self.batches = batches


class Runner:
    """A job: a session between sources and sinks, whose checkpoint says how far each of them is."""

    def __init__(
        self,
        query: Stream[Any],
        nodes: Mapping[str, SourceNode],
        sources: Mapping[str, Source],
        sinks: Sequence[Sink],
        dead_letters: Sequence[Sink],
        settings: Settings,
        stop: threading.Event,
    ) -> None:
        self._query, self._nodes, self._sources, self._settings = query, nodes, sources, settings
        self._sinks, self._dead_letters, self._stop = sinks, dead_letters, stop
        self._readers: dict[str, OpenSource] = {}
        self._ended: dict[str, OpenSource] = {}
        self._session: Session[Any] | None = None
        self._alone = 0
        self._done = Served("stopped")

    def run(self, checkpoint: Path) -> Served:
        """Run the job until it ends, with its checkpoint in a folder."""
        if any((checkpoint / name).exists() for name in _OTHERS):
            raise QueryError(
                f"the checkpoint {checkpoint} is that of a job of the command line",
                hint="go on with streamdsl run, or name another one",
            )
        checkpoint.mkdir(parents=True, exist_ok=True)
        with ExitStack() as held:
            for sink in (*self._sinks, *self._dead_letters):
                held.callback(getattr(sink, "close", _nothing))
            lock = held.enter_context(Lock(checkpoint / "lock", f"the checkpoint {checkpoint}", CheckpointError))
            self._begin(checkpoint, lock)
            held.callback(self._close)
            self._open()
            end = self._loop()
            return replace(self._done, end=end)

    def _begin(self, checkpoint: Path, lock: Lock) -> None:
        folder = checkpoint / "served"
        self._where = checkpoint
        self._ledger = PositionLedger(folder / "positions")
        self._letterbox = Outbox(folder / "letters", self._dead_letters)
        self._batches = MicroBatches(folder, self._ledger, Outbox(folder / "output", self._sinks), lock)
        self._batches.resume()
        if self._ledger.last.letter_batches:
            self._letterbox.resume(self._ledger.last.letter_batches - 1, self._batches.stream)

    def _open(self) -> None:
        """Open each source that has not ended where the last micro-batch has left it."""
        self._pending = _Pending(self._ledger.last)
        for name, source in self._sources.items():
            if name not in self._pending.progressed.ended:
                self._readers[name] = source.open(self._pending.progressed.positions.get(name))

    def _close(self) -> None:
        for readers in (self._readers, self._ended):
            while readers:
                readers.popitem()[1].close()

    def _loop(self) -> WhyEnded:
        wait = 0.0
        while self._readers and not self._stop.is_set():
            try:
                came = self._round(wait)
            except _RewindError as rewind:
                self._close()
                self._session, self._alone = None, rewind.batches
                self._open()
                continue
            if not came and self._settings.once:
                break
            wait = 0.0 if came else min(_PAUSE, self._seconds_left())
        self._commit()
        return "stopped" if self._stop.is_set() else "caught up" if self._readers else "ended"

    def _round(self, wait: float) -> bool:
        """Ask each source once, for so many seconds together, and say whether anything came."""
        came = False
        for name, reader in list(self._readers.items()):
            polled = reader.poll(wait / len(self._readers))
            if polled is END:
                self._end(name)
            elif isinstance(polled, Batch):
                self._take(name, polled)
            elif polled is not None:
                raise QueryError(f"the source {name!r} gave a {type(polled).__name__}", hint="poll returns a Batch, None or END")
            came = came or polled is not None
            if self._is_due():
                self._commit()
            if self._stop.is_set():
                break
        if self._session is not None and self._session._clocks and not came:
            self._feed(next(iter(self._nodes)), [])
        return came

    def _is_due(self) -> bool:
        is_full = self._pending.rows >= self._settings.rows or self._seconds_left() <= 0
        return is_full or (self._alone > 0 and not self._pending.is_empty)

    def _seconds_left(self) -> float:
        begun = self._pending.begun
        return self._settings.seconds if begun is None else max(0.0, begun + self._settings.seconds - time.monotonic())

    # What comes in.

    def _take(self, name: str, batch: Batch) -> None:
        pending, is_alone = self._pending, self._pending.is_empty
        pending.begun, pending.batches = pending.begun or time.monotonic(), pending.batches + 1
        for bad in batch.bad:
            self._refuse(name, bad)
        places = batch.places or _Numbered(pending.progressed.positions.get(name))
        try:
            if len(batch.data):
                self._feed_or_refuse(name, batch.data, places)
        except UserCodeError as error:
            # Only where results come at once is it the record's: else it may be one of any row before.
            if not self._dead_letters or self._settings.emit != "speculative":
                raise
            if not is_alone:
                raise _RewindError(pending.batches) from error
            pending.letters[len(batch.bad) :] = []
            self._try(name, self._sifted(name, batch.data, places, []))
        pending.rows += len(batch.data) + len(batch.bad)
        pending.progressed = pending.progressed.at(name, batch.position)

    def _end(self, name: str) -> None:
        """Let a source end for ever: nothing holds back the others' results any more."""
        self._pending.begun = self._pending.begun or time.monotonic()
        self._feed(name, [Cti(INFINITY)])
        self._ended[name] = self._readers.pop(name)
        self._pending.progressed = replace(self._pending.progressed, ended=(*self._pending.progressed.ended, name))

    def _feed(self, name: str, data: Any) -> None:
        if isinstance(data, list) and (not data or isinstance(data[0], PhysicalEvent)):
            self._pending.sent.append(self._opened(name, None).feed(data, name))
            return
        node = self._nodes[name]
        if isinstance(data, list) and isinstance(data[0], Mapping):
            data = read_records(data, node.payload, node.time_unit)
        bound = bind(data, node)
        self._pending.sent.append(self._opened(name, bound).feed(bound.whole(), name))

    def _opened(self, name: str, bound: Bound | None) -> Session[Any]:
        """Return the session; it is opened when the first rows come, which tell the unit of time."""
        progressed = self._pending.progressed
        if bound is not None and bound.unit is not None and name not in progressed.units:
            self._pending.progressed = progressed = replace(progressed, units={**progressed.units, name: bound.unit})
        if self._session is None:
            units = {each: Bound(unit, None, lambda: iter(())) for each, unit in progressed.units.items()}
            self._session = self._batches.session(self._query, units, self._settings.emit, self._where)
        return self._session

    def _feed_or_refuse(self, name: str, data: Any, places: Sequence[str] | _Numbered) -> None:
        """Push a batch; of one that is refused, push all but the records for which it is."""
        try:
            self._feed(name, data)
        except StreamDslError as error:
            failed = self._session is not None and self._session._failure is not None
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
        self._session, self._pending.sent = None, []
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
        if not self._dead_letters:
            raise InputError(
                f"a record of the source {name!r} cannot be taken, {bad.where}: {bad.reason}; it is {text_of(bad.record):.200}",
                hint="mend it, or serve(..., dead_letters=sink) keeps such records there and goes on",
            ) from cause
        self._pending.letters.append((name, bad))

    # What goes out.

    def _commit(self) -> None:
        """Make what has come a micro-batch, if anything has."""
        pending, begun = self._pending, time.perf_counter()
        if pending.is_empty:
            return
        self._batches.check()
        session = self._opened("", None)
        sent = Outgoing.joined(pending.sent, session)
        table, data = sent.to_arrow(), session.snapshot(trust=True)
        letters, number = self._letters(), pending.progressed.letter_batches
        if letters is not None:
            self._letterbox.check(number, self._batches.stream)
            self._letterbox.store(number, letters)
            counted = pending.progressed.letters + letters.num_rows
            pending.progressed = replace(pending.progressed, letters=counted, letter_batches=number + 1)
        batch = self._batches.commit(table, data, lambda batch: self._ledger.take(batch, pending.progressed))
        self._batches.deliver(batch, table)
        if letters is not None:
            self._letterbox.deliver(number, letters, self._batches.stream)
        self._ledger.forget()
        self._alone = max(0, self._alone - 1)
        self._pending = _Pending(pending.progressed)
        self._tell_sources()
        self._report(pending, sent, batch, len(data), time.perf_counter() - begun)

    def _letters(self) -> Any:
        return letter_table(self._pending.letters, self._pending.progressed.letters) if self._pending.letters else None

    def _tell_sources(self) -> None:
        for name, reader in (*self._readers.items(), *self._ended.items()):
            try:
                reader.committed(self._pending.progressed.positions.get(name))
            except Exception:
                _log.warning("the source %r failed to learn what is committed", name, exc_info=True)

    def _report(self, pending: _Pending, sent: Outgoing[Any], batch: int, size: int, seconds: float) -> None:
        rows_out, bad = len(sent.changes()), len(pending.letters)
        done = self._done
        self._done = Served(
            done.end, done.micro_batches + 1, done.rows_in + pending.rows, done.rows_out + rows_out, done.bad_records + bad
        )
        figures = {"batch": batch, "rows_in": pending.rows, "rows_out": rows_out, "rows_rejected": bad}
        _log.debug("micro-batch %d: %d rows in, %d out", batch, pending.rows, rows_out)
        if self._settings.watch is not None:
            session = self._opened("", None)
            self._settings.watch({**figures, "cti": session._egress.cti, "state_bytes": size, "seconds": seconds})


@dataclass(frozen=True, slots=True)
class _Numbered:
    """The places of the records of a batch whose source tells none."""

    position: Any
    first: int = 0

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return _Numbered(self.position, self.first + (place.start or 0))
        return f"record {self.first + place} after position {self.position!r}"


def _nothing() -> None:
    """Do nothing."""
