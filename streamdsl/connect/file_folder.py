"""A source of the files of a folder, one after the other, as they arrive."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from streamdsl.connect.looking import look_for
from streamdsl.connect.made_source import MadeSource
from streamdsl.connect.protocols import END, Batch, End, OpenSource, Position, Source
from streamdsl.connect.text_files import csv_file, jsonl_file
from streamdsl.errors import InputError, QueryError

_AT_ONCE: Final = 65_536
_LOOK_AGAIN: Final = 0.2
"""Seconds between two looks into the folder."""


def file_folder(path: str | os.PathLike[str], *, payload: type | None = None, follow: bool = False) -> Source:
    """Return a source of the files of a folder, and of those in it, in the order of their times and names.

    They are JSON lines, CSV (read as by `csv_file` with `payload`), Parquet and Arrow. A file must be there as a whole when it
    gets its name, and is not changed afterwards; names that begin with `.` or `_` are not read. Files may go once they are read.
    With `follow` it waits for new files; else it ends when all are read. The position has the names and sizes of the files that
    were read and are still there, so a folder of very many files is one for `streamdsl run` (docs/jobs.md), which also knows
    files that were renamed.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from streamdsl.connect import file_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "monday.jsonl").write_text('{"le": 3, "fare": 7}\\n')
    ...     file_folder(folder).open(None).poll(0).data
    [{'le': 3, 'fare': 7}]
    """

    folder = Path(path)

    def reader(position: Position) -> OpenSource:
        if not folder.is_dir():
            raise QueryError(f"there is no folder {folder}", hint="jsonl_file and csv_file read a single file")
        return _FolderReader(folder, position, payload, follow)

    return MadeSource(f"file_folder({str(folder)!r})", reader)


class _FolderReader(OpenSource):
    """`read` has the files that are read, with their sizes; `now` is the one that is being read, `at` the place in it."""

    def __init__(self, folder: Path, position: Position, payload: type | None, follow: bool) -> None:
        kept = position or {"read": {}, "now": None, "at": None}
        self._folder, self._payload, self._follow = folder, payload, follow
        self._read: dict[str, int] = dict(kept["read"])
        self._now: str | None = kept["now"]
        self._at: Position = kept["at"]
        self._reader: OpenSource | None = None

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
            self._reader = _opener(str(self._folder / self._now), self._payload).open(self._at)
        polled = self._reader.poll(0)
        if isinstance(polled, Batch):
            self._at = polled.position
            return Batch(polled.data, self._position(), polled.bad, polled.places)
        self.close()
        path = self._folder / self._now
        self._read[self._now] = path.stat().st_size if path.exists() else -1
        self._now, self._at = None, None
        return None

    def _position(self) -> Position:
        return {"read": dict(self._read), "now": self._now, "at": self._at}

    def _step_on(self) -> bool:
        """Go to the next file, and say whether there is one. Raises `InputError` for one that has changed since it was read."""
        there = {path.relative_to(self._folder).as_posix(): path.stat() for path in _files(self._folder)}
        for name, size in self._read.items():
            if name in there and size not in (-1, there[name].st_size):
                raise InputError(
                    f"the file {self._folder / name} has changed since it was taken",
                    hint="put back what it held, or remove it, and put what is new into a file of another name",
                )
        self._read = {name: size for name, size in self._read.items() if name in there}
        new = sorted((stat.st_mtime_ns, name) for name, stat in there.items() if name not in self._read)
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

    def __init__(self, frames: Iterator[Any], position: int) -> None:
        self._frames, self._number = islice(frames, position, None), position

    def poll(self, timeout: float) -> Batch | End | None:
        frame = next(self._frames, None)
        if frame is None:
            return END
        self._number += 1
        return Batch(frame, self._number)


def _parquet(path: str) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_AT_ONCE):
            yield pa.Table.from_batches([batch])


def _arrow(path: str) -> Iterator[Any]:
    import pyarrow as pa

    with pa.OSFile(path) as file:
        try:
            batches: Any = pa.ipc.open_file(file)
            found: Iterator[Any] = (batches.get_batch(number) for number in range(batches.num_record_batches))
        except pa.ArrowInvalid:
            file.seek(0)
            found = iter(pa.ipc.open_stream(file))
        for batch in found:
            yield pa.Table.from_batches([batch])


def _frames(read: Callable[[str], Iterator[Any]]) -> Callable[[str, type | None], Source]:
    return lambda path, payload: MadeSource(path, lambda position: _FrameReader(read(path), position or 0))


_SUFFIXES: Final[dict[str, Callable[[str, type | None], Source]]] = {
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), lambda path, payload: jsonl_file(path)),
    ".csv": lambda path, payload: csv_file(path, payload=payload),
    ".parquet": _frames(_parquet),
    **dict.fromkeys((".arrow", ".feather"), _frames(_arrow)),
}


def _opener(path: str, payload: type | None) -> Source:
    return _SUFFIXES[Path(path.removesuffix(".gz")).suffix](path, payload)


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of known formats below a folder, but for those in whose path a name begins with a dot or underscore."""
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        known = Path(path.name.removesuffix(".gz")).suffix in _SUFFIXES
        if known and not any(part[0] in "._" for part in parts) and path.is_file():
            yield path
