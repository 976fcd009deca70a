"""What goes wrong while a table is read or written, as errors that say which table, and what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from streamdsl.engine.state.files import write_whole
from streamdsl.errors import SinkError
from streamdsl.temporal.json_text import loads

AGAIN: Final = "mend that and write the micro-batch again: it counts once, wherever this one was cut off"


@contextmanager
def failing(what: str, *others: type[Exception]) -> Iterator[None]:
    """Make a `SinkError` of what the system, or Arrow, says: a full disk, a folder that is read-only, a file that is garbled.

    >>> with failing("the table trips"):
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


def read_note(path: Path, needed: Mapping[str, type | tuple[type, ...]]) -> dict[str, Any] | None:
    """Return what a note of a table says, None if there is none; raises `SinkError` for one that lacks what is `needed`."""
    try:
        note = loads(path.read_bytes())
        if all(isinstance(note[name], kind) for name, kind in needed.items()):
            return dict(note)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise SinkError(
        f"the file {path}, which says what the table has taken, is garbled",
        hint="restore the table with its checkpoint, or remove both to begin anew",
    )


def write_note(path: Path, note: Mapping[str, Any]) -> None:
    """Write a note of a table: whole, or not at all."""
    write_whole(path, json.dumps(note).encode())
