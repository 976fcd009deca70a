"""The commit file of a table, and the translation of errors of files into `SinkError`s."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from streamdsl.engine.state.whole_files import write_whole
from streamdsl.errors import SinkError
from streamdsl.temporal.json_text import loads

AGAIN: Final = "mend that and write the micro-batch again: it counts once, wherever this one was cut off"


@contextmanager
def as_sink_errors(what: str, *others: type[Exception]) -> Iterator[None]:
    """Translate errors of the system and of Arrow, such as a full disk or a corrupt file, into `SinkError`.

    >>> with as_sink_errors("the table trips"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
        ...
    streamdsl.errors.SinkError: the table trips cannot be read or written: [Errno 28] No space left on device
    Hint: mend that and write the micro-batch again: it counts once, wherever this one was cut off
    """
    try:
        yield
    except (OSError, pa.ArrowException, *others) as error:
        raise SinkError(f"{what} cannot be read or written: {error}", hint=AGAIN) from error


def read_commit(path: Path, needed: Mapping[str, type | tuple[type, ...]]) -> dict[str, Any] | None:
    """Return the fields of a commit file, or None if there is no file; raises `SinkError` if a field of `needed` is missing."""
    try:
        return commit_of(path.read_bytes(), path, needed)
    except FileNotFoundError:
        return None


def commit_of(text: bytes, path: object, needed: Mapping[str, type | tuple[type, ...]]) -> dict[str, Any]:
    """Return the fields of the text of a commit file; raises `SinkError` if a field of `needed` is missing."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        note = loads(text)
        if all(isinstance(note[name], kind) for name, kind in needed.items()):
            return dict(note)
    raise SinkError(
        f"the commit file {path} of the table cannot be read",
        hint="restore the table with its checkpoint, or remove both to begin anew",
    )


def write_commit(path: Path, note: Mapping[str, Any]) -> None:
    """Write a commit file atomically."""
    write_whole(path, json.dumps(note).encode())
