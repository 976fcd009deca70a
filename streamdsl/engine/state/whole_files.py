"""Files that are there as a whole, or not at all, such as checkpoints."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from streamdsl.errors import CheckpointError, QueryError


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that whoever opens it, also after a crash, finds all of it, or what was there before."""
    _write(_path(path), data, os.replace)


def write_checkpoint(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a session's checkpoint as a whole; raises `CheckpointError` where that cannot be, and what was there before stays."""
    target = _path(path)
    if target.exists() and not target.is_file():
        raise CheckpointError(f"there is something at {str(target)!r} that is no file", hint='checkpoint("folder/trips")')
    try:
        _write(target, data, os.replace)
    except OSError as error:
        raise CheckpointError(
            f"the checkpoint {str(target)!r} cannot be written: {error.strerror or error}",
            hint="its folder must be there and have room; the session goes on, and what was there before is as it was",
        ) from error


def write_new(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file that nobody has written before, as a whole; raises `FileExistsError` if somebody has."""
    _write(_path(path), data, move_new)


def _path(path: object) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise QueryError(f"a checkpoint is a file, given by its path, not by {path!r}", hint='checkpoint("folder/trips")')
    return Path(path)


def move_new(path: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Give a file its name; raises `FileExistsError` if there is one of that name."""
    try:
        os.link(path, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        os.close(os.open(target, os.O_CREAT | os.O_EXCL))
        os.replace(path, target)
    else:
        os.unlink(path)


def _write(target: Path, data: bytes, move: Callable[[str, Path], None]) -> None:
    number, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        move(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Let the new name of a file outlast a crash, where the system can open a folder."""
    if os.name != "posix":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def read_whole(path: str | os.PathLike[str]) -> bytes:
    """Return what a file holds; raises `CheckpointError` where there is none."""
    try:
        return _path(path).read_bytes()
    except FileNotFoundError:
        raise CheckpointError(
            f"there is no checkpoint at {os.fspath(path)!r}", hint="session.checkpoint(path) writes one"
        ) from None
    except OSError as error:
        raise CheckpointError(
            f"the checkpoint {os.fspath(path)!r} cannot be read: {error.strerror or error}", hint="is it a file of yours?"
        ) from error
