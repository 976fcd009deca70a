"""Batch jobs on the local engine."""

from __future__ import annotations

from pathlib import Path

from streamdsl.io.formats import FORMATS
from streamdsl.jobs.job import Job


def run_batch(job: Job, path: Path) -> int:
    """Run a job over all files of its inputs, write the history to a path, and return its number of rows."""
    bindings = {name: given.read(given.files()) for name, given in job.inputs.items()}
    result = job.query.run(bindings, until=job.until)
    if not job.output.suffix:
        path.mkdir()
        path = path / f"rows{FORMATS[job.format].suffixes[0]}"
    FORMATS[job.format].save(result, path)
    return len(result)
