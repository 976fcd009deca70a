"""What sources ask of files: to be opened, and what is in a folder, on this machine or at an address that fsspec knows."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, Protocol, cast

from streamdsl.errors import InputError, StreamDslError
from streamdsl.extras import need_pyarrow
from streamdsl.io.stored_files import file_system, is_stored
from streamdsl.redaction import without_secrets

_BUFFER: Final = 1 << 20
_TIMES: Final = ("LastModified", "last_modified", "mtime", "updated", "created")
"""What file systems of fsspec call the time of a file."""
PACKED: Final = (".gz", ".zst")
"""How names of files end that are compressed."""


class FileFacts(NamedTuple):
    """When a file was written, for its order among others, and its size in bytes."""

    written: float
    size: int


class ReadableFiles(Protocol):
    """Where files are."""

    def size(self, path: str) -> int | None:
        """Return the size of a file, None if there is none."""

    def open(self, path: str) -> IO[bytes]:
        """Open a file. Raises `OSError`."""

    def below(self, folder: str) -> dict[str, FileFacts] | None:
        """Return the files of a folder and of those in it, by their paths below it; None if there is no folder."""


@contextmanager
def file_errors(path: str) -> Iterator[None]:
    """Translate errors of a file, such as one that is cut off, into `InputError`; stores have many kinds of them."""
    try:
        yield
    except StreamDslError:
        raise
    except Exception as error:
        said = getattr(error, "strerror", None) or ("there is none" if isinstance(error, FileNotFoundError) else error)
        raise InputError(f"the file {without_secrets(path)} cannot be read: {said}") from error


class _HereFiles:
    """The files of this machine."""

    def size(self, path: str) -> int | None:
        return os.path.getsize(path) if os.path.exists(path) else None

    def open(self, path: str) -> IO[bytes]:
        return open(path, "rb")

    def below(self, folder: str) -> dict[str, FileFacts] | None:
        root = Path(folder)
        if not root.is_dir():
            return None
        found = ((path.relative_to(root).as_posix(), path.stat()) for path in root.rglob("*") if path.is_file())
        return {name: FileFacts(stat.st_mtime_ns, stat.st_size) for name, stat in found}


class _StoredFiles:
    """The files of a file system of fsspec. What it remembers of folders is forgotten before each look."""

    def __init__(self, address: str, options: Mapping[str, Any] | None) -> None:
        self._system = file_system(address, options)[0]

    def size(self, path: str) -> int | None:
        with file_errors(path):
            self._system.invalidate_cache()
            return int(self._system.size(path)) if self._system.exists(path) else None

    def open(self, path: str) -> IO[bytes]:
        return cast(IO[bytes], io.BufferedReader(self._system.open(path, "rb"), _BUFFER))

    def below(self, folder: str) -> dict[str, FileFacts] | None:
        root = str(self._system._strip_protocol(folder)).rstrip("/")
        with file_errors(folder):
            self._system.invalidate_cache()
            found = self._system.find(root, detail=True)
            if not found and not self._system.isdir(root):
                return None
        return {path[len(root) + 1 :]: FileFacts(_time(facts), int(facts["size"])) for path, facts in found.items()}


def _time(facts: Mapping[str, Any]) -> float:
    found = next((facts[name] for name in _TIMES if facts.get(name) is not None), 0)
    return float(found.timestamp() if hasattr(found, "timestamp") else found if isinstance(found, (int, float)) else 0)


def readable_files(path: str, options: Mapping[str, Any] | None = None) -> ReadableFiles:
    """Return where the files of a path or an address are. Raises `QueryError` for an address that fsspec does not know.

    >>> readable_files("trips.jsonl").size("no-such-file") is None
    True
    """
    return _StoredFiles(path, options) if is_stored(path) else _HereFiles()


def plain_path(path: str | os.PathLike[str]) -> str:
    """Return a path or an address as text, one with `file://` as the path that it is.

    >>> plain_path("file:///data/trips.jsonl"), plain_path("s3://bucket/trips.jsonl")
    ('/data/trips.jsonl', 's3://bucket/trips.jsonl')
    """
    return os.fspath(path).removeprefix("file://")


def without_packing(path: str) -> str:
    """Return a path without the suffix that says how the file is compressed.

    >>> without_packing("trips.jsonl.zst"), without_packing("trips.csv")
    ('trips.jsonl', 'trips.csv')
    """
    return os.path.splitext(path)[0] if path.endswith(PACKED) else path


def unpacked(file: IO[bytes], path: str) -> IO[bytes]:
    """Return the content of a file that its suffix says is compressed."""
    if path.endswith(".gz"):
        return cast(IO[bytes], gzip.open(file))
    if path.endswith(".zst"):
        need_pyarrow("files that end in .zst")
        import pyarrow as pa

        packed = pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")
        return cast(IO[bytes], io.BufferedReader(packed, _BUFFER))
    return file
