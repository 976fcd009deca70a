"""Code on the workers: classes of `__main__`, of modules that the workers do not have, and what cannot travel."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import types
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark import cloudpickle

import streamdsl as sd
from streamdsl.errors import UnsupportedOnSpark
from streamdsl.spark import explain_spark
from streamdsl.spark.shipping import by_value, dump_values, load_values
from tests.spark.conftest import JAVA
from tests.spark.helpers import stream

pytestmark = pytest.mark.spark

SCRIPT = """
import sys
from dataclasses import dataclass

from pyspark.sql import SparkSession

import streamdsl as sd
from streamdsl.spark import canonical

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
queries = {
    "class": trips.where(lambda e: is_dear(e)),
    "uda": trips.group_by(lambda e: e.zone).snapshot_window().aggregate(Spread, lambda e: e.fare),
    "udo": trips.snapshot_window().apply(Dear()),
    "states": trips.hopping_window(4, 2).aggregate(Mean, lambda e: e.fare),
    "module": trips.snapshot_window().aggregate(mine.Middle, lambda e: e.fare),
    "result": trips.select(lambda e: mine.Label(str(e.zone), e.fare)),
    "key": trips.group_by(lambda e: mine.Label(str(e.zone), 1.0)).snapshot_window().aggregate(n=sd.count()),
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
    session.createDataFrame([(le, re, trip.zone, trip.fare) for le, re, trip in rows], fields).write.parquet(folder + "/in")
    streamed = (
        sd.source("trips", Trip)
        .where(is_dear)
        .group_by(lambda e: e.zone)
        .tumbling_window(10)
        .aggregate(spread=Spread().of(lambda e: e.fare), mean=Mean().of(lambda e: e.fare), mid=mine.Middle().of(lambda e: e.fare))
    )
    frames = {"trips": session.readStream.schema(fields).parquet(folder + "/in")}
    writing = streamed.on_spark(session).write(frames, folder + "/out", folder + "/checkpoint", trigger="available-now")
    writing.awaitTermination()
    found = canonical(session.read.parquet(folder + "/out")).collect()
    expected = streamed.run({"trips": sd.from_rows(rows)}, engine="reference").cht()
    found = [tuple(float(value.toPython()) if hasattr(value, "toPython") else value for value in row) for row in found]
    assert sorted(found) == sorted((row.le, row.re, *row.payload.values()) for row in expected), (found, expected)
    print(f"{len(queries)} queries and a stream give the same rows")
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


FOR_FEW_ROWS = " ".join(
    [
        JAVA,
        "-Dspark.sql.codegen.wholeStage=false",
        "-Dspark.sql.codegen.factoryMode=NO_CODEGEN",
        "-Dspark.sql.adaptive.enabled=false",
        "-Dspark.sql.lightweightPlanChangeValidation=false",
        "-Dspark.sql.ui.explainMode=simple",
        "-Dspark.python.sql.dataFrameDebugging.enabled=false",
    ]
)


def test_classes_of_main_and_of_local_modules_travel_by_value(tmp_path: Path) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "only_the_driver_has_this.py").write_text(MODULE)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    root = str(Path(sd.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "modules"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**_outside(), "PYTHONPATH": root, "JDK_JAVA_OPTIONS": FOR_FEW_ROWS},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "7 queries and a stream give the same rows\n"
    shown, begins, _ = done.stderr.partition("a stream begins")
    assert begins
    assert not re.search("WARN |FutureWarning|log level", shown), "a session made for the query shows errors only"


def _outside() -> dict[str, str]:
    """Return the environment without what a session has added to it."""
    return {name: value for name, value in os.environ.items() if "SPARK" not in name}


class Locked(sd.UDA[float, float]):
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def compute_result(self, payloads: Sequence[float]) -> float:
        return max(payloads)


class Free(sd.UDA[float, float]):
    def compute_result(self, payloads: Sequence[float]) -> float:
        return min(payloads)


def test_what_cannot_travel_is_refused_before_anything_runs(spark: Any) -> None:
    query = stream().snapshot_window().aggregate(Locked(), lambda e: e.f)
    with pytest.raises(UnsupportedOnSpark, match=r"window_aggregate_1 \(Locked\) cannot be sent"):
        query.run({"s": []}, engine="spark")
    assert explain_spark(query.plan())["window_aggregate_1"].startswith("unsupported: ")


def test_of_several_modules_that_which_cannot_travel_is_named() -> None:
    both = stream().group_by("k").snapshot_window().aggregate(a=Free().of(lambda e: e.f), b=Locked().of(lambda e: e.f))
    assert "window_aggregate_1 (Locked) cannot be sent" in explain_spark(both.plan())["window_aggregate_1"]


def test_values_come_back_as_they_went() -> None:
    values: list[Any] = [None, 1, 2**80, "x", float("inf"), (1, "a"), {"a": [1]}, sd.Record(a=1), {1, 2}, b"x", 1.5 + 2j]
    assert load_values(dump_values(values)) == values


def test_local_modules_travel_by_value_and_packages_of_the_user_do_not() -> None:
    local, installed = types.ModuleType("of_two_names"), types.ModuleType("of_the_user")
    local.__file__, installed.__file__ = "/home/me/of_two_names.py", "/home/me/.local/lib/python3/site-packages/of_the_user.py"
    with patch.dict(sys.modules, {"of_two_names": local, "its_other_name": local, "of_the_user": installed}):
        with by_value():
            known = cloudpickle.list_registry_pickle_by_value()
        assert {"of_two_names", "of_the_user"} & known == {"of_two_names"}
    assert "of_two_names" not in cloudpickle.list_registry_pickle_by_value()


def test_what_workers_cannot_import_is_said_before_the_job_starts(spark: Any, tmp_path: Path) -> None:
    """A module that only this process has; then the workers get it, zipped."""
    module = types.ModuleType("given_to_workers_later")
    with patch.dict(sys.modules, {module.__name__: module}):
        exec(MODULE, module.__dict__)
        both = stream().group_by("k").snapshot_window().aggregate(a=Free().of(lambda e: e.f), b=module.Middle().of(lambda e: e.f))
        with pytest.raises(UnsupportedOnSpark, match=r"Middle cannot be loaded by .*No module named 'given_to_workers_later'"):
            both.on_spark(spark).check()
    with zipfile.ZipFile(tmp_path / "modules.zip", "w") as file:
        file.writestr(f"{module.__name__}.py", MODULE)
    spark.addArtifact(str(tmp_path / "modules.zip"), pyfile=True)
    with patch.dict(sys.modules, {module.__name__: module}):
        both.on_spark(spark).check()
