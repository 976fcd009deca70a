"""The output of a job that runs once: it gets its name when it is there as a whole."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamdsl.engine.state.files import move_new, sync_folder
from streamdsl.jobs.job import taken


@contextmanager
def whole(output: Path) -> Iterator[Path]:
    """Give a path beside a job's output, and what is written there the output's name at the end. Raises `QueryError`.

    A job that is killed leaves a name that begins with a dot, which readers pass by.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    path = output.with_name(f".{output.name}.{uuid.uuid4().hex}")
    try:
        yield path
        files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
        for file in files:
            with file.open("rb+") as opened:
                os.fsync(opened.fileno())
        _name(path, output)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
        raise


def _name(path: Path, output: Path) -> None:
    """Move what is whole to its place, where nothing may be; a folder that is there is never replaced unless it is empty."""
    try:
        move_new(path, output) if path.is_file() else path.rename(output)
    except OSError as error:
        if os.path.lexists(output):
            raise taken(output) from None
        raise error
    sync_folder(output.parent)
