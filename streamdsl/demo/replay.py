"""Replay of the demo's reports as files into streaming queries on Spark, in a job that is killed half-way and resumed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import streamdsl as sd
from streamdsl.demo.data import UNIT, Data, Feed
from streamdsl.demo.queries import QUESTIONS, Question
from streamdsl.errors import StreamDslError
from streamdsl.expr.schema import Schema
from streamdsl.io.data_frames import events_to_pandas

REPLAYED: Final = tuple(question for question in QUESTIONS if question.letter in "ad")
"""The questions that are streamed: counts per carrier, and a join of two streams in two stages."""
FILES: Final = 3
_KILLED_AT: Final = FILES // 2
_LIMIT: Final = 600
_STDERR: Final = 2
_SETTINGS: Final = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""For few rows: compiling queries would take longer than running them."""
_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class ReplayError(StreamDslError):
    """The streaming job did not end as it should."""


def replay(data: Data, folder: Path, questions: Sequence[Question]) -> None:
    """Stream the reports file by file, in a job that is killed with all its processes within a micro-batch; then resume it.

    This process resumes the job, from nothing but the files of the killed one.
    """
    shutil.rmtree(folder, ignore_errors=True)
    feeds = data.feeds()
    for name in sorted({name for question in questions for name in question.sources}):
        write_reports(feeds[name], folder / "reports" / name)
    with (folder / "log.txt").open("wb") as log:
        job = _start(folder, questions, log)
        _wait_for(job, folder / "state" / questions[-1].name, _KILLED_AT)
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    _run(folder, questions)


def write_reports(feed: Feed, folder: Path) -> None:
    """Write a stream's events as files in order of arrival, with increasing modification times, by which Spark orders them."""
    folder.mkdir(parents=True)
    schema = Schema.of_payload(next(event.payload for event in feed.events if isinstance(event, sd.Insert)))
    events = [*feed.events, sd.Cti(sd.INFINITY)]
    size = -(-len(events) // FILES)
    for part in range(FILES):
        file = folder / f"{part}.parquet"
        events_to_pandas(events[part * size : (part + 1) * size], UNIT, schema).to_parquet(file, index=False)
        os.utime(file, (10**9 + part, 10**9 + part))


def replayed(question: Question, folder: Path) -> sd.CHT[Any]:
    """Return the history that a streaming query has written."""
    import pyarrow.parquet as pq

    schema = question.query.plan().schema
    assert schema is not None
    rows = pq.read_table(folder / "histories" / question.name, columns=["le", "re", *schema.names]).to_pylist()
    cht = [(_seconds(row["le"]), _seconds(row["re"]), schema.build([row[name] for name in schema.names])) for row in rows]
    return sd.CHT.from_rows(cht, UNIT)


def _seconds(time: datetime | None) -> int:
    return sd.INFINITY if time is None else int(time.timestamp())


def _start(folder: Path, questions: Sequence[Question], log: Any) -> subprocess.Popen[bytes]:
    environment = {"PYSPARK_PYTHON": sys.executable, "JDK_JAVA_OPTIONS": _JAVA, **os.environ}
    command = [sys.executable, "-m", "streamdsl.demo.replay", str(folder), *(question.letter for question in questions)]
    return subprocess.Popen(command, env=environment, start_new_session=True, stdout=log, stderr=log)


def _wait_for(job: subprocess.Popen[bytes], checkpoint: Path, batch: int) -> None:
    """Wait until a micro-batch has begun."""
    deadline = time.monotonic() + _LIMIT
    while not (checkpoint / "offsets" / str(batch)).exists():
        if job.poll() is not None or time.monotonic() > deadline:
            raise ReplayError(f"the streaming job has not come to micro-batch {batch}: {checkpoint.parents[1]}/log.txt says why")
        time.sleep(0.02)


def _run(folder: Path, questions: Sequence[Question]) -> None:
    """Run the streaming queries over all files from their checkpoints, and fold their output into histories."""
    from streamdsl.spark.spark_session import default_session

    with ExitStack() as stack:
        with _errors_into(folder / "log.txt"):  # Spark's processes inherit standard error when they start
            spark = stack.enter_context(default_session()).newSession()
        for name, value in _SETTINGS.items():
            spark.conf.set(name, value)
        running = [_start_query(spark, folder, question) for question in questions]
        for question, query in zip(questions, running, strict=True):
            query.awaitTermination()
            _fold(spark, folder, question)


@contextmanager
def _errors_into(path: Path) -> Iterator[None]:
    """Append the standard error of processes that start meanwhile to a file."""
    terminal = os.dup(_STDERR)
    with path.open("ab") as file:
        os.dup2(file.fileno(), _STDERR)
    try:
        yield
    finally:
        os.dup2(terminal, _STDERR)
        os.close(terminal)


def _start_query(spark: Any, folder: Path, question: Question) -> Any:
    out = question.query.on_spark(spark).stream(_frames(spark, folder / "reports", question))
    writer = out.writeStream.format("parquet").option("path", str(folder / "out" / question.name))
    return writer.option("checkpointLocation", str(folder / "state" / question.name)).trigger(availableNow=True).start()


def _fold(spark: Any, folder: Path, question: Question) -> None:
    from streamdsl.spark import canonical

    written = spark.read.parquet(str(folder / "out" / question.name))
    canonical(written).write.mode("overwrite").parquet(str(folder / "histories" / question.name))


def _frames(spark: Any, folder: Path, question: Question) -> Mapping[str, Any]:
    schemas = {name: spark.read.parquet(str(folder / name)).schema for name in question.sources}
    reader = spark.readStream.option("maxFilesPerTrigger", 1)
    return {name: reader.schema(schema).parquet(str(folder / name)) for name, schema in schemas.items()}


if __name__ == "__main__":
    _run(Path(sys.argv[1]), [question for question in REPLAYED if question.letter in sys.argv[2:]])
