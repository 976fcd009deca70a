"""The physical events of a stream in files, one for each micro-batch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from streamdsl.engine.state.files import write_whole
from streamdsl.sinks.batches import Taken
from streamdsl.sinks.folder import COLUMNS, OWN, plain, widened
from streamdsl.sinks.paths import local_path

_COMMIT: Final = "events.json"


class ParquetEvents:
    """A folder with a Parquet file of physical events for each micro-batch, which this process writes.

    A micro-batch that comes again changes nothing. Raises `SinkError` for a folder that is another stream's, or was lost.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = local_path(path).absolute()

    def write(self, events: Any, batch: int, stream: str | None = None) -> None:
        """Take a micro-batch as an Arrow table of physical events; `stream` tells its stream from others."""
        self.take(lambda: events, batch, stream)

    def take(self, events: Callable[[], Any], batch: int, stream: str | None) -> None:
        """Take a micro-batch, which is asked for only if the folder has yet to take it."""
        if self.has(batch, stream):
            return
        commit = self.path / OWN / _COMMIT
        commit.parent.mkdir(parents=True, exist_ok=True)
        rows, known = plain(events()), self.path / COLUMNS
        before = pq.read_schema(known) if known.exists() else None
        wide = rows.schema if before is None else widened(before, rows.schema, str(self.path))
        if wide != before:
            self._write(wide.empty_table(), known)
        if rows.num_rows:
            self._write(rows.cast(wide), self.path / f"events_{batch:010}.parquet")
        write_whole(commit, json.dumps({"batch": batch, "stream": stream}).encode())

    def has(self, batch: int, stream: str | None = None) -> bool:
        """Say whether the folder has taken a micro-batch. Raises `SinkError` if it is another stream's, or was lost."""
        commit = self.path / OWN / _COMMIT
        taken = Taken(**json.loads(commit.read_text())) if commit.exists() else Taken()
        return not taken.misses(batch, stream, str(self.path))

    def _write(self, rows: Any, path: Path) -> None:
        file = pa.BufferOutputStream()
        pq.write_table(rows, file)
        write_whole(path, file.getvalue())
