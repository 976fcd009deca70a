"""A job that runs once, on the local engine."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamdsl.engine.state.files import move_new, sync_folder
from streamdsl.extras import need_pyarrow
from streamdsl.jobs.job import Job, taken


def run_batch(job: Job) -> int:
    """Run a job over all that its inputs hold, write the history, and return how many rows it has."""
    bindings = {name: given.read(given.files()) for name, given in job.inputs.items()}
    result = job.query.run(bindings, until=job.until)
    with whole(job.output) as path:
        if not job.output.suffix:
            path.mkdir()
            path = path / f"rows.{job.format}"
        {"parquet": _parquet, "csv": _csv, "jsonl": _json_lines}[job.format](result, path)
    return len(result)


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


def _parquet(result: Any, path: Path) -> None:
    need_pyarrow("Parquet files")
    import pyarrow.parquet as pq

    pq.write_table(result.to_arrow(), path)


def _csv(result: Any, path: Path) -> None:
    result.to_pandas().to_csv(path, index=False)


def _json_lines(result: Any, path: Path) -> None:
    need_pyarrow("files of JSON lines")
    with path.open("w", encoding="utf-8") as file:
        for row in result.to_arrow().to_pylist():
            file.write(json.dumps(row, default=str, ensure_ascii=False) + "\n")
