"""The atomic output of a batch job: it gets its name once it is complete."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamdsl.engine.state.whole_files import move_new, sync_folder
from streamdsl.jobs.job import output_exists


@contextmanager
def atomic_output(output: Path) -> Iterator[Path]:
    """Yield a temporary path beside a job's output, and rename it to the output at the end. Raises `QueryError`.

    A killed job leaves a name that begins with a dot, which readers ignore.
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
    """Rename a complete output; an existing file, or folder that is not empty, is never replaced."""
    try:
        move_new(path, output) if path.is_file() else path.rename(output)
    except OSError as error:
        if os.path.lexists(output):
            raise output_exists(output) from None
        raise error
    sync_folder(output.parent)
