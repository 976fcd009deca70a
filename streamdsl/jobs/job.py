"""The settings of a job, which are validated before anything runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streamdsl.emit import EmitMode
from streamdsl.errors import QueryError, StreamDslError
from streamdsl.io.formats import FORMATS
from streamdsl.jobs.input_files import JobInput
from streamdsl.stream import Stream
from streamdsl.temporal import to_duration

STREAM_FORMATS: Final = ("table", "events")
BAD_FILES: Final = ("stop", "skip")


@dataclass(frozen=True, slots=True)
class Job:
    """A query from files to files: a batch job, or with a `checkpoint` a streaming job."""

    query: Stream[Any]
    inputs: Mapping[str, JobInput]
    output: Path
    format: str
    checkpoint: Path | None = None
    trigger: str = "available-now"
    emit: EmitMode = "speculative"
    every: int | str | None = None
    until: int | str | None = None
    shards: int | None = None
    bad_files: str = "stop"

    def __post_init__(self) -> None:
        _ = self.pause
        if self.checkpoint is None:
            self._check_batch()
        elif self.format not in STREAM_FORMATS:
            raise QueryError(f"a stream is written as {' or '.join(STREAM_FORMATS)}, not as {self.format!r}")
        elif self.until is not None:
            raise QueryError("a stream has no end, so --until is for a run without --checkpoint")

    @property
    def pause(self) -> int | None:
        """Milliseconds between two polls for files; None: the job processes the files that exist, and ends."""
        return None if self.trigger == "available-now" else milliseconds(self.trigger)

    def _check_batch(self) -> None:
        if self.format not in FORMATS:
            raise QueryError(
                f"the output's format is one of {', '.join(FORMATS)}, not {self.format!r}",
                hint=f"{' and '.join(STREAM_FORMATS)} are what streams write: --checkpoint DIR",
            )
        if (self.emit, self.every, self.trigger, self.bad_files) != ("speculative", None, "available-now", "stop"):
            raise QueryError(
                "--emit, --every, --trigger and --bad-files are for streams", hint="--checkpoint DIR makes the job a stream"
            )
        if os.path.lexists(self.output):
            raise output_exists(self.output)


def output_exists(output: Path) -> QueryError:
    """Return the error for an output that exists, as nothing is overwritten."""
    return QueryError(f"the output {output} exists already", hint="remove it, or name another --output")


def milliseconds(text: str) -> int:
    """Return a duration in milliseconds, written as in this library or as in Spark.

    >>> milliseconds("10 seconds"), milliseconds("1m30s")
    (10000, 90000)
    """
    number, _, unit = text.strip().partition(" ")
    short = {"milli": "ms", "secon": "s", "minut": "m", "hour": "h", "hours": "h"}.get(unit[:5], unit)
    try:
        return to_duration(f"{number}{short}", "ms")
    except StreamDslError:
        raise QueryError(f"{text!r} is no trigger", hint='--trigger available-now, or such as "10 seconds"') from None
