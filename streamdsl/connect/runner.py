"""The loop of a job: what sources give is pushed into a session, and its output goes to sinks, micro-batch by micro-batch."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from streamdsl.connect.commits import MicroBatches
from streamdsl.connect.feeding import Feeder, RewindError, Uncommitted
from streamdsl.connect.measuring import seconds_of_sinks, with_partitions
from streamdsl.connect.outbox import Outbox
from streamdsl.connect.position_ledger import PositionLedger
from streamdsl.connect.protocols import END, Batch, OpenSource, Sink, Source
from streamdsl.connect.side_outputs import SideOutput, late_row, letter_row
from streamdsl.emit import Emit, EmitMode
from streamdsl.engine.outgoing import Outgoing
from streamdsl.errors import CheckpointError, QueryError
from streamdsl.io.locks import Lock
from streamdsl.monitoring import Endpoint, Live, SourceStatus, Status
from streamdsl.monitoring.job_figures import MicroBatch
from streamdsl.monitoring.logs import JobLog, log_of
from streamdsl.monitoring.monitor import Monitor
from streamdsl.plan.node import Source as SourceNode
from streamdsl.redaction import hide_secrets

if TYPE_CHECKING:
    from streamdsl.stream import Stream

_PAUSE: Final = 0.2
"""Seconds for which sources are asked to wait at most, so that a signal is heeded soon."""
_OTHERS: Final = ("local", "metadata", "offsets", "arrivals")
"""What the checkpoints of other streams hold."""
WhyEnded: TypeAlias = Literal["ended", "caught up", "stopped"]
Watch: TypeAlias = Callable[[Mapping[str, Any]], None] | Live
Metrics: TypeAlias = str | Endpoint | Sequence[str | Endpoint]


@dataclass(frozen=True, slots=True)
class Served:
    """What a call of `serve` has done: micro-batches, rows in and out, bad records, late events, and why it ended.

    Bad records have gone to `dead_letters`, late events are those that a source has dropped or adjusted; rows in are with both.
    `end` is `ended` where every source has, `caught up` where nothing was there with `once`, `stopped` after a signal.
    """

    end: WhyEnded
    micro_batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    bad_records: int = 0
    late_events: int = 0


@dataclass(frozen=True, slots=True)
class Settings:
    """How a job runs: when a micro-batch is full (`rows`, or so many `seconds` after its begin), and when the job ends."""

    rows: float
    seconds: float
    once: bool
    watch: Watch | None
    metrics: Metrics = ()
    name: str = ""
    """What logs and metrics call the job: its checkpoint, as it is given."""
    workers: int | None = None


class Runner:
    """A job: a session between sources and sinks, whose checkpoint says how far each of them is."""

    def __init__(
        self,
        query: Stream[Any],
        nodes: Mapping[str, SourceNode],
        sources: Mapping[str, Source],
        sinks: Sequence[tuple[EmitMode | Emit, Sequence[Sink]]],
        sides: Mapping[str, Sequence[Sink]],
        settings: Settings,
        stop: threading.Event,
    ) -> None:
        self._query, self._nodes, self._sources, self._settings = query, nodes, sources, settings
        self._sinks, self._sides, self._stop = sinks, sides, stop
        self._readers: dict[str, OpenSource] = {}
        self._ended: dict[str, OpenSource] = {}
        self._alone = 0
        self._done = Served("stopped")
        self._log = JobLog(log_of("streamdsl.connect"), {"job": settings.name})
        self._monitor: Monitor | None = None

    def run(self, checkpoint: Path) -> Served:
        """Run the job until it ends, with its checkpoint in a folder; what it raises says no secrets."""
        try:
            return self._run(checkpoint)
        except Exception as error:
            failed = hide_secrets(error)
            self._log.error("the job failed: %s", failed, extra={"error": type(error).__name__})
            if failed is error:
                raise
        raise failed

    def _run(self, checkpoint: Path) -> Served:
        if any((checkpoint / name).exists() for name in _OTHERS):
            raise QueryError(
                f"the checkpoint {checkpoint} is that of a job of the command line",
                hint="go on with streamdsl run, or name another one",
            )
        checkpoint.mkdir(parents=True, exist_ok=True)
        with ExitStack() as held:
            watch = self._settings.watch
            view = watch if isinstance(watch, Live) else None
            if self._settings.metrics or view is not None:
                self._monitor = held.enter_context(closing(Monitor(self._settings.metrics, self._settings.name, view)))
            for sink in chain(*(sinks for _, sinks in self._sinks), *self._sides.values()):
                held.callback(getattr(sink, "close", _nothing))
            lock = held.enter_context(Lock(checkpoint / "lock", f"the checkpoint {checkpoint}", CheckpointError))
            self._begin(checkpoint, lock)
            held.callback(self._feeder.leave)
            held.callback(self._close)
            self._open()
            self._log.extra = {"job": self._settings.name, "stream": self._batches.stream}
            begun = {"sources": sorted(self._readers), "micro_batch": self._batches.last}
            self._log.info("the job begins after micro-batch %d", self._batches.last, extra=begun)
            end = self._loop()
            self._done = replace(self._done, end=end)
            self._log.info("the job has ended: %s", self._done.end, extra=asdict(self._done))
            return self._done

    def _begin(self, checkpoint: Path, lock: Lock) -> None:
        folder = checkpoint / "served"
        self._ledger = PositionLedger(folder / "positions")
        self._outputs = {kind: SideOutput(kind, folder / kind, sinks) for kind, sinks in self._sides.items()}
        self._outboxes = [Outbox(folder / f"output{n or ''}", sinks) for n, (_, sinks) in enumerate(self._sinks)]
        self._batches = MicroBatches(folder, self._ledger, self._outboxes, lock)
        emits = [emit for emit, _ in self._sinks]
        self._feeder = Feeder(self._query, self._nodes, emits, self._sides, self._batches, checkpoint, self._settings.workers)
        self._batches.resume()
        for each in self._outputs.values():
            each.resume(self._ledger.last, self._batches.stream)

    def _open(self) -> None:
        """Open each source that has not ended where the last micro-batch has left it."""
        last = self._ledger.last
        self._feeder.rewind(last)
        for name, source in self._sources.items():
            if name not in last.ended:
                self._readers[name] = source.open(last.positions.get(name))

    def _close(self) -> None:
        for readers in (self._readers, self._ended):
            while readers:
                readers.popitem()[1].close()

    def _loop(self) -> WhyEnded:
        wait = 0.0
        while self._readers and not self._stop.is_set():
            if self._monitor is not None:
                begun = self._feeder.pending.begun
                due = None if begun is None else begun + self._settings.seconds
                self._monitor.turn("running", due, self._sources_now)
            try:
                came = self._round(wait)
            except RewindError as rewind:
                self._log.warning(
                    "the query fails for a record: batches are read again one by one", extra={"batches": rewind.batches}
                )
                self._close()
                self._alone = rewind.batches
                self._open()
                continue
            if not came and self._settings.once:
                break
            wait = 0.0 if came else min(_PAUSE, self._seconds_left())
        if self._stop.is_set():
            self._log.info("the job is told to stop, and commits what has come")
            if self._monitor is not None:
                self._monitor.turn("draining", None, self._sources_now)
        self._commit()
        return "stopped" if self._stop.is_set() else "caught up" if self._readers else "ended"

    def _round(self, wait: float) -> bool:
        """Ask each source once, for so many seconds together, and say whether anything came."""
        came = False
        for name, reader in list(self._readers.items()):
            polled = reader.poll(wait / len(self._readers))
            if polled is END:
                self._feeder.end(name)
                self._ended[name] = self._readers.pop(name)
            elif isinstance(polled, Batch):
                begun = time.perf_counter()
                self._feeder.take(name, polled)
                self._feeder.pending.engine_seconds += time.perf_counter() - begun
            elif polled is not None:
                raise QueryError(f"the source {name!r} gave a {type(polled).__name__}", hint="poll returns a Batch, None or END")
            came = came or polled is not None
            if self._is_due():
                self._commit()
            if self._stop.is_set():
                break
        if not came:
            self._feeder.tick()
        return came

    def _is_due(self) -> bool:
        pending = self._feeder.pending
        is_full = pending.rows >= self._settings.rows or self._seconds_left() <= 0
        return is_full or (self._alone > 0 and not pending.is_empty)

    def _seconds_left(self) -> float:
        begun = self._feeder.pending.begun
        return self._settings.seconds if begun is None else max(0.0, begun + self._settings.seconds - time.monotonic())

    def _commit(self) -> None:
        """Make what has come a micro-batch, if anything has."""
        if not self._feeder.pending.is_empty:
            with nullcontext() if self._monitor is None else self._monitor.micro_batch(self._batches.last + 1):
                self._commit_pending()

    def _commit_pending(self) -> None:
        pending, begun = self._feeder.pending, time.perf_counter()
        self._batches.check()
        session = self._feeder.opened()
        sent = Outgoing.joined(pending.sent, session)
        tables = [sent.to_arrow(), *(other.fetch().to_arrow() for other in session.subscriptions)]
        data = session.snapshot(trust=True)
        letters = [letter_row(*letter) for letter in pending.letters]
        late = [late_row(source, rejected, session.unit) for source, rejected in pending.late]
        for kind, rows in (("letters", letters), ("late", late)):
            if kind in self._outputs:
                pending.progressed = self._outputs[kind].store(rows, pending.progressed, self._batches.stream)
        batch = self._batches.commit(tables, data, lambda batch: self._ledger.take(batch, pending.progressed))
        durable = time.perf_counter()
        self._batches.deliver(batch, tables)
        for each in self._outputs.values():
            each.deliver(self._batches.stream)
        self._ledger.forget()
        self._alone = max(0, self._alone - 1)
        n_late = self._feeder.begin(pending.progressed)
        self._tell_sources()
        self._report(pending, n_late, sent, batch, len(data), (durable - begun, time.perf_counter() - begun))

    def _tell_sources(self) -> None:
        for name, reader in (*self._readers.items(), *self._ended.items()):
            try:
                reader.committed(self._ledger.last.positions.get(name))
            except Exception:
                self._log.warning("the source %r failed to learn what is committed", name, exc_info=True, extra={"source": name})

    def _report(
        self, pending: Uncommitted, n_late: int, sent: Outgoing[Any], batch: int, size: int, times: tuple[float, float]
    ) -> None:
        """Tell of a micro-batch, of so many bytes of state; `times` are until it is durable, and until the sinks have it."""
        rows_out, bad, (durable, seconds) = len(sent.changes()), len(pending.letters), times
        done = self._done
        self._done = replace(
            done,
            micro_batches=done.micro_batches + 1,
            rows_in=done.rows_in + pending.rows,
            rows_out=done.rows_out + rows_out,
            bad_records=done.bad_records + bad,
            late_events=done.late_events + n_late,
        )
        figures = {"batch": batch, "rows_in": pending.rows, "rows_out": rows_out, "rows_rejected": bad}
        said = {"micro_batch": batch, "rows_in": pending.rows, "rows_out": rows_out, "bad_records": bad}
        taken = {"checkpoint_bytes": size, "seconds": round(seconds, 6)}
        self._log.debug("micro-batch %d: %d rows in, %d out", batch, pending.rows, rows_out, extra={**said, **taken})
        if bad:
            source, first = pending.letters[0]
            why = (bad, first.where, first.reason[:200])
            self._log.warning("%d records were refused; the first, %s: %s", *why, extra={**said, "source": source})
        watch, session = self._settings.watch, self._feeder.opened()
        if isinstance(watch, Live):
            session.keep_newest()
        elif watch is not None:
            measured = {"cti": session._egress.cti, "unit": session.unit, "state_bytes": size, "seconds": seconds}
            watch({**figures, **measured})
        if self._monitor is not None:
            since = seconds if pending.begun is None else time.monotonic() - pending.begun
            told = MicroBatch(
                number=batch,
                rows_in=pending.rows,
                rows_out=rows_out,
                bad_records=Counter(source for source, _ in pending.letters),
                seconds=since,
                commit_seconds=seconds,
                checkpoint_seconds=durable,
                checkpoint_bytes=size,
                engine_seconds=pending.engine_seconds,
                sink_seconds=seconds_of_sinks(self._outboxes),
                positions=self._ledger.last.positions,
            )
            self._monitor.add(told, self._status)

    def _status(self, sizes: bool = False) -> Status:
        status = self._feeder.opened().status(sizes=sizes)
        return replace(status, sources=with_partitions(status.sources, self._readers, status.unit))

    def _sources_now(self) -> Sequence[SourceStatus]:
        session = self._feeder.session
        return () if session is None else self._status().sources


def _nothing() -> None:
    """Do nothing."""
