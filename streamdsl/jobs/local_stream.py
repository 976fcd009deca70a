"""A job that is a stream, on the local engine: a micro-batch is a file; its output is written first, then the session's state."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from streamdsl import running
from streamdsl.engine.outgoing import Outgoing
from streamdsl.engine.session import Session
from streamdsl.engine.starting import restored
from streamdsl.engine.state.files import read_whole, write_whole
from streamdsl.errors import CheckpointError, QueryError
from streamdsl.io.binding import Bound
from streamdsl.jobs.job import Job
from streamdsl.plan.parameters import settled
from streamdsl.sinks import ParquetEvents, ParquetTable

_SPARK: Final = ("metadata", "offsets")


class LocalStream:
    """A session that takes files in order, each once; the job can be killed and run again at any moment.

    Before a file is taken, the checkpoint says as which micro-batch; the state after it is kept until that after the next is
    there. So a micro-batch that comes again is the same one, and starts from the same state.
    """

    def __init__(self, job: Job) -> None:
        assert job.checkpoint is not None
        if any((job.checkpoint / name).exists() for name in _SPARK):
            raise QueryError(
                f"the checkpoint {job.checkpoint} is that of a stream on Spark",
                hint="go on with --engine spark, or name another one",
            )
        self._job = job
        self._folder = job.checkpoint / "local"
        self._stream = self._identity()
        self._sink = ParquetEvents(job.output) if job.format == "events" else ParquetTable(job.output, job.every)
        self._session: Session[Any] | None = None
        self._cti: int | None = None

    def run(self, report: Callable[[dict[str, Any]], None]) -> None:
        """Take files until there are no more, or for ever, as the trigger says; `report` gets each micro-batch's figures."""
        while True:
            for batch, source, path in self._batches():
                report(self._take(batch, source, path))
            if self._job.pause is None:
                return
            time.sleep(self._job.pause / 1000)

    def _identity(self) -> str:
        for name in ("files", "state"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        path = self._folder / "stream"
        if not path.exists():
            write_whole(path, uuid.uuid4().hex.encode())
        return path.read_text()

    def _batches(self) -> Iterator[tuple[int, str, Path]]:
        """Yield the micro-batches that are left to take: one that was begun before the job was stopped, then new files."""
        begun = {
            int(path.name): json.loads(path.read_text()) for path in (self._folder / "files").iterdir() if path.name.isdigit()
        }
        next_batch = max(self._states(), default=-1) + 1
        if begun and next_batch not in (max(begun), max(begun) + 1):
            raise CheckpointError(
                f"the checkpoint has no state of micro-batch {max(begun) - 1}, and {max(begun)} was begun",
                hint="the state was lost: begin a new checkpoint, and a new output",
            )
        if next_batch in begun:
            yield next_batch, begun[next_batch]["source"], Path(begun[next_batch]["path"])
        taken = {(each["source"], each["path"]) for each in begun.values()}
        for batch, (source, path) in enumerate(self._new(taken), max(begun, default=-1) + 1):
            said = json.dumps({"source": source, "path": str(path)})
            write_whole(self._folder / "files" / str(batch), said.encode())
            yield batch, source, path

    def _new(self, taken: set[tuple[str, str]]) -> list[tuple[str, Path]]:
        """Return the files that no micro-batch has taken, in order of their times."""
        found = [(name, path) for name, given in self._job.inputs.items() for path in given.files()]
        left = [(name, path) for name, path in found if (name, str(path)) not in taken]
        return sorted(left, key=lambda each: (each[1].stat().st_mtime_ns, each[1].name))

    def _states(self) -> list[int]:
        return [int(path.name) for path in (self._folder / "state").iterdir() if path.name.isdigit()]

    def _take(self, batch: int, source: str, path: Path) -> dict[str, Any]:
        begun = time.perf_counter()
        bound = self._job.inputs[source].read([path])
        session = self._opened(batch, {source: bound})
        self._session = None
        rows = bound.whole()
        out = session.feed(rows, source)
        self._sink.write(out.to_arrow(), batch, self._stream)
        data = session.snapshot(trust=True)
        write_whole(self._folder / "state" / str(batch), data)
        (self._folder / "state" / str(batch - 2)).unlink(missing_ok=True)
        self._session = session
        figures = {"batch": batch, "rows_in": len(rows), "rows_out": len(out.changes()), "cti": self._reached(out)}
        return {**figures, "state_bytes": len(data), "seconds": time.perf_counter() - begun}

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
            return running.open_session(query._node, own, self._job.emit, {"attach": "off"})
        # It is that of the job's own checkpoint, which nobody but the job writes.
        session = restored(settled(query._node), own, read_whole(self._folder / "state" / str(batch - 1)), trust=True)
        if session.emit != self._job.emit:
            raise CheckpointError(f"the checkpoint is of a job with --emit {session.emit}, not {self._job.emit}")
        return session
