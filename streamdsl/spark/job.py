"""Jobs of the command line on Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Observation, SparkSession
from pyspark.sql.functions import count, lit

from streamdsl.errors import QueryError
from streamdsl.sinks.paths import uri_of
from streamdsl.spark.micro_batches import storable, writable
from streamdsl.spark.progress import Meter
from streamdsl.spark.session import default_session, translated
from streamdsl.spark.sinks import ParquetTable
from streamdsl.spark.streaming.stream import PROVIDER, ROCKSDB

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

    from streamdsl.jobs.inputs import Input
    from streamdsl.jobs.job import Job

_OPTIONS: Final = {
    "parquet": {},
    "csv": {"header": "true", "inferSchema": "true"},
    "jsonl": {"inferTimestamp": "true"},
}
_FORMATS: Final = {"jsonl": "json"}
_SUFFIXES: Final = {"parquet": "*.parquet", "csv": "*.csv", "jsonl": "*.{jsonl,ndjson,json}"}
_LOOK: Final = 0.1


def run_batch(job: Job) -> int:
    """Run a job over all that its inputs hold, write the history to a folder, and return how many rows it has."""
    with _session() as spark, translated():
        frames = {name: _frame(spark, given) for name, given in job.inputs.items()}
        seen = Observation()
        out = writable(storable(job.query.on_spark(spark).batch(frames, job.until))).observe(seen, count(lit(1)).alias("rows"))
        writer = out.write.option("header", "true") if job.format == "csv" else out.write
        writer.format(_FORMATS.get(job.format, job.format)).save(uri_of(job.output))
        return int(seen.get["rows"])


def run_stream(job: Job, report: Callable[[dict[str, Any]], None]) -> None:
    """Run a job over the files that come, until there are no more or for ever, as its trigger says."""
    assert job.checkpoint is not None
    if (job.checkpoint / "local").exists():
        raise QueryError(
            f"the checkpoint {job.checkpoint} is that of a stream on the local engine", hint="go on with --engine local"
        )
    with _session() as spark, translated():
        if job.shards is not None:
            spark.conf.set("spark.sql.shuffle.partitions", str(job.shards))
        spark.conf.set(PROVIDER, ROCKSDB)
        frames = {name: _stream(spark, given) for name, given in job.inputs.items()}
        sink: Any = uri_of(job.output) if job.format == "events" else ParquetTable(job.output, job.every)
        trigger = "available-now" if job.pause is None else f"{job.pause} milliseconds"
        running = job.query.on_spark(spark).write(frames, sink, uri_of(job.checkpoint), emit=job.emit, trigger=trigger)
        _watch(running, report)


def _watch(running: StreamingQuery, report: Callable[[dict[str, Any]], None]) -> None:
    """Report each micro-batch until the stream ends; raise what ends it."""
    meter, last, ended = Meter(), -1, False
    try:
        while not ended:
            ended = running.awaitTermination(_LOOK)
            for progress in running.recentProgress:
                if progress.batchId > last and (progress.numInputRows or progress.durationMs.get("addBatch") is not None):
                    report(meter(progress))
                    last = progress.batchId
    except KeyboardInterrupt:
        running.stop()
        raise


@contextmanager
def _session() -> Iterator[SparkSession]:
    """Give the session of `spark-submit`, else the one of this process, else a local one."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        yield SparkSession.builder.getOrCreate()
        return
    with default_session() as spark:
        yield spark


def _frame(spark: SparkSession, given: Input) -> DataFrame:
    options = {**_OPTIONS[given.kind], "recursiveFileLookup": "true", "pathGlobFilter": _SUFFIXES[given.kind]}
    return spark.read.format(_FORMATS.get(given.kind, given.kind)).options(**options).load(uri_of(given.path))


def _stream(spark: SparkSession, given: Input) -> DataFrame:
    """Return a streaming frame of files, with the columns of those that are there."""
    options = {**_OPTIONS[given.kind], "recursiveFileLookup": "true", "pathGlobFilter": _SUFFIXES[given.kind]}
    columns = _frame(spark, given).schema
    reader = spark.readStream.format(_FORMATS.get(given.kind, given.kind)).options(**options)
    return reader.schema(columns).load(uri_of(given.path))
