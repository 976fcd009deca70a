"""A source of the files of a folder, one after the other, as they arrive."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import PurePosixPath
from typing import IO, Any, Final

from streamdsl.connect.looking import look_for
from streamdsl.connect.made_source import MadeSource, lifetimes
from streamdsl.connect.protocols import END, Batch, End, OpenSource, Position, Source
from streamdsl.connect.readable_files import FileFacts, file_errors, plain_path, readable_files, without_packing
from streamdsl.connect.text_files import csv_file, jsonl_file
from streamdsl.errors import InputError, QueryError
from streamdsl.io.csv_files import declared_kinds, parsed
from streamdsl.io.partition_folders import partition_values
from streamdsl.io.stored_files import is_stored
from streamdsl.redaction import without_secrets

_AT_ONCE: Final = 65_536
_LOOK_AGAIN: Final = 0.2
"""Seconds between two looks into the folder."""


def file_folder(
    path: str | os.PathLike[str],
    *,
    payload: type | None = None,
    start: str | None = None,
    end: str | None = None,
    follow: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Source:
    """Return a source of the files of a folder, and of those in it, in the order of their times and names.

    They are JSON lines, CSV (read as by `csv_file` with `payload`; both also `.gz` and `.zst`), Parquet, ORC, and Arrow files and
    streams; `start` and `end` are as for `jsonl_file`. A folder `month=01` gives each row in it a field: a text, unless `payload`
    declares another type. A file must be there as a whole when it gets its name, and is not changed afterwards; names that begin
    with `.` or `_` are not read. Files may go once they are read. The folder is a path, or an address that fsspec opens with
    `storage_options`, such as `s3://bucket/trips` with s3fs.

    With `follow` it waits for new files; else it ends when all are read. The position has the names and sizes of the files that
    were read and are still there, so a folder of very many files is one for `streamdsl run` (docs/jobs.md), which also knows
    files that were renamed. Raises `InputError` for a file that cannot be read, or that has changed.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from streamdsl.connect import file_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "monday.jsonl").write_text('{"le": 3, "fare": 7}\\n')
    ...     file_folder(folder).open(None).poll(0).data
    [{'le': 3, 'fare': 7}]
    """

    folder = plain_path(path).rstrip("/")
    shown = without_secrets(folder)

    def reader(position: Position) -> OpenSource:
        found = _FolderReader(folder, position, payload, follow, storage_options)
        if found.files() is None:
            raise QueryError(f"there is no folder {shown}", hint="jsonl_file and csv_file read a single file")
        return found

    return MadeSource(f"file_folder({shown!r})", reader, lifetimes(start, end))


class _FolderReader(OpenSource):
    """`read` has the files that are read, with their sizes; `now` is the one that is being read, `at` the place in it."""

    def __init__(
        self, folder: str, position: Position, payload: type | None, follow: bool, options: Mapping[str, Any] | None
    ) -> None:
        kept = position or {"read": {}, "now": None, "at": None}
        self._folder, self._payload, self._follow, self._options = folder, payload, follow, options
        self._files, self._kinds = readable_files(folder, options), declared_kinds(payload)
        self._read: dict[str, int] = dict(kept["read"])
        self._now: str | None = kept["now"]
        self._at: Position = kept["at"]
        self._reader: OpenSource | None = None

    def files(self) -> dict[str, FileFacts] | None:
        """Return the files of known formats, but for those in whose path a name begins with a dot or underscore."""
        found = self._files.below(self._folder)
        return None if found is None else {name: facts for name, facts in found.items() if _is_read(PurePosixPath(name))}

    def poll(self, timeout: float) -> Batch | End | None:
        return look_for(self._next, timeout, _LOOK_AGAIN, self._follow)

    def _next(self) -> Batch | None:
        """Return the next batch of this file or of one after it, None if there is none."""
        while self._now is not None or self._step_on():
            if (batch := self._batch()) is not None:
                return batch
        return None

    def _batch(self) -> Batch | None:
        """Return the next batch of the file that is being read; None, and none is being read, at its end."""
        assert self._now is not None
        if self._reader is None:
            self._reader = self._opened(self._now).open(self._at)
        polled = self._reader.poll(0)
        if isinstance(polled, Batch):
            self._at = polled.position
            return Batch(_with_values(polled.data, self._values(self._now)), self._position(), polled.bad, polled.places)
        self.close()
        size = self._files.size(self._path(self._now))
        self._read[self._now] = -1 if size is None else size
        self._now, self._at = None, None
        return None

    def _opened(self, name: str) -> Source:
        path, suffix = self._path(name), PurePosixPath(without_packing(name)).suffix
        if suffix in _FRAMES:
            return MadeSource(path, lambda position: _FrameReader(self._files.open, path, _FRAMES[suffix], position or 0))
        if suffix == ".csv":
            return csv_file(path, payload=self._payload, storage_options=self._options)
        return jsonl_file(path, storage_options=self._options)

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"

    def _values(self, name: str) -> dict[str, Any]:
        """Return the fields that the folders of a file give its rows."""
        given, place = partition_values(PurePosixPath(name)), f"the folder of {without_secrets(self._path(name))}"
        return {name: parsed(text, self._kinds.get(name, "text"), place, name) for name, text in given.items()}

    def _position(self) -> Position:
        return {"read": dict(self._read), "now": self._now, "at": self._at}

    def _step_on(self) -> bool:
        """Go to the next file, and say whether there is one. Raises `InputError` for one that has changed since it was read."""
        there = self.files() or {}
        for name, size in self._read.items():
            if name in there and size not in (-1, there[name].size):
                raise InputError(
                    f"the file {without_secrets(self._path(name))} has changed since it was taken",
                    hint="put back what it held, or remove it, and put what is new into a file of another name",
                )
        self._read = {name: size for name, size in self._read.items() if name in there}
        new = sorted((facts.written, name) for name, facts in there.items() if name not in self._read)
        if not new:
            return False
        self._now = new[0][1]
        return True

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None


class _FrameReader(OpenSource):
    """Reads a file in columns; the position is the number of batches."""

    def __init__(self, open: Callable[[str], IO[bytes]], path: str, read: Callable[[Any], Iterator[Any]], position: int) -> None:
        import pyarrow as pa

        self._path, self._number = path, position
        with file_errors(path):
            self._file = open(path) if is_stored(path) else pa.OSFile(path)
            self._frames = islice(read(self._file), position, None)

    def poll(self, timeout: float) -> Batch | End | None:
        with file_errors(self._path):
            frame = next(self._frames, None)
        if frame is None:
            return END
        self._number += 1
        return Batch(frame, self._number)

    def close(self) -> None:
        self._file.close()


def _parquet(file: Any) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(file).iter_batches(_AT_ONCE):
        yield pa.Table.from_batches([batch])


def _orc(file: Any) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import orc

    stripes = orc.ORCFile(file)
    for number in range(stripes.nstripes):
        stripe = pa.Table.from_batches([stripes.read_stripe(number)])
        yield from (stripe.slice(first, _AT_ONCE) for first in range(0, stripe.num_rows, _AT_ONCE))


def _arrow(file: Any) -> Iterator[Any]:
    import pyarrow as pa

    try:
        batches: Any = pa.ipc.open_file(file)
        found: Iterator[Any] = (batches.get_batch(number) for number in range(batches.num_record_batches))
    except pa.ArrowInvalid:
        file.seek(0)
        found = iter(pa.ipc.open_stream(file))
    for batch in found:
        yield pa.Table.from_batches([batch])


_FRAMES: Final[dict[str, Callable[[Any], Iterator[Any]]]] = {
    ".parquet": _parquet,
    ".orc": _orc,
    **dict.fromkeys((".arrow", ".arrows", ".feather"), _arrow),
}
_TEXTS: Final = (".jsonl", ".ndjson", ".json", ".csv")


def _is_read(name: PurePosixPath) -> bool:
    is_known = name.suffix in _FRAMES or PurePosixPath(without_packing(name.name)).suffix in _TEXTS
    return is_known and not any(part[0] in "._" for part in name.parts)


def _with_values(data: Any, values: Mapping[str, Any]) -> Any:
    """Return rows or a table with the fields that are the same in all."""
    if not values:
        return data
    if isinstance(data, list):
        return [{**row, **values} for row in data]
    import pyarrow as pa

    kept = data.drop_columns([name for name in values if name in data.column_names])
    for name, value in values.items():
        kept = kept.append_column(name, pa.array([value] * kept.num_rows, pa.string() if value is None else None))
    return kept
