"""The settings of a job, which are validated before anything runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streamdsl.emit import EmitMode
from streamdsl.errors import QueryError, StreamDslError
from streamdsl.io.formats import FORMATS
from streamdsl.jobs.input_files import JobInput
from streamdsl.jobs.mistakes import Mistakes
from streamdsl.stream import Stream
from streamdsl.temporal import to_duration

STREAM_FORMATS: Final = ("table", "events")
BAD_FILES: Final = ("stop", "skip")
SETTINGS: Final = ("checkpoint", "trigger", "emit", "every", "until", "shards", "bad_files")
"""The settings of a job besides its query, its inputs, its output and the format of that."""


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
        mistakes = Mistakes()
        mistakes.note(wrong_settings(self.output, self.format, **{name: getattr(self, name) for name in SETTINGS}))
        mistakes.refuse()

    @property
    def pause(self) -> int | None:
        """Milliseconds between two polls for files; None: the job processes the files that exist, and ends."""
        return None if self.trigger == "available-now" else milliseconds(self.trigger)


def wrong_settings(
    output: Path,
    format: str | None,
    checkpoint: Path | None,
    trigger: str,
    emit: EmitMode,
    every: int | str | None,
    until: int | str | None,
    shards: int | None,
    bad_files: str,
) -> Iterator[QueryError]:
    """Yield what is wrong with the settings of a job, whose `format` may not be known."""
    if trigger != "available-now":
        try:
            milliseconds(trigger)
        except QueryError as error:
            yield error
    if checkpoint is None:
        if format is not None and format not in FORMATS:
            yield QueryError(
                f"the output's format is one of {', '.join(FORMATS)}, not {format!r}",
                hint=f"{' and '.join(STREAM_FORMATS)} are what streams write: --checkpoint DIR",
            )
        if (emit, every, trigger, bad_files) != ("speculative", None, "available-now", "stop"):
            yield QueryError(
                "--emit, --every, --trigger and --bad-files are for streams", hint="--checkpoint DIR makes the job a stream"
            )
        if os.path.lexists(output):
            yield output_exists(output)
        return
    if format is not None and format not in STREAM_FORMATS:
        yield QueryError(f"a stream is written as {' or '.join(STREAM_FORMATS)}, not as {format!r}")
    if until is not None:
        yield QueryError("a stream has no end, so --until is for a run without --checkpoint")


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
