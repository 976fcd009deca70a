"""A script of a user, in a process of its own: its classes travel to workers; it is killed, and its job goes on elsewhere.

One script does both, as a process with a Spark of its own takes long to start.
"""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import streamdsl as sd
from streamdsl.denote import denote
from tests.spark.conftest import OF_OTHERS
from tests.spark.helpers import history
from tests.spark.killed_job import QUERY, run
from tests.spark.streams import told_in_files

pytestmark = pytest.mark.spark

ROOT = Path(sd.__file__).parent.parent
Rows = list[tuple[Any, ...]]
SCRIPT = """
import sys
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

import streamdsl as sd
from streamdsl.spark import canonical
from tests.spark import killed_job

sys.path.insert(0, sys.argv[1])
import only_the_driver_has_this as mine


@dataclass
class Trip:
    zone: str
    fare: float


class Checked(Trip):
    def __init__(self, zone, fare):
        super().__init__(zone, fare)


class Spread(sd.UDA):
    def compute_result(self, payloads):
        return max(payloads) - min(payloads)


class Dear(sd.UDO):
    def compute_result(self, payloads):
        return [Checked(trip.zone, trip.fare) for trip in payloads if is_dear(trip)]


@dataclass
class Total:
    sum: float = 0.0
    n: int = 0


class Mean(sd.IncrementalUDA):
    def create_state(self):
        return Total()

    def add_event_to_state(self, state, payload):
        state.sum, state.n = state.sum + payload, state.n + 1
        return state

    def merge_states(self, a, b):
        a.sum, a.n = a.sum + b.sum, a.n + b.n
        return a

    def compute_result(self, state):
        return state.sum / state.n


def is_dear(trip):
    return trip.fare > mine.LIMIT


SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


rows = [(1, 5, Trip("a", 2.0)), (2, 9, Trip("a", 7.5)), (3, 4, Trip("b", 9.0))]
trips = sd.from_rows(rows)
by_label = trips.group_by(lambda e: mine.Label(str(e.zone), 1.0)).snapshot_window()
queries = {
    "class and udo": trips.where(lambda e: is_dear(e)).snapshot_window().apply(Dear()),
    "states": trips.hopping_window(4, 2).aggregate(Mean, lambda e: e.fare),
    "key, uda and module": by_label.aggregate(spread=Spread().of(lambda e: e.fare), middle=mine.Middle().of(lambda e: e.fare)),
    "result": trips.select(lambda e: mine.Label(str(e.zone), e.fare)),
}
if __name__ == "__main__":
    for name, query in queries.items():
        spark, local = query.run(engine="spark").cht(), query.run(engine="reference").cht()
        for setting in SETTINGS.items():
            SparkSession.active().conf.set(*setting)
        assert spark == local, (name, spark, local)
        assert {type(row.payload) for row in spark} == {type(row.payload) for row in local}, name
        assert len(spark) > 0, name
    print("a stream begins", file=sys.stderr, flush=True)
    session, folder = SparkSession.active(), sys.argv[2]
    fields = "le long, re long, zone string, fare double"
    session.createDataFrame([(le, re, trip.zone, trip.fare) for le, re, trip in rows], fields).write.parquet(folder + "/trips")
    streamed = (
        sd.source("trips", Trip)
        .where(is_dear)
        .group_by(lambda e: e.zone)
        .tumbling_window(10)
        .aggregate(spread=Spread().of(lambda e: e.fare), mean=Mean().of(lambda e: e.fare), mid=mine.Middle().of(lambda e: e.fare))
    )
    frames = {"trips": session.readStream.schema(fields).parquet(folder + "/trips")}
    writing = streamed.on_spark(session).write(frames, folder + "/out", folder + "/state", trigger="available-now")
    writing.awaitTermination()
    found = canonical(session.read.parquet(folder + "/out")).collect()
    expected = streamed.run({"trips": sd.from_rows(rows)}, engine="reference").cht()
    found = [tuple(float(value.toPython()) if hasattr(value, "toPython") else value for value in row) for row in found]
    assert sorted(found) == sorted((row.le, row.re, *row.payload.values()) for row in expected), (found, expected)
    print(f"{len(queries)} queries and a stream give the same rows", flush=True)
    session.conf.set("spark.sql.shuffle.partitions", "2")
    killed_job.run(session, Path(folder), killed_job.Deadly)
"""
MODULE = """
from dataclasses import dataclass

import streamdsl as sd

LIMIT = 5


@dataclass(frozen=True)
class Label:
    zone: str
    fare: float

    def __post_init__(self):
        assert self.fare > 0


class Middle(sd.UDA):
    def compute_result(self, payloads):
        return sorted(payloads)[len(payloads) // 2]
"""


def in_files(folder: Path) -> Rows:
    tables = [pq.read_table(file).drop_columns(["id"]) for file in (folder / "files").glob("le_*")]
    return sorted(tuple(row.values()) for table in tables for row in table.to_pylist())


def in_database(folder: Path) -> Rows:
    with closing(sqlite3.connect(folder / "database")) as connection:
        return sorted(connection.execute("SELECT le, re, k, n, mean FROM rows"))


def fail() -> None:
    raise RuntimeError("the power is gone")


@dataclass
class Told:
    """The rows that both tables are to have, and what they had before the script, with what it said."""

    folder: Path
    rows: Rows
    before: tuple[Rows, Rows]
    script: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def told(streaming: Any, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """A job that fails when its first micro-batch is in both tables; then the script, which goes on until it is killed."""
    folder = tmp_path_factory.mktemp("script")
    rows = history(11, 18, unending=False)
    told_in_files(rows, 2, folder / "s", seed=5)
    expected = sorted((row.le, row.re, *row.payload.values()) for row in denote(QUERY.plan(), {"s": rows}))
    with pytest.raises(Exception, match="the power is gone"):
        run(streaming, folder, after=fail)
    assert not list((folder / "checkpoint" / "commits").glob("[0-9]*"))
    before = in_files(folder), in_database(folder)
    (folder / "modules").mkdir()
    (folder / "modules" / "only_the_driver_has_this.py").write_text(MODULE)
    (folder / "script.py").write_text(SCRIPT)
    known = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    script = subprocess.run(
        [sys.executable, str(folder / "script.py"), str(folder / "modules"), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**known, "PYTHONPATH": str(ROOT), "JDK_JAVA_OPTIONS": OF_OTHERS},
        start_new_session=True,
    )
    return Told(folder, expected, before, script)


def test_classes_of_main_and_of_local_modules_travel_by_value(told: Told) -> None:
    assert told.script.stdout == "4 queries and a stream give the same rows\n", told.script.stderr[-3000:]
    shown, begins, _ = told.script.stderr.partition("a stream begins")
    assert begins
    assert not re.search("WARN |FutureWarning|log level", shown), "a session made for the query shows errors only"


def test_tables_hold_each_row_once_though_the_job_is_killed_after_them_and_between_them(streaming: Any, told: Told) -> None:
    first, again = told.before
    assert first == again != told.rows
    assert told.script.returncode == -signal.SIGKILL, told.script.stderr[-3000:]
    assert in_files(told.folder) == told.rows
    assert in_database(told.folder) == first
    run(streaming, told.folder)
    assert in_files(told.folder) == in_database(told.folder) == told.rows
