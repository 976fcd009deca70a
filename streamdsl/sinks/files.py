"""A table in a folder of Parquet files, of which each micro-batch rewrites those that it touches."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from streamdsl.engine.state.files import sync_folder, write_whole
from streamdsl.errors import QueryError, SchemaError, SinkError
from streamdsl.sinks.batches import Taken
from streamdsl.sinks.folder import COLUMNS, OWN, Folder, plain, widened
from streamdsl.sinks.net import net, rows_of
from streamdsl.sinks.paths import local_path
from streamdsl.temporal import to_duration

_COMMIT: Final = "commit.json"


class ParquetTable:
    """A folder of Parquet files that holds the history which a stream's events mean: `id`, `le`, `re` and the payload's fields.

    With `every` (a duration such as `"1d"`, or ticks) rows are in a file for each stretch of LEs so long, and a micro-batch
    rewrites only the files it has rows for; without it there is one file. A micro-batch that comes again changes nothing,
    wherever its first try was cut off. `streamdsl.spark.ParquetTable` is the same for `foreachBatch`. Raises `SinkError` for a
    table that is another stream's, or was lost.

    >>> import tempfile, pyarrow.parquet as pq, streamdsl as sd
    >>> from streamdsl.sinks import ParquetTable
    >>> session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = ParquetTable(f"{folder}/trips", every=100)
    ...     table.write(session.feed([sd.point("a", 3, "A"), sd.point("b", 4, "B")]).to_arrow(), 0)
    ...     table.write(session.feed([sd.point("late", 5, "C"), sd.Cti(20)]).to_arrow(), 1)
    ...     pq.read_table(table.path).select(["le", "re", "n"]).to_pylist()
    [{'le': 0, 're': 10, 'n': 3}]
    """

    def __init__(self, path: str | os.PathLike[str], every: int | str | timedelta | None = None) -> None:
        if every is not None and to_duration(every, "us") <= 0:
            raise QueryError(f"every is a positive duration, not {every!r}")
        self.path = local_path(path).absolute()
        self.every = every

    def __repr__(self) -> str:
        return f"ParquetTable({str(self.path)!r}, every={self.every!r})"

    def write(self, events: Any, batch: int, stream: str | None = None) -> None:
        """Take a micro-batch as an Arrow table of physical events; `stream` tells its stream from others."""
        if not self.is_next(batch, stream):
            return
        folder = self.folder(pa.types.is_timestamp(events.schema.field("le").type))
        rows = rows_of(events)
        staged = {folder.name(place): folder.stage(place, part) for place, part in folder.parts(rows)}
        moves = {name: file for name, file in staged.items() if file is not None}
        self.commit(folder, batch, stream, moves, rows.slice(0, 0))

    def has(self, batch: int, stream: str | None = None) -> bool:
        """Say whether the table has taken a micro-batch. Raises `SinkError` if it is another stream's, or was lost."""
        return not self.is_next(batch, stream)

    def is_next(self, batch: int, stream: str | None) -> bool:
        """Finish what a crash has cut off, and say whether this micro-batch is still to be taken; if so, prepare for it."""
        commit = self._last()
        self._move(commit["moves"])
        if not Taken(commit["batch"], commit["stream"]).misses(batch, stream, str(self.path)):
            return False
        staged = Folder(self.path, None).staged
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir(parents=True)
        return True

    def _last(self) -> Mapping[str, Any]:
        path = self.path / OWN / _COMMIT
        if path.exists():
            commit: dict[str, Any] = json.loads(path.read_text())
            if commit["every"] != str(self.every):
                raise SinkError(
                    f"the table {self.path} was begun with every={commit['every']}, not with {self.every}",
                    hint="go on with what it was begun with, or write to another folder",
                )
            return commit
        if any(self.path.glob("*.parquet")):
            raise SinkError(f"the folder {self.path} has files that no stream has written", hint="name one that is empty, or new")
        return {"batch": -1, "stream": None, "moves": {}}

    def folder(self, in_dates: bool) -> Folder:
        """Return the folder of a stream whose times are dates, or plain ticks."""
        if in_dates and isinstance(self.every, int):
            raise SchemaError(f"the stream's times are dates, so every is a duration such as '1d', not {self.every!r}")
        return Folder(self.path, None if self.every is None else to_duration(self.every, "us" if in_dates else "tick"))

    def commit(self, folder: Folder, batch: int, stream: str | None, moves: Mapping[str, str], columns: Any) -> None:
        """Decide that the micro-batch is taken, which is one file that is there or not; then move its files to their places."""
        moves = dict(moves)
        known, now = self.path / COLUMNS, plain(net(plain(columns))).schema
        before = pq.read_schema(known) if known.exists() else now
        wide = widened(before, now, str(self.path))
        if batch == 0 or wide != before:
            moves[COLUMNS] = folder.write(wide.empty_table())
        sync_folder(folder.staged)
        commit = {"batch": batch, "stream": stream, "every": str(self.every), "moves": moves}
        write_whole(self.path / OWN / _COMMIT, json.dumps(commit).encode())
        self._move(moves)

    def _move(self, moves: Mapping[str, str]) -> None:
        for name, staged in moves.items():
            place, file = self.path / name, Folder(self.path, None).staged / staged
            if not staged:
                place.unlink(missing_ok=True)
            elif file.exists():
                os.replace(file, place)
        if moves:
            sync_folder(self.path)
