"""Jobs over files, of the command line, on Spark."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Observation, SparkSession
from pyspark.sql.functions import coalesce, col, count, lit, regexp_extract, replace, try_url_decode, when

from streamdsl.errors import QueryError, StreamDslError
from streamdsl.io.files import SparkFormat
from streamdsl.io.formats import FORMATS, on_spark
from streamdsl.io.partition_folders import NULL, below, check_same, partition_values, unescaped
from streamdsl.sinks.paths import uri_of
from streamdsl.spark.job_descriptions import described, title_of
from streamdsl.spark.micro_batches import storable, writable
from streamdsl.spark.sinks import ParquetTable
from streamdsl.spark.spark_session import default_session, translated
from streamdsl.spark.stream_metrics import Meter
from streamdsl.spark.streaming.streaming_frame import PROVIDER, ROCKSDB
from streamdsl.spark.time_columns import is_date
from streamdsl.temporal import Unit
from streamdsl.temporal.pandas_frames import LIFETIME

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming import StreamingQuery

    from streamdsl.jobs.arriving_files import ArrivingFiles
    from streamdsl.jobs.input_files import JobInput
    from streamdsl.jobs.job import Job

_SPECIAL: Final = re.compile(r"[\[\]{}*?\\]")
"""The characters that Spark takes for a glob pattern unless they are escaped."""
_EVER: Final = "36500d"
"""By default Spark ignores files that are a week older than the newest one that it has seen."""
_POLL_SECONDS: Final = 0.1
_TYPES: Final = {"any bool": "boolean", "any int": "bigint", "any float": "double", "date": "date"}
"""The types that texts of folders' names are cast to, by the kind that is declared."""


def run_batch(job: Job, path: Path) -> int:
    """Run a job over all files of its inputs, write the history to a folder, and return its number of rows."""
    written = on_spark(FORMATS[job.format])
    with _session() as spark, _as_streamdsl_errors(), translated():
        frames = {name: _frame(spark, given) for name, given in job.inputs.items()}
        seen = Observation()
        out = writable(storable(job.query.on_spark(spark).batch(frames, job.until))).observe(seen, count(lit(1)).alias("rows"))
        with described(spark, _title(job)):
            out.write.format(written.name).options(**written.writing).save(uri_of(path))
        return int(seen.get["rows"])


def run_stream(job: Job, report: Callable[[dict[str, Any]], None], arrivals: ArrivingFiles) -> None:
    """Run a job over arriving files, until all are processed or for ever, by its trigger."""
    assert job.checkpoint is not None
    arrivals.poll()
    with _session() as spark, _as_streamdsl_errors(), translated():
        if job.shards is not None:
            spark.conf.set("spark.sql.shuffle.partitions", str(job.shards))
        spark.conf.set(PROVIDER, ROCKSDB)
        frames = {name: _stream(spark, given, arrivals.folder(name)) for name, given in job.inputs.items()}
        sink: Any = uri_of(job.output) if job.format == "events" else ParquetTable(job.output, job.every)
        trigger = "available-now" if job.pause is None else f"{job.pause} milliseconds"
        query, name, unit = job.query.on_spark(spark), _title(job), _unit(job, frames)
        running = query.write(frames, sink, uri_of(job.checkpoint), emit=job.emit, trigger=trigger, name=name)
        _watch(running, lambda figures: report({**figures, "unit": unit}), arrivals.poll, job.pause)


def _unit(job: Job, frames: Mapping[str, DataFrame]) -> Unit | None:
    """Return the unit of the CTIs that are reported: that of the sources, or of the dates in their files."""
    for name, frame in frames.items():
        if declared := job.inputs[name].source.time_unit:
            return declared
        if any(is_date(each.dataType.simpleString()) for each in frame.schema if each.name in LIFETIME):
            return "us"
    return None


def _title(job: Job) -> str:
    return f"{title_of(job.query.plan())} to {job.output}"


def _watch(
    running: StreamingQuery, report: Callable[[dict[str, Any]], None], poll: Callable[[], None], pause: int | None
) -> None:
    """Poll for files and report each micro-batch until the stream ends; raise the error that ends it."""
    meter, last, ended, looked = Meter(), -1, False, time.monotonic()
    try:
        while not ended:
            ended = running.awaitTermination(_POLL_SECONDS)
            if pause is not None and not ended and time.monotonic() - looked >= pause / 1000:
                poll()
                looked = time.monotonic()
            for progress in running.recentProgress:
                if progress.batchId > last and (progress.numInputRows or progress.durationMs.get("addBatch") is not None):
                    report(meter(progress))
                    last = progress.batchId
    except BaseException:
        running.stop()
        raise


@contextmanager
def _as_streamdsl_errors() -> Iterator[None]:
    """Raise Spark's own errors, such as those of files and disks, as `StreamDslError` without Java's stack."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j"):
            raise
        said = str(error).partition("JVM stacktrace")[0].partition("\n\tat ")[0].strip()
        raise StreamDslError(
            f"the job has failed on Spark: {said}", hint="mend what it names; the same command goes on"
        ) from error


@contextmanager
def _session() -> Iterator[SparkSession]:
    """Yield the session of `spark-submit`, or that of this process, or a local one."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        yield SparkSession.builder.getOrCreate()
        return
    with default_session() as spark:
        yield spark


def _frame(spark: SparkSession, given: JobInput) -> DataFrame:
    """Return a frame of the files that an input has now."""
    files = [file.path for file in given.files()]
    return _with_partitions(_of_files(spark, on_spark(given.format), files), given, files, given.path)


def _of_files(spark: SparkSession, form: SparkFormat, files: Iterable[Path]) -> DataFrame:
    paths = [_SPECIAL.sub(r"\\\g<0>", uri_of(file)) for file in files]
    return spark.read.format(form.name).options(**form.reading).load(paths)


def _stream(spark: SparkSession, given: JobInput, folder: Path) -> DataFrame:
    """Return a streaming frame of the files that arrive in a folder, of any age, with the schema of those already there."""
    there = sorted(link for link in folder.rglob("*") if link.is_symlink() and link.exists())
    if not there:
        raise QueryError(f"no file of the input {given.path} can be taken yet", hint="a stream on Spark begins with one that can")
    form = on_spark(given.format)
    # In folders such as month=01 Spark would by itself make numbers and dates of what they say.
    reader = spark.readStream.format(form.name).options(**form.reading, maxFileAge=_EVER, recursiveFileLookup="true")
    return _with_partitions(reader.schema(_of_files(spark, form, there).schema).load(uri_of(folder)), given, there, folder)


def _with_partitions(frame: DataFrame, given: JobInput, files: Sequence[Path], base: Path) -> DataFrame:
    """Return a frame with the columns that the folders of its files below `base` give, as the local engine reads them."""
    from streamdsl.io.csv_files import declared_kinds

    found = [below(str(file), [str(base)]) for file in files]
    values = list(map(partition_values, found))
    for file, own in zip(files, values, strict=True):
        check_same(file, own, files[0], values[0])
    kinds = declared_kinds(given.source.payload) if values[0] else {}
    for name in (part.partition("=")[0] for part in found[0].parts[:-1]):
        if (field := unescaped(name)) in values[0]:
            value = regexp_extract(_decoded(col("_metadata.file_path")), f"(?s).*/{re.escape(name)}=([^/]*)/", 1)
            text = when(value != NULL, coalesce(_decoded(value), value))
            frame = frame.withColumn(field, text.cast(_TYPES.get(kinds.get(field, "text"), "string")))
    return frame


def _decoded(text: Column) -> Column:
    """Return a text without escapes, null where a percent sign escapes nothing."""
    return try_url_decode(replace(text, lit("+"), lit("%2B")))
