"""A job that is a stream, on the local engine: a micro-batch is a file, which counts once whatever happens in between."""

from __future__ import annotations

import re
import time
import uuid
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from streamdsl import running
from streamdsl.engine.outgoing import Outgoing
from streamdsl.engine.session import Session
from streamdsl.engine.starting import restored
from streamdsl.engine.state.files import read_whole, write_whole
from streamdsl.errors import CheckpointError, InputError, QueryError, StreamDslError
from streamdsl.io.binding import Bound
from streamdsl.io.locks import Lock
from streamdsl.jobs.bad_files import blame, blamed, passing, without_hint
from streamdsl.jobs.inputs import File
from streamdsl.jobs.job import Job
from streamdsl.jobs.ledger import Ledger
from streamdsl.jobs.progress import Line
from streamdsl.plan.parameters import settled
from streamdsl.sinks import ParquetEvents, ParquetTable

_SPARK: Final = ("metadata", "offsets", "arrivals")
_ANEW: Final = "restore the checkpoint as a whole, or begin a new one, and a new output"


class LocalStream:
    """A session that takes files in order, each once; the job can be killed and run again at any moment.

    What comes of a file, and the session's state after it, are written before the ledger says that the file is taken, and go to
    the sink afterwards. So until then nothing has happened, and from then on the file is not needed any more.
    """

    def __init__(self, job: Job, lock: Lock) -> None:
        assert job.checkpoint is not None
        if any((job.checkpoint / name).exists() for name in _SPARK):
            raise QueryError(
                f"the checkpoint {job.checkpoint} is that of a stream on Spark",
                hint="go on with --engine spark, or name another one",
            )
        self._job = job
        self._lock = lock
        self._folder = job.checkpoint / "local"
        for name in ("state", "output"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        self._ledger = Ledger(self._folder)
        self._stream = self._identity()
        self._sink = ParquetEvents(job.output) if job.format == "events" else ParquetTable(job.output, job.every)
        self._check_states()
        self._session: Session[Any] | None = None
        self._cti: int | None = None

    def run(self, line: Line) -> None:
        """Take files until there are no more, or for ever, as the trigger says; `line` shows each micro-batch's figures."""
        self._resume(line)
        while True:
            for file in self._ledger.new([file for given in self._job.inputs.values() for file in given.files()]):
                with passing(self._job, file, self._ledger, line):
                    line(self._take(file))
            if self._job.pause is None:
                return
            time.sleep(self._job.pause / 1000)

    def _identity(self) -> str:
        path, taken = self._folder / "stream", len(self._ledger.taken)
        if not path.exists() and not taken:
            write_whole(path, uuid.uuid4().hex.encode())
        found = path.read_text() if path.exists() else ""
        if not re.fullmatch("[0-9a-f]{32}", found):
            raise CheckpointError(f"{path} does not say which stream the checkpoint is of", hint=_ANEW)
        return found

    def _check_states(self) -> None:
        """Raise unless there is the state after the last micro-batch; one that has neither state nor output has not been."""
        states, last = set(map(int, self._names("state"))), len(self._ledger.taken) - 1
        if last >= 0 and last not in states:
            if (last and last - 1 not in states) or self._sink.has(last, self._stream):
                raise CheckpointError(
                    f"the checkpoint has no state of micro-batch {last}, which was begun",
                    hint=f"go on with the version of streamdsl that has begun it, if that was an earlier one; else {_ANEW}",
                )
            self._ledger.give_back()
        if max(states, default=-1) > last + 1:
            raise CheckpointError(
                f"the checkpoint has states up to micro-batch {max(states)}, and {last + 1} files taken", hint=_ANEW
            )

    def _names(self, folder: str) -> list[str]:
        return [path.name for path in (self._folder / folder).iterdir() if path.name.isdigit()]

    def _resume(self, line: Line) -> None:
        """Give the sink what the last micro-batch has left, if the job was stopped before that was done."""
        last = len(self._ledger.taken) - 1
        if last < 0 or self._sink.has(last, self._stream):
            return
        path = self._folder / "output" / str(last)
        try:
            table = pa.ipc.open_file(path.read_bytes()).read_all()
        except (FileNotFoundError, pa.ArrowException) as error:
            raise CheckpointError(f"the output of micro-batch {last} is lost: {error}", hint=_ANEW) from None
        with suppress(InputError):  # then its file is new again
            self._write(table, last, "its file")

    def _take(self, file: File) -> dict[str, Any]:
        begun, batch = time.perf_counter(), len(self._ledger.taken)
        if self._sink.has(batch, self._stream):
            raise CheckpointError(
                f"{self._job.output} has taken micro-batch {batch}, of which the checkpoint knows nothing",
                hint="the checkpoint is older than the output: restore both as of one time, or begin both anew",
            )
        with blamed(file, Exception), file.unchanged():
            bound = self._job.inputs[file.source].read([file])
            rows = bound.whole()
        with blamed(file, pa.ArrowException):
            session = self._opened(batch, {file.source: bound})
            self._session = None  # until the micro-batch is taken as a whole
            out = session.feed(rows, file.source)
            table = out.to_arrow()
        data = session.snapshot(trust=True)
        write_whole(self._folder / "output" / str(batch), _file_of(table))
        write_whole(self._folder / "state" / str(batch), data)
        self._lock.check()
        self._ledger.take(batch, file)
        self._write(table, batch, f"the file {file.path}")
        self._session = session
        figures = {"batch": batch, "rows_in": len(rows), "rows_out": len(out.changes()), "cti": self._reached(out)}
        return {**figures, "state_bytes": len(data), "seconds": time.perf_counter() - begun}

    def _write(self, table: Any, batch: int, what: str) -> None:
        """Give the sink a micro-batch that was decided; raises `InputError`, and undoes that, if its rows do not fit."""
        try:
            self._sink.write(table, batch, self._stream)
        except (StreamDslError, pa.ArrowException) as error:
            if isinstance(error.__cause__, OSError) or self._sink.has(batch, self._stream):
                raise
            self._ledger.give_back()
            raise blame(what, error) from error
        (self._folder / "output" / str(batch)).unlink(missing_ok=True)
        for name in self._names("state"):
            if int(name) < batch:
                (self._folder / "state" / name).unlink()

    def _reached(self, out: Outgoing[Any]) -> int | None:
        ctis = out.rows().ctis
        self._cti = int(ctis[-1]) if len(ctis) else self._cti
        return self._cti

    def _opened(self, batch: int, bound: dict[str, Bound]) -> Session[Any]:
        """Return the session as it was after the micro-batch before; inputs tell the unit of time."""
        if self._session is not None:
            return self._session
        query, own = self._job.query, {**self._job.query._bindings, **bound}
        if not batch:
            return running.open_session(query._node, own, self._job.emit, {})
        # It is that of the job's own checkpoint, which nobody but the job writes.
        try:
            session = restored(settled(query._node), own, read_whole(self._folder / "state" / str(batch - 1)), trust=True)
        except CheckpointError as error:
            raise CheckpointError(
                f"the checkpoint {self._job.checkpoint} cannot be gone on with: {without_hint(error)}",
                hint="run the query as it was, or begin a new checkpoint and a new output",
            ) from error
        if session.emit != self._job.emit:
            raise CheckpointError(f"the checkpoint is of a job with --emit {session.emit}, not {self._job.emit}")
        return session


def _file_of(table: Any) -> bytes:
    """Return an Arrow table as a file's bytes."""
    out = pa.BufferOutputStream()
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    return bytes(out.getvalue())
