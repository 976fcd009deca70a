"""Streams that are killed at random moments and started again at once, into each kind of sink, against the reference.

`python -m tests.spark.kills 60` kills sixty times (`kill -9`), in the job of each sink in turn: all processes, the JVM alone, or
one of Spark's Python workers. A job is a process of its own with a Spark of its own; its query has retractions, and state in two
shards. It is killed some seconds after it has finished a micro-batch or, one time in four, after its stream has started, which
the next start has to mend as well. In the end each job runs until all is read, and what its sink holds is compared with what the
definition says. `--sinks delta,log` names some of the sinks. Needs Java.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from streamdsl.denote import denote
from tests.spark.conftest import FAST, JAVA
from tests.spark.helpers import history
from tests.spark.killed_job import QUERY
from tests.spark.streams import PHYSICAL, PROVIDER, ROCKSDB, told_in_files

ROOT: Final = Path(__file__).parents[2]
ROWS: Final = 12
"""Rows of the input for each file, which is a micro-batch."""
FILES: Final = 4
"""Files of the input for each kill of a job."""
VICTIMS: Final = ("all", "all", "JVM", "worker")


@dataclass(frozen=True)
class SinkOfJob:
    """A sink in a folder, and how the rows that it means are read from there: LE, RE (None: INFINITY), and the payload."""

    open: Callable[[Path], Any]
    rows: Callable[[Any, Path], list[tuple[Any, ...]]]


class Log:
    """A log such as one of Kafka's: what is appended stays, a micro-batch that comes again is there again, with its keys."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, frame: Any, batch: int) -> None:
        lines = []
        for row in frame.drop("shard").collect():
            event = row.asDict()
            key = [batch, *(event[name] for name in ("kind", "id", "le", "re", "re_new"))]
            lines.append(json.dumps({"key": key, "value": event}))
        with self.path.open("a") as file:  # a line that was cut off ends where the next ones begin
            file.write("\n" + "\n".join(lines) + "\n")


def log_rows(spark: Any, folder: Path) -> list[tuple[Any, ...]]:
    events = {}
    for line in (folder / "log").read_text().splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        events[json.dumps(found["key"])] = found["value"]
    return meant(spark, pa.Table.from_pylist(list(events.values())))


def meant(spark: Any, events: pa.Table) -> list[tuple[Any, ...]]:
    """Return the rows that physical events mean."""
    from streamdsl.spark import canonical

    schema = pa.schema([each.with_type(pa.int64()) if each.name in ("re", "re_new") else each for each in events.schema])
    return list(map(tuple, canonical(spark.createDataFrame(events.cast(schema))).collect()))


def folder_rows(spark: Any, folder: Path) -> list[tuple[Any, ...]]:
    return meant(spark, spark.read.parquet(str(folder / "out")).toArrow())


def table_rows(spark: Any, folder: Path) -> list[tuple[Any, ...]]:
    return [tuple(row.values())[1:] for row in pq.read_table(folder / "out").to_pylist()]


def database_rows(spark: Any, folder: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "out")) as connection:
        return connection.execute("SELECT le, re, k, n, mean FROM rows").fetchall()


def delta(folder: Path) -> Any:
    from streamdsl.spark import DeltaEvents

    return DeltaEvents(folder / "out")


def delta_rows(spark: Any, folder: Path) -> list[tuple[Any, ...]]:
    from deltalake import DeltaTable

    return meant(spark, DeltaTable(folder / "out").to_pyarrow_table())


def catalog(folder: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    found = SqlCatalog("here", uri=f"sqlite:///{folder}/catalog", warehouse=f"file://{folder}")
    found.create_namespace_if_not_exists("db")
    return found


def iceberg(folder: Path) -> Any:
    from streamdsl.spark import IcebergEvents

    return IcebergEvents(lambda: catalog(folder), "db.out")


def iceberg_rows(spark: Any, folder: Path) -> list[tuple[Any, ...]]:
    return meant(spark, catalog(folder).load_table("db.out").scan().to_arrow())


def parquet(folder: Path) -> Any:
    from streamdsl.spark import ParquetTable

    return ParquetTable(folder / "out", every=10)


def database(folder: Path) -> Any:
    from streamdsl.spark import DatabaseTable

    return DatabaseTable(lambda: sqlite3.connect(folder / "out"), "rows")


SINKS: Final = {
    "folder": SinkOfJob(lambda folder: str(folder / "out"), folder_rows),
    "ParquetTable": SinkOfJob(parquet, table_rows),
    "DatabaseTable": SinkOfJob(database, database_rows),
    "delta": SinkOfJob(delta, delta_rows),
    "iceberg": SinkOfJob(iceberg, iceberg_rows),
    "log": SinkOfJob(lambda folder: Log(folder / "log"), log_rows),
}


def run_job(name: str, folder: Path, files: int) -> None:
    """Write the rest of what the files mean into a sink, so many files at once; tell how far it is, then what the sink means."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for setting in {**FAST, PROVIDER: ROCKSDB, "spark.sql.shuffle.partitions": "2"}.items():
        builder = builder.config(*setting)
    spark, sink = builder.getOrCreate(), SINKS[name]
    frame = spark.readStream.schema(PHYSICAL).option("maxFilesPerTrigger", files).parquet(str(folder / "s"))
    running = QUERY.on_spark(spark).write(frame, sink.open(folder), folder / "checkpoint", trigger="available-now")
    print("begun", flush=True)
    while running.lastProgress is None and not running.awaitTermination(0.05):
        pass
    print("finished", flush=True)
    running.awaitTermination()
    print("rows", json.dumps(sink.rows(spark, folder)), flush=True)


@dataclass
class Fate:
    """What became of the job of a sink."""

    folder: Path
    kills: Counter[str] = field(default_factory=Counter)
    within: int = 0
    failed: list[str] = field(default_factory=list)
    found: Counter[str] = field(default_factory=Counter)


class Job:
    """A job, in a session of processes of its own."""

    def __init__(self, name: str, folder: Path, files: int = 1) -> None:
        known = {key: value for key, value in os.environ.items() if "SPARK" not in key}
        known |= {"PYTHONPATH": str(ROOT), "JDK_JAVA_OPTIONS": JAVA, "PYSPARK_PYTHON": sys.executable}
        self.errors = (folder / "errors").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.kills", name, str(folder), str(files)],
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            cwd=ROOT,
            env=known,
            start_new_session=True,
        )

    def lines(self) -> Iterator[str]:
        """Yield what the job tells, until it ends."""
        assert self.process.stdout is not None
        yield from map(str.rstrip, self.process.stdout)

    def processes(self) -> dict[int, str]:
        """Return the job's processes with their commands; Spark's workers leave its group, but not its session."""
        found = {}
        for each in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                state, _, _, session, *_ = (each / "stat").read_text().rpartition(")")[2].split()
                if int(session) == self.process.pid and state != "Z":
                    found[int(each.name)] = (each / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return found

    def kill(self, victim: str, rng: random.Random) -> None:
        """Kill all processes, the JVM, or one of the Python workers (all, where none is there)."""
        found = self.processes()
        mark = "org.apache.spark" if victim == "JVM" else "worker_daemon"
        chosen = [] if victim == "all" else [pid for pid, command in found.items() if mark in command]
        for pid in [rng.choice(chosen)] if chosen else found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def end(self) -> str:
        """Wait some seconds until the job has ended, kill what is left of it, and return what it has said of errors."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(15)
        while self.processes():
            self.kill("all", random.Random())
        self.process.wait()
        self.errors.seek(0)
        return self.errors.read()


def run_until_killed(name: str, fate: Fate, victim: str, rng: random.Random) -> None:
    """Run a job and kill it at some moment; note that, or the errors of one that fails before."""
    job, moment = Job(name, fate.folder), "begun" if rng.random() < 0.25 else "finished"
    is_killed = moment in job.lines()
    if is_killed:
        time.sleep(rng.random() * 4)
        job.kill(victim, rng)
    said = job.end()
    if not is_killed:
        fate.failed.append(said)
        return
    begun, committed = (
        {file.name for file in (fate.folder / "checkpoint" / part).glob("[0-9]*")} for part in ("offsets", "commits")
    )
    fate.kills[victim] += 1
    fate.within += bool(begun - committed)


def run_to_the_end(name: str, fate: Fate, expected: Counter[str]) -> None:
    """Run a job to its end, and note how many rows its sink lacks, and how many are too many."""
    job = Job(name, fate.folder, FILES)
    rows = [line.removeprefix("rows ") for line in job.lines() if line.startswith("rows ")]
    said = job.end()
    if rows:
        found = Counter(map(json.dumps, json.loads(rows[0])))
        fate.found = Counter(rows=found.total(), lost=(expected - found).total(), doubled=(found - expected).total())
    else:
        fate.failed.append(said)


def main(kills: int, names: list[str], seed: int = 0) -> None:
    """Kill jobs, and print the table."""
    rng, files = random.Random(seed), FILES * (kills // len(names) + 2)
    rows = history(seed, ROWS * files, unending=False)
    expected = Counter(json.dumps([row.le, row.re, *row.payload.values()]) for row in denote(QUERY.plan(), {"s": rows}))
    with tempfile.TemporaryDirectory(prefix="kills-") as place:
        fates = {name: Fate(Path(place) / name) for name in names}
        for fate in fates.values():
            told_in_files(rows, files, fate.folder / "s", seed)
        for n, (name, fate) in zip(range(kills), itertools.cycle(fates.items()), strict=False):
            victim, before = rng.choice(VICTIMS), time.monotonic()
            run_until_killed(name, fate, victim, rng)
            seconds = time.monotonic() - before
            print(f"{n + 1} of {kills}: {name}, {victim}, {seconds:.0f} s, {fate}"[:1000], file=sys.stderr, flush=True)
        print("| sink | all killed | the JVM | a worker | within a micro-batch | failed starts | rows | lost | doubled |")
        print("|---|---|---|---|---|---|---|---|---|")
        for name, fate in fates.items():
            run_to_the_end(name, fate, expected)
            cells: list[object] = [*(fate.kills[victim] for victim in ("all", "JVM", "worker")), fate.within, len(fate.failed)]
            cells += [fate.found[what] if fate.found else "?" for what in ("rows", "lost", "doubled")]
            print(f"| {name} | {' | '.join(map(str, cells))} |", flush=True)
            print(*fate.failed, sep="\n", file=sys.stderr, flush=True)


if __name__ == "__main__":
    first, *rest = sys.argv[1:] or ["60"]
    if first.isdigit():
        main(int(first), rest[1].split(",") if rest[:1] == ["--sinks"] else [*SINKS])
    else:
        run_job(first, Path(rest[0]), int(rest[1]))
