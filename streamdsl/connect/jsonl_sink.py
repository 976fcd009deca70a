"""Sinks of physical events as JSON lines: a file, which takes each exactly once, and the standard output."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Final, TextIO

from streamdsl.connect.protocols import Sink
from streamdsl.connect.readable_files import plain_path
from streamdsl.errors import QueryError, SinkError
from streamdsl.io.json_columns import json_rows
from streamdsl.io.locks import SHORT, Lock
from streamdsl.io.stored_files import is_stored
from streamdsl.redaction import without_secrets
from streamdsl.sinks.commit_file import as_sink_errors, read_commit, write_commit
from streamdsl.sinks.last_batch import COMMIT_FIELDS, LastBatch
from streamdsl.sinks.row_changes import event_table
from streamdsl.sinks.table_folder import LOST


class JsonlFile:
    """A file of JSON lines to which each micro-batch appends its physical events: `kind`, `id`, `le`, `re`, `re_new`, the fields.

    A file beside it (`.name.commit`) keeps the number of the last micro-batch and how long the file was after it: what a crash
    left behind that length is cut off, so each counts once. A reader may see lines of a micro-batch that is cut off later. Dates
    are ISO texts; a null `re` is INFINITY. `replay` reads it again. Raises `SinkError` for a file that is another stream's, or
    was cut.

    >>> import tempfile
    >>> import streamdsl as sd
    >>> from pathlib import Path
    >>> from streamdsl.connect import JsonlFile
    >>> session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sink = JsonlFile(Path(folder, "counts.jsonl"))
    ...     out = session.feed([sd.point("a", 3, {"fare": 7})])
    ...     for _ in range(2):
    ...         sink.write(out, 0)
    ...     print(sink.path.read_text(), end="")
    {"kind": "insert", "id": "('window_aggregate_1', 0, 0)", "le": 0, "re": 10, "re_new": null, "n": 1}
    """

    promise: Final = "exactly_once"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if is_stored(path):
            raise QueryError(
                f"nothing can be appended to {without_secrets(os.fspath(path))}",
                hint="ParquetEvents writes new files",
            )
        self.path = Path(plain_path(path)).absolute()
        self._commit = self.path.with_name(f".{self.path.name}.commit")

    def __repr__(self) -> str:
        return f"JsonlFile({str(self.path)!r})"

    def has(self, batch: int, stream: str | None = None) -> bool:
        """Say whether the file holds a micro-batch. Raises `SinkError` as `write` does."""
        return self._needed(batch, stream) is None

    def write(self, events: Any, batch: int, stream: str | None = None) -> None:
        """Append a micro-batch: what `session.feed` returns, or an Arrow table of events; `stream` is the id of its stream."""
        what = f"the file {self.path}"
        with as_sink_errors(what), Lock(self._commit.with_suffix(".lock"), what, SinkError, SHORT):
            note = self._needed(batch, stream)
            if note is None:
                return
            if not self._commit.exists():
                write_commit(self._commit, note)
            lines = json_lines(events)
            with open(self.path, "ab") as file:
                file.truncate(note["size"])
                file.write("".join(lines).encode())
                file.flush()
                os.fsync(file.fileno())
                size = os.fstat(file.fileno()).st_size
            write_commit(self._commit, {"batch": batch, "stream": stream or note["stream"], "size": size})

    def _needed(self, batch: int, stream: str | None) -> dict[str, Any] | None:
        """Return what is known of the last micro-batch, None if the file holds this one."""
        note = read_commit(self._commit, {**COMMIT_FIELDS, "size": int}) or {"batch": -1, "stream": None, "size": 0}
        size = self.path.stat().st_size if self.path.exists() else 0
        if size < note["size"]:
            raise SinkError(f"the file {self.path} was cut since its last micro-batch", hint=LOST)
        if note["batch"] < 0 and size and not self._commit.exists():
            raise SinkError(f"a file {self.path} exists, and no stream has written it", hint="name another, or remove it")
        return note if LastBatch(note["batch"], note["stream"]).needs(batch, stream, str(self.path)) else None


def stdout_jsonl(stream: TextIO | None = None) -> Sink:
    """Return a sink that prints physical events as `JsonlFile` writes them, to the standard output or another stream.

    It promises `at_least_once`: after a crash the last micro-batch may be printed again.

    >>> import streamdsl as sd
    >>> from streamdsl.connect import stdout_jsonl
    >>> session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open()
    >>> stdout_jsonl().write(session.feed([sd.point("a", 3, {"fare": 7})]), 0)
    {"kind": "insert", "id": "('window_aggregate_1', 0, 0)", "le": 0, "re": 10, "re_new": null, "n": 1}
    """

    return _Prints(stream)


class _Prints:
    promise: Final = "at_least_once"

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def __repr__(self) -> str:
        return "stdout_jsonl()"

    def write(self, events: Any, batch: int, stream: str | None = None) -> None:
        """Print a micro-batch."""
        to = self._stream or sys.stdout
        to.writelines(json_lines(events))
        to.flush()


def json_lines(events: Any) -> list[str]:
    """Return the physical events of a micro-batch as lines of JSON."""
    return [f"{row}\n" for row in json_rows(event_table(events))]
