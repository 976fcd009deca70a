"""A folder of files that are there as a whole or not at all: on this machine, or in an object store that fsspec knows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from streamdsl.engine.state.whole_files import write_whole
from streamdsl.errors import SinkError
from streamdsl.io.locks import SHORT, Lock
from streamdsl.io.stored_files import file_system, is_stored, store_errors
from streamdsl.redaction import without_secrets
from streamdsl.sinks.table_folder import INTERNAL_FOLDER


class EventFolder(Protocol):
    """What a sink asks of a folder; a name may have one folder in it."""

    shown: str

    def is_new(self) -> bool:
        """Say whether no sink has written into it."""

    def names(self) -> list[str]:
        """Return the names of the files at its top."""

    def read(self, name: str) -> bytes | None:
        """Return what a file holds, None if there is none."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file, or write it over: whoever opens it finds all of it, or what was there before."""

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let no other process write, where there are locks; raises `SinkError` if one does."""


def event_folder(path: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> EventFolder:
    """Return the folder at a path or an address. Raises `QueryError` for an address that fsspec does not know.

    >>> event_folder("memory://bucket/events").names()
    []
    """
    return _StoredFolder(os.fspath(path), options) if is_stored(path) else _LocalFolder(Path(path))


class _LocalFolder:
    def __init__(self, path: Path) -> None:
        self._path, self.shown = path, str(path)

    def is_new(self) -> bool:
        return not (self._path / INTERNAL_FOLDER).exists()

    def names(self) -> list[str]:
        return sorted(path.name for path in self._path.iterdir()) if self._path.exists() else []

    def read(self, name: str) -> bytes | None:
        try:
            return (self._path / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        write_whole(self._path / name, data)

    @contextmanager
    def locked(self) -> Iterator[None]:
        with Lock(self._path / INTERNAL_FOLDER / "lock", f"the folder {self.shown}", SinkError, SHORT):
            yield


class _StoredFolder:
    """An object gets its name when it is there as a whole, so nothing is renamed. There are no locks: a job has one writer."""

    def __init__(self, address: str, options: Mapping[str, Any] | None) -> None:
        self.shown = without_secrets(address)
        self._system, path = file_system(address, options)
        self._path = path.rstrip("/")

    def is_new(self) -> bool:
        with store_errors():
            return not self._system.exists(f"{self._path}/{INTERNAL_FOLDER}")

    def names(self) -> list[str]:
        with store_errors():
            self._system.invalidate_cache()
            return sorted(path.rpartition("/")[2] for path in self._system.find(self._path, maxdepth=1))

    def read(self, name: str) -> bytes | None:
        with store_errors(), suppress(FileNotFoundError):
            self._system.invalidate_cache()
            return bytes(self._system.cat_file(f"{self._path}/{name}"))
        return None

    def write(self, name: str, data: bytes) -> None:
        with store_errors():
            self._system.pipe_file(f"{self._path}/{name}", data)

    @contextmanager
    def locked(self) -> Iterator[None]:
        yield
