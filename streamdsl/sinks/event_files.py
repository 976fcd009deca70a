"""A sink that writes the physical events of a stream to Parquet files, one per micro-batch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from streamdsl.errors import SinkError
from streamdsl.io.stored_files import is_stored
from streamdsl.sinks.commit_file import as_sink_errors, commit_of
from streamdsl.sinks.event_folder import event_folder
from streamdsl.sinks.last_batch import COMMIT_FIELDS, LastBatch
from streamdsl.sinks.paths import local_path
from streamdsl.sinks.row_changes import event_table, normalized, row_events
from streamdsl.sinks.schemas import cast_table, widened_schema
from streamdsl.sinks.table_folder import COLUMNS, INTERNAL_FOLDER, LOST

_COMMIT: Final = f"{INTERNAL_FOLDER}/events.json"
_BEGIN, _END = "events_", ".parquet"


class ParquetEvents:
    """A folder with a Parquet file of physical events for each micro-batch, which this process writes.

    It is a path, or an address that fsspec opens with `storage_options`, such as `s3://bucket/events` with s3fs; there nothing
    keeps a second writer away. All files have the same columns. A repeated micro-batch changes nothing. Raises `SinkError` for a
    folder that is another stream's, that another process writes, or that was lost.
    """

    promise: Final = "exactly_once"

    def __init__(self, path: str | os.PathLike[str], *, storage_options: Mapping[str, Any] | None = None) -> None:
        self.path = path if is_stored(path) else local_path(path).absolute()
        self._folder = event_folder(self.path, storage_options)

    def __repr__(self) -> str:
        return f"ParquetEvents({self._folder.shown!r})"

    def write(self, events: Any, batch: int, stream: str | None = None) -> None:
        """Write a micro-batch: what `session.feed` returns, or an Arrow table of events; `stream` is the id of its stream."""
        self.take(lambda: events, batch, stream)

    def take(self, events: Callable[[], Any], batch: int, stream: str | None) -> None:
        """Write a micro-batch; `events` is called only if the folder lacks it."""
        with self._transaction(batch, stream) as note:
            if note is not None:
                files = self._put(normalized(event_table(events())), batch, f"the folder {self._folder.shown}")
                note = {"batch": batch, "stream": stream or note["stream"], "files": files}
                self._folder.write(_COMMIT, json.dumps(note).encode())

    def has(self, batch: int, stream: str | None = None) -> bool:
        """Say whether the folder holds a micro-batch. Raises `SinkError` as `write` does."""
        with self._transaction(batch, stream) as note:
            return note is None

    @contextmanager
    def _transaction(self, batch: int, stream: str | None) -> Iterator[dict[str, Any] | None]:
        """Lock the folder for a micro-batch, and yield the commit of the last one; None if the folder holds this one."""
        shown = self._folder.shown
        with as_sink_errors(f"the folder {shown}"):
            is_new = self._folder.is_new()
        if is_new:
            LastBatch().needs(batch, stream, shown)
        with as_sink_errors(f"the folder {shown}"), self._folder.locked():
            text = self._folder.read(_COMMIT)
            begun: dict[str, Any] = {"batch": -1, "stream": None}
            note = begun if text is None else commit_of(text, f"{shown}/{_COMMIT}", COMMIT_FIELDS)
            self._check(note)
            yield note if LastBatch(note["batch"], note["stream"]).needs(batch, stream, shown) else None

    def _check(self, note: dict[str, Any]) -> None:
        """Raise `SinkError` for a folder that is not as the last micro-batch left it."""
        names = self._folder.names()
        files = len(list(_files(names, note["batch"])))
        if note["batch"] >= 0 and (files != note.get("files", files) or COLUMNS not in names):
            raise SinkError(f"files of the folder {self._folder.shown} are gone since its last micro-batch", hint=LOST)

    def _put(self, rows: Any, batch: int, what: str) -> int:
        """Write the file of a micro-batch, and rewrite earlier ones if the schema widens; return the number of files."""
        known, files = self._folder.read(COLUMNS), list(_files(self._folder.names(), batch - 1))
        before = rows.schema if known is None else pq.read_schema(pa.BufferReader(known))
        wide = widened_schema(before, rows.schema, what, has_rows=bool(files), comes=row_events(rows).num_rows > 0)
        if wide != before or known is None:
            for file in files:
                written = pq.ParquetFile(pa.BufferReader(self._folder.read(file))).read()
                self._write(cast_table(written, wide, what), file)
            self._write(wide.empty_table(), COLUMNS)
        if rows.num_rows:
            self._write(cast_table(rows, wide, what), f"{_BEGIN}{batch:010}{_END}")
        return len(files) + bool(rows.num_rows)

    def _write(self, rows: Any, name: str) -> None:
        file = pa.BufferOutputStream()
        pq.write_table(rows, file)
        self._folder.write(name, file.getvalue().to_pybytes())


def _files(names: list[str], batch: int) -> Iterator[str]:
    """Yield the files of the micro-batches up to one."""
    return (
        name
        for name in names
        if name.startswith(_BEGIN) and name.endswith(_END) and int(name.removeprefix(_BEGIN).removesuffix(_END)) <= batch
    )
