"""Streaming jobs on the local engine: each file is a micro-batch, which is processed exactly once."""

from __future__ import annotations

import re
import time
import uuid
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from streamdsl import running
from streamdsl.engine.outgoing import Outgoing
from streamdsl.engine.query_session import Session
from streamdsl.engine.starting import restored
from streamdsl.engine.state.whole_files import read_whole, write_whole
from streamdsl.errors import CheckpointError, InputError, QueryError, StreamDslError
from streamdsl.io.binding import Bound
from streamdsl.io.locks import Lock
from streamdsl.jobs.bad_files import as_input_errors, input_error, skipping_bad_files, without_hint
from streamdsl.jobs.input_files import InputFile
from streamdsl.jobs.job import Job
from streamdsl.jobs.ledger import Ledger
from streamdsl.jobs.status_line import StatusLine
from streamdsl.plan.parameters import settled
from streamdsl.sinks import ParquetEvents, ParquetTable

_SPARK: Final = ("metadata", "offsets", "arrivals")
_ANEW: Final = "restore the checkpoint as a whole, or begin a new one, and a new output"


class LocalStream:
    """A session that processes files in order, each exactly once; the job can be killed and restarted at any moment.

    The output of a file and the session's state are stored first; then the ledger records the file, which is the commit; then the
    output goes to the idempotent sink. Before the commit nothing has happened, and after it the file is no longer needed.
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

    def run(self, line: StatusLine) -> None:
        """Process files until none is left, or for ever, by the trigger; `line` shows the metrics of each micro-batch."""
        self._resume(line)
        while True:
            for file in self._ledger.unprocessed([file for given in self._job.inputs.values() for file in given.files()]):
                with skipping_bad_files(self._job, file, self._ledger, line):
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
        """Raise `CheckpointError` unless the state after the last micro-batch exists.

        A micro-batch with neither state nor output was not committed, and its record is removed.
        """
        states, last = set(map(int, self._names("state"))), len(self._ledger.taken) - 1
        if last >= 0 and last not in states:
            if (last and last - 1 not in states) or self._sink.has(last, self._stream):
                raise CheckpointError(
                    f"the checkpoint has no state of micro-batch {last}, which has begun",
                    hint=f"go on with the version of streamdsl that has begun it, if that was an earlier one; else {_ANEW}",
                )
            self._ledger.undo_take()
        if max(states, default=-1) > last + 1:
            raise CheckpointError(
                f"the checkpoint has states up to micro-batch {max(states)}, and {last + 1} files taken", hint=_ANEW
            )

    def _names(self, folder: str) -> list[str]:
        return [path.name for path in (self._folder / folder).iterdir() if path.name.isdigit()]

    def _resume(self, line: StatusLine) -> None:
        """Write the output of the last micro-batch to the sink, if the job was stopped before it was written."""
        last = len(self._ledger.taken) - 1
        if last < 0 or self._sink.has(last, self._stream):
            return
        path = self._folder / "output" / str(last)
        try:
            table = pa.ipc.open_file(path.read_bytes()).read_all()
        except (FileNotFoundError, pa.ArrowException) as error:
            raise CheckpointError(f"the output of micro-batch {last} is lost: {error}", hint=_ANEW) from None
        with suppress(InputError):  # its record is removed, so its file is processed again
            self._write(table, last, "its file")

    def _take(self, file: InputFile) -> dict[str, Any]:
        begun, batch = time.perf_counter(), len(self._ledger.taken)
        if self._sink.has(batch, self._stream):
            raise CheckpointError(
                f"{self._job.output} has taken micro-batch {batch}, and the checkpoint has no record of it",
                hint="the checkpoint is older than the output: restore both as of one time, or begin both anew",
            )
        with as_input_errors(file, Exception), file.unchanged():
            bound = self._job.inputs[file.source].read([file])
            rows = bound.whole()
        with as_input_errors(file, pa.ArrowException):
            session = self._session_before(batch, {file.source: bound})
            self._session = None  # until the micro-batch is committed
            out = session.feed(rows, file.source)
            table = out.to_arrow()
        data = session.snapshot(trust=True)
        write_whole(self._folder / "output" / str(batch), _file_of(table))
        write_whole(self._folder / "state" / str(batch), data)
        self._lock.check()
        self._ledger.take(batch, file)
        self._write(table, batch, f"the file {file.path}")
        self._session = session
        figures = {"batch": batch, "rows_in": len(rows), "rows_out": len(out.changes()), "cti": self._output_cti(out)}
        return {**figures, "unit": session.unit, "state_bytes": len(data), "seconds": time.perf_counter() - begun}

    def _write(self, table: Any, batch: int, what: str) -> None:
        """Write a committed micro-batch to the sink; if its rows do not fit the table, undo the commit and raise `InputError`."""
        try:
            self._sink.write(table, batch, self._stream)
        except (StreamDslError, pa.ArrowException) as error:
            if isinstance(error.__cause__, OSError) or self._sink.has(batch, self._stream):
                raise
            self._ledger.undo_take()
            raise input_error(what, error) from error
        (self._folder / "output" / str(batch)).unlink(missing_ok=True)
        for name in self._names("state"):
            if int(name) < batch:
                (self._folder / "state" / name).unlink()

    def _output_cti(self, out: Outgoing[Any]) -> int | None:
        ctis = out.rows().ctis
        self._cti = int(ctis[-1]) if len(ctis) else self._cti
        return self._cti

    def _session_before(self, batch: int, bound: dict[str, Bound]) -> Session[Any]:
        """Return the session in the state after the previous micro-batch; the inputs determine the unit of time."""
        if self._session is not None:
            return self._session
        query, own = self._job.query, {**self._job.query._bindings, **bound}
        if not batch:
            return running.open_session(query._node, own, self._job.emit, {})
        # The state is from the job's own checkpoint, which nobody else writes: so pickles in it are trusted.
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
