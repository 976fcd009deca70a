"""A job that runs once, on the local engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from streamdsl.extras import need_pyarrow
from streamdsl.jobs.job import Job


def run_batch(job: Job, path: Path) -> int:
    """Run a job over all that its inputs hold, write the history to a path, and return how many rows it has."""
    bindings = {name: given.read(given.files()) for name, given in job.inputs.items()}
    result = job.query.run(bindings, until=job.until)
    if not job.output.suffix:
        path.mkdir()
        path = path / f"rows.{job.format}"
    {"parquet": _parquet, "csv": _csv, "jsonl": _json_lines}[job.format](result, path)
    return len(result)


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
