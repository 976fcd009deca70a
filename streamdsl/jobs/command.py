"""The command `streamdsl run`: its options, and the job that it runs, of files or from sources to sinks."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from streamdsl.emit import EMIT_MODES
from streamdsl.errors import CheckpointError, QueryError, SinkError, StreamDslError
from streamdsl.io.formats import BY_SUFFIX, FORMATS
from streamdsl.io.locks import Lock
from streamdsl.jobs import served_job
from streamdsl.jobs.arriving_files import ArrivingFiles
from streamdsl.jobs.atomic_output import atomic_output
from streamdsl.jobs.input_options import add_input_options, query_and_inputs, ticks_or_text
from streamdsl.jobs.job import BAD_FILES, SETTINGS, STREAM_FORMATS, Job, wrong_settings
from streamdsl.jobs.mistakes import Mistakes
from streamdsl.jobs.status_line import StatusLine


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `run`."""
    add_input_options(parser, is_optional=True)
    add = parser.add_argument
    add(
        "--job",
        dest="named_job",
        metavar="NAME",
        help="options by name, in streamdsl.toml or pyproject.toml; those given here count",
    )
    add("--output", type=Path, metavar="PATH", help="where to write")
    add("--engine", choices=("local", "spark"), default="local", help="(default: %(default)s)")
    add("--format", choices=(*FORMATS, *STREAM_FORMATS), help="of the output; of streams: the history (table), or events")
    add("--checkpoint", type=Path, metavar="DIR", help="makes the job a stream, which can be stopped and run again")
    add("--trigger", default="available-now", metavar="WHEN", help='or such as "10 seconds": look for files again and again')
    add("--emit", choices=EMIT_MODES, default="speculative", help="when a stream's results go out (default: %(default)s)")
    every = "a file of the table for each stretch of LEs so long; with --sink: how long a micro-batch is, or how many rows"
    add("--every", type=ticks_or_text, metavar="DURATION", help=every)
    add(
        "--bad-files",
        choices=BAD_FILES,
        default="stop",
        help="of a stream: end at a file that cannot be taken (default), or name and pass it",
    )
    add("--shards", type=int, metavar="N", help="of a stream on Spark")
    served_job.add_options(parser)


def run_command(options: argparse.Namespace) -> int:
    """Run a job; return 0, 2 if it was refused or has failed, 130 if it was interrupted."""
    try:
        if served_job.is_served(options):
            served_job.report(served_job.job_of(options).run())
        else:
            _run(_job(options), options.engine)
    except StreamDslError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(_failed(error, options), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped" + ("; the same command goes on" if options.checkpoint else ""), file=sys.stderr)
        return 130
    return 0


def _failed(error: OSError, options: argparse.Namespace) -> SinkError:
    """Return an error of the system, such as a full disk or a read-only folder, as one whose hint names the remedy."""
    where = f": {error.filename}" if error.filename else ""
    then = "run the same command again" + (", it goes on where it was" if options.checkpoint else "")
    return SinkError(
        f"the job cannot go on: {error.strerror or error}{where}", hint=f"make room, or give it the right to write; then {then}"
    )


def _job(options: argparse.Namespace) -> Job:
    """Return the job that the options name; raises `QueryError` with all that is wrong with them."""
    mistakes = Mistakes()
    query, inputs = query_and_inputs(options, "run", mistakes, later=options.checkpoint is not None)
    settings = {name: getattr(options, name) for name in SETTINGS}
    kind = options.format or ("table" if options.checkpoint else None)
    if options.output is None:
        mistakes.note(
            [QueryError("nothing says where the answer goes", hint="--output path, or --sink address of a job of sources")]
        )
    else:
        kind = kind or mistakes.of(_format_by_name, options.output)
        mistakes.note(wrong_settings(options.output, kind, **settings))
    mistakes.refuse()
    assert query is not None
    assert kind is not None
    return Job(query, inputs, options.output, kind, **settings)


def _format_by_name(output: Path) -> str:
    """Return the format that the name of an answer ends with, Parquet for a name without an end."""
    if output.suffix and output.suffix not in BY_SUFFIX:
        known = ", ".join(BY_SUFFIX)
        raise QueryError(
            f"no format is written to {output.name!r}: of {output.suffix!r} none is known",
            hint=f"--format parquet says which; or a name that ends in one of {known}",
        )
    return BY_SUFFIX.get(output.suffix, FORMATS["parquet"]).name


def _run(job: Job, engine: str) -> None:
    begun = time.perf_counter()
    if engine == "spark":
        from streamdsl.extras import need_spark

        need_spark()
    if job.checkpoint is not None:
        line = StatusLine()
        try:
            _stream(job, engine, line)
        finally:
            line.end()
        return
    if engine == "spark":
        from streamdsl.spark.file_job import run_batch
    else:
        from streamdsl.jobs.local_batch import run_batch
    with atomic_output(job.output) as path:
        rows = run_batch(job, path)
    print(f"{rows:,} rows to {job.output} in {time.perf_counter() - begun:.1f} s", file=sys.stderr)


def _stream(job: Job, engine: str, line: StatusLine) -> None:
    if not any(given.path.is_dir() for given in job.inputs.values()):
        raise QueryError(
            "the inputs of a stream are folders in which files arrive", hint="without --checkpoint files are read once"
        )
    assert job.checkpoint is not None
    if (job.checkpoint / "served").exists():
        raise QueryError(
            f"the checkpoint {job.checkpoint} is that of a job from sources to sinks",
            hint="go on with --source and --sink, or name another one",
        )
    with Lock(job.checkpoint / "lock", f"the checkpoint {job.checkpoint}", CheckpointError) as lock:
        if engine == "spark":
            from streamdsl.spark.file_job import run_stream

            run_stream(job, line, ArrivingFiles(job, line))
        else:
            from streamdsl.extras import need_pyarrow

            need_pyarrow("the tables that streams write")
            from streamdsl.jobs.local_stream import LocalStream

            LocalStream(job, lock).run(line)
