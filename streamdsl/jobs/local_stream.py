"""Streaming jobs on the local engine: each file is a micro-batch, which is processed exactly once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import pyarrow as pa

from streamdsl.connect.commits import MicroBatches
from streamdsl.connect.outbox import Outbox
from streamdsl.engine.outgoing import Outgoing
from streamdsl.engine.query_session import Session
from streamdsl.errors import CheckpointError, InputError, QueryError, StreamDslError
from streamdsl.io.locks import Lock
from streamdsl.jobs.bad_files import as_input_errors, input_error, skipping_bad_files
from streamdsl.jobs.input_files import InputFile
from streamdsl.jobs.job import Job
from streamdsl.jobs.ledger import Ledger
from streamdsl.jobs.status_line import StatusLine
from streamdsl.sinks import ParquetEvents, ParquetTable

_SPARK: Final = ("metadata", "offsets", "arrivals")


class LocalStream:
    """A session that processes files in order, each exactly once; the job can be killed and restarted at any moment.

    A file is a micro-batch (`MicroBatches`), and the ledger's record of the file is the commit.
    """

    def __init__(self, job: Job, lock: Lock) -> None:
        assert job.checkpoint is not None
        if any((job.checkpoint / name).exists() for name in _SPARK):
            raise QueryError(
                f"the checkpoint {job.checkpoint} is that of a stream on Spark",
                hint="go on with --engine spark, or name another one",
            )
        folder = job.checkpoint / "local"
        self._job = job
        self._ledger = Ledger(folder)
        self._sink = ParquetEvents(job.output) if job.format == "events" else ParquetTable(job.output, job.every)
        self._batches = MicroBatches(folder, self._ledger, [Outbox(folder / "output", [self._sink])], lock)
        self._session: Session[Any] | None = None
        self._cti: int | None = None

    def run(self, line: StatusLine) -> None:
        """Process files until none is left, or for ever, by the trigger; `line` shows the metrics of each micro-batch."""
        with suppress(InputError), self._undoing(self._batches.last, "its file"):  # its file is then processed again
            self._batches.resume()
        while True:
            for file in self._ledger.unprocessed([file for given in self._job.inputs.values() for file in given.files()]):
                with skipping_bad_files(self._job, file, self._ledger, line):
                    line(self._take(file))
            if self._job.pause is None:
                return
            time.sleep(self._job.pause / 1000)

    def _take(self, file: InputFile) -> dict[str, Any]:
        begun = time.perf_counter()
        self._batches.check()
        with as_input_errors(file, Exception), file.unchanged():
            bound = self._job.inputs[file.source].read([file])
            rows = bound.whole()
        with as_input_errors(file, pa.ArrowException):
            session = self._session or self._batches.session(
                self._job.query, {file.source: bound}, [self._job.emit], self._job.checkpoint
            )
            self._session = None  # until the micro-batch is committed
            out = session.feed(rows, file.source)
            table = out.to_arrow()
        data = session.snapshot(trust=True)
        batch = self._batches.commit([table], data, lambda number: self._ledger.take(number, file))
        with self._undoing(batch, f"the file {file.path}"):
            self._batches.deliver(batch, [table])
        self._session = session
        figures = {"batch": batch, "rows_in": len(rows), "rows_out": len(out.changes()), "cti": self._output_cti(out)}
        return {**figures, "unit": session.unit, "state_bytes": len(data), "seconds": time.perf_counter() - begun}

    @contextmanager
    def _undoing(self, batch: int, what: str) -> Iterator[None]:
        """Undo the commit of a micro-batch, and raise `InputError`, if its rows do not fit the table."""
        try:
            yield
        except CheckpointError:
            raise
        except (StreamDslError, pa.ArrowException) as error:
            if isinstance(error.__cause__, OSError) or self._sink.has(batch, self._batches.stream):
                raise
            self._ledger.undo_take()
            raise input_error(what, error) from error

    def _output_cti(self, out: Outgoing[Any]) -> int | None:
        ctis = out.rows().ctis
        self._cti = int(ctis[-1]) if len(ctis) else self._cti
        return self._cti
