"""A sink that keeps a table in a folder of Parquet files; each micro-batch rewrites the files it touches (copy on write)."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from streamdsl.engine.state.whole_files import sync_folder
from streamdsl.errors import QueryError, SchemaError, SinkError
from streamdsl.io.locks import SHORT, Lock
from streamdsl.sinks.commit_file import as_sink_errors, read_commit, write_commit
from streamdsl.sinks.last_batch import COMMIT_FIELDS, LastBatch
from streamdsl.sinks.paths import local_path
from streamdsl.sinks.row_changes import event_table, normalized, row_events
from streamdsl.sinks.schemas import row_schema, widened_schema
from streamdsl.sinks.table_folder import COLUMNS, INTERNAL_FOLDER, LOST, TableFolder
from streamdsl.temporal import to_duration

_COMMIT: Final = "commit.json"
_FILE: Final = re.compile(r"(rows|columns|le_-?\d+)\.parquet")
_NEW: Final[dict[str, Any]] = {"batch": -1, "stream": None, "moves": {}, "files": {}}


class ParquetTable:
    """A folder of Parquet files that holds the history which a stream's events mean: `id`, `le`, `re` and the payload's fields.

    With `every` (a duration such as `"1d"`, or ticks) rows are in a file for each stretch of LEs so long, and a micro-batch
    rewrites only the files it has rows for; without it there is one file. A repeated micro-batch changes nothing,
    wherever its first try was cut off. All files have the same columns. `streamdsl.spark.ParquetTable` is the same for
    `foreachBatch`. Raises `SinkError` for a table that is another stream's, that another process writes, that was lost or
    changed, and for values that do not fit its columns.

    >>> import tempfile, pyarrow.parquet as pq, streamdsl as sd
    >>> from streamdsl.sinks import ParquetTable
    >>> session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = ParquetTable(f"{folder}/trips", every=100)
    ...     table.write(session.feed([sd.point("a", 3, "A"), sd.point("b", 4, "B")]), 0)
    ...     table.write(session.feed([sd.point("late", 5, "C"), sd.Cti(20)]), 1)
    ...     pq.read_table(table.path).select(["le", "re", "n"]).to_pylist()
    [{'le': 0, 're': 10, 'n': 3}]
    """

    promise: Final = "exactly_once"

    def __init__(self, path: str | os.PathLike[str], every: int | str | timedelta | None = None) -> None:
        if every is not None and to_duration(every, "us") <= 0:
            raise QueryError(f"every is a positive duration, not {every!r}")
        self.path = local_path(path).absolute()
        self.every = every

    def __repr__(self) -> str:
        return f"ParquetTable({str(self.path)!r}, every={self.every!r})"

    def write(self, events: Any, batch: int, stream: str | None = None) -> None:
        """Write a micro-batch: what `session.feed` returns, or an Arrow table of events; `stream` is the id of its stream."""
        with self.transaction(batch, stream) as last:
            if last is not None:
                events = normalized(event_table(events))
                rows = row_events(events)
                folder = self.folder(last, events.schema, comes=rows.num_rows > 0)
                staged = {folder.name(place): folder.stage(place, part) for place, part in folder.by_stretch(rows)}
                self.commit(folder, last, batch, stream, staged)

    def has(self, batch: int, stream: str | None = None) -> bool:
        """Say whether the table holds a micro-batch. Raises `SinkError` as `write` does."""
        with self.transaction(batch, stream) as last:
            return last is None

    @contextmanager
    def transaction(self, batch: int, stream: str | None) -> Iterator[dict[str, Any] | None]:
        """Lock the table for a micro-batch, finish an interrupted commit, and yield the commit of the last micro-batch.

        It yields None if the table holds this micro-batch. Raises `SinkError` for a table that others have changed.
        """
        own, what = self.path / INTERNAL_FOLDER, f"the table {self.path}"
        if not own.exists():
            LastBatch().needs(batch, stream, str(self.path))
        with as_sink_errors(what), Lock(own / "lock", what, SinkError, SHORT):
            last = self._last()
            if not LastBatch(last["batch"], last["stream"]).needs(batch, stream, str(self.path)):
                yield None
                return
            staged = TableFolder(self.path, None).staged
            shutil.rmtree(staged, ignore_errors=True)
            staged.mkdir(parents=True)
            yield last

    def _last(self) -> dict[str, Any]:
        """Return the commit of the last micro-batch, after its files have been moved into place."""
        last = read_commit(self.path / INTERNAL_FOLDER / _COMMIT, {**COMMIT_FIELDS, "every": str, "moves": dict})
        if last is None:
            if any(self.path.glob("*.parquet")):
                raise SinkError(
                    f"the folder {self.path} has files that no stream has written", hint="name one that is empty, or new"
                )
            return _NEW
        if last["every"] != str(self.every):
            raise SinkError(
                f"the table {self.path} was begun with every={last['every']}, not with {self.every}",
                hint="go on with what it was begun with, or write to another folder",
            )
        self._check_names(last["moves"], str)
        self._check_names(last.get("files", {}), int)
        self._move(last["moves"])
        if "files" not in last:  # written by a version that did not list files
            last["files"] = {path.name: path.stat().st_size for path in self.path.glob("*.parquet")}
            last["ticks"] = (
                None if self.every is None else to_duration(self.every, "tick" if isinstance(self.every, int) else "us")
            )
        if COLUMNS not in last["files"]:
            raise SinkError(f"the file {COLUMNS} of the table {self.path} is gone", hint=LOST)
        TableFolder(self.path, None, files=last["files"]).check()
        return last

    def _check_names(self, given: object, kind: type) -> None:
        """Raise `SinkError` for a commit that names anything but files of the table."""
        if not isinstance(given, dict) or not all(_FILE.fullmatch(name) and type(of) is kind for name, of in given.items()):
            raise SinkError(
                f"the commit file {self.path / INTERNAL_FOLDER / _COMMIT} of the table {self.path} cannot be read", hint=LOST
            )

    def folder(self, last: Mapping[str, Any], now: Any, *, comes: bool) -> TableFolder:
        """Return the folder after the last micro-batch, with its schema widened to rows of the schema `now`."""
        what, columns = f"the table {self.path}", row_schema(now)
        before = normalized(pq.read_schema(self.path / COLUMNS).empty_table()).schema if last["files"] else columns
        wide = widened_schema(before, columns, what, has_rows=len(last["files"]) > 1, comes=comes)
        ticks = last.get("ticks", self._ticks(wide.field("le").type) if comes else None)
        return TableFolder(self.path, ticks, wide, last["files"])

    def _ticks(self, times: Any) -> int | None:
        """Return the length of a stretch in ticks."""
        in_dates = pa.types.is_timestamp(times)
        if in_dates and isinstance(self.every, int):
            raise SchemaError(f"the stream's times are dates, so every is a duration such as '1d', not {self.every!r}")
        return None if self.every is None else to_duration(self.every, times.unit if in_dates else "tick")

    def commit(
        self, folder: TableFolder, last: Mapping[str, Any], batch: int, stream: str | None, staged: Mapping[str, str | None]
    ) -> None:
        """Commit a micro-batch by writing the commit file, which is atomic; then move the staged files into place.

        A crash in between is repaired by the next `transaction`, which moves the files that the commit lists.
        """
        moves = {name: file for name, file in staged.items() if file is not None}
        if COLUMNS not in folder.files or pq.read_schema(self.path / COLUMNS) != folder.schema:
            rest = folder.files.keys() - moves.keys() - {COLUMNS}
            moves |= {name: folder.restage(name) for name in sorted(rest)} | {COLUMNS: folder.write(folder.schema.empty_table())}
        sync_folder(folder.staged)
        gone = {name for name, file in moves.items() if not file}
        sizes = {name: (folder.staged / file).stat().st_size for name, file in moves.items() if file}
        files = {name: size for name, size in {**folder.files, **sizes}.items() if name not in gone}
        taken = {"batch": batch, "stream": stream or last["stream"], "every": str(self.every), "moves": moves, "files": files}
        taken |= {"ticks": folder.every} if len(files) > 1 else {}
        write_commit(self.path / INTERNAL_FOLDER / _COMMIT, taken)
        self._move(moves)

    def _move(self, moves: Mapping[str, str]) -> None:
        for name, staged in moves.items():
            place, file = self.path / name, TableFolder(self.path, None).staged / staged
            if not staged:
                place.unlink(missing_ok=True)
            elif file.exists():
                os.replace(file, place)
        if moves:
            sync_folder(self.path)
