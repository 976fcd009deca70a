"""A sink that writes the physical events of a stream to Parquet files, one per micro-batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from streamdsl.engine.state.whole_files import write_whole
from streamdsl.errors import SinkError
from streamdsl.io.locks import SHORT, Lock
from streamdsl.sinks.commit_file import as_sink_errors, read_commit, write_commit
from streamdsl.sinks.last_batch import COMMIT_FIELDS, LastBatch
from streamdsl.sinks.paths import local_path
from streamdsl.sinks.row_changes import event_table, normalized, row_events
from streamdsl.sinks.schemas import cast_table, widened_schema
from streamdsl.sinks.table_folder import COLUMNS, INTERNAL_FOLDER, LOST

_COMMIT: Final = "events.json"
_EVENTS: Final = "events_*.parquet"


class ParquetEvents:
    """A folder with a Parquet file of physical events for each micro-batch, which this process writes.

    All files have the same columns. A repeated micro-batch changes nothing. Raises `SinkError` for a folder that is
    another stream's, that another process writes, or that was lost.
    """

    promise: Final = "exactly_once"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = local_path(path).absolute()

    def __repr__(self) -> str:
        return f"ParquetEvents({str(self.path)!r})"

    def write(self, events: Any, batch: int, stream: str | None = None) -> None:
        """Write a micro-batch: what `session.feed` returns, or an Arrow table of events; `stream` is the id of its stream."""
        self.take(lambda: events, batch, stream)

    def take(self, events: Callable[[], Any], batch: int, stream: str | None) -> None:
        """Write a micro-batch; `events` is called only if the folder lacks it."""
        with self._transaction(batch, stream) as note:
            if note is not None:
                files = self._put(normalized(event_table(events())), batch, f"the folder {self.path}")
                note = {"batch": batch, "stream": stream or note["stream"], "files": files}
                write_commit(self.path / INTERNAL_FOLDER / _COMMIT, note)

    def has(self, batch: int, stream: str | None = None) -> bool:
        """Say whether the folder holds a micro-batch. Raises `SinkError` as `write` does."""
        with self._transaction(batch, stream) as note:
            return note is None

    @contextmanager
    def _transaction(self, batch: int, stream: str | None) -> Iterator[dict[str, Any] | None]:
        """Lock the folder for a micro-batch, and yield the commit of the last one; None if the folder holds this one."""
        what, own = f"the folder {self.path}", self.path / INTERNAL_FOLDER
        if not own.exists():
            LastBatch().needs(batch, stream, str(self.path))
        with as_sink_errors(what), Lock(own / "lock", what, SinkError, SHORT):
            note = read_commit(own / _COMMIT, COMMIT_FIELDS) or {"batch": -1, "stream": None}
            self._check(note)
            yield note if LastBatch(note["batch"], note["stream"]).needs(batch, stream, str(self.path)) else None

    def _check(self, note: dict[str, Any]) -> None:
        """Raise `SinkError` for a folder that is not as the last micro-batch left it."""
        files = len(list(self._files(note["batch"])))
        if note["batch"] >= 0 and (files != note.get("files", files) or not (self.path / COLUMNS).exists()):
            raise SinkError(f"files of the folder {self.path} are gone since its last micro-batch", hint=LOST)

    def _files(self, batch: int) -> Iterator[Path]:
        """Yield the files of the micro-batches up to one."""
        return (path for path in self.path.glob(_EVENTS) if int(path.stem.partition("_")[2]) <= batch)

    def _put(self, rows: Any, batch: int, what: str) -> int:
        """Write the file of a micro-batch, and rewrite earlier ones if the schema widens; return the number of files."""
        known, files = self.path / COLUMNS, list(self._files(batch - 1))
        before = pq.read_schema(known) if known.exists() else rows.schema
        wide = widened_schema(before, rows.schema, what, has_rows=bool(files), comes=row_events(rows).num_rows > 0)
        if wide != before or not known.exists():
            for file in files:
                self._write(cast_table(pq.ParquetFile(file).read(), wide, what), file)
            self._write(wide.empty_table(), known)
        if rows.num_rows:
            self._write(cast_table(rows, wide, what), self.path / f"events_{batch:010}.parquet")
        return len(files) + bool(rows.num_rows)

    def _write(self, rows: Any, path: Path) -> None:
        file = pa.BufferOutputStream()
        pq.write_table(rows, file)
        write_whole(path, file.getvalue())
