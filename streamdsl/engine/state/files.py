"""Checkpoints in files: there as a whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from streamdsl.errors import CheckpointError


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that whoever opens it, also after a crash, finds all of it, or what was there before."""
    target = Path(path)
    number, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
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
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise CheckpointError(
            f"there is no checkpoint at {os.fspath(path)!r}", hint="session.checkpoint(path) writes one"
        ) from None
