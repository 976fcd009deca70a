"""A cluster of three executors, each a JVM with Python workers of its own: code travels to all, state stays where its shard is.

The script is a process of its own, since the session of the other tests has one executor.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import streamdsl as sd
from tests.spark.conftest import JAVA

pytestmark = pytest.mark.spark

ROOT = Path(sd.__file__).parent.parent
SCRIPT = """
import sys
from dataclasses import dataclass
from pathlib import Path

from pyspark import SparkConf
from pyspark.sql import SparkSession

import beside_the_script as mine
import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.spark import canonical
from tests.spark.conftest import FAST
from tests.spark.helpers import history
from tests.spark.streams import PROVIDER, ROCKSDB, frame_of, told_in_files


@dataclass
class Total:
    sum: int = 0
    n: int = 0


class Mean(sd.IncrementalUDA):
    def create_state(self):
        return Total()

    def add_event_to_state(self, state, payload):
        return Total(state.sum + payload, state.n + 1)

    def remove_event_from_state(self, state, payload):
        return Total(state.sum - payload, state.n - 1)

    def compute_result(self, state) -> float:
        return state.sum / state.n


settings = {
    **FAST,
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": sys.argv[2],
    "spark.executorEnv.PYTHONPATH": sys.argv[3],
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.sql.shuffle.partitions": "3",
    PROVIDER: ROCKSDB,
}
if __name__ == "__main__":
    conf = SparkConf().setMaster("local-cluster[3,1,1024]").setAll(list(settings.items()))
    session, folder = SparkSession.builder.config(conf=conf).getOrCreate(), Path(sys.argv[1])
    rows = history(11, 18, unending=False)
    windows = sd.source("s", unit="tick").group_by("k").hopping_window(8, 4)
    query = windows.aggregate(mean=Mean().of(lambda e: e.v), middle=mine.Middle().of(lambda e: e.v))
    expected = denote(query.plan(), {"s": rows})

    bound = {"s": [sd.Insert(n, *row) for n, row in enumerate(rows)]}
    assert query.run(bound, engine="spark").cht() == expected
    print("a batch", flush=True)

    told_in_files(rows, 2, folder / "all", seed=5)
    (folder / "s").mkdir()
    for part in ("0.parquet", "1.parquet"):
        (folder / "all" / part).rename(folder / "s" / part)
        frames = {"s": frame_of(session, folder / "s")}
        query.on_spark(session).write(frames, folder / "out", folder / "state", trigger="available-now").awaitTermination()
        print("a micro-batch", flush=True)
    found = sorted(map(tuple, canonical(session.read.parquet(str(folder / "out"))).collect()))
    assert found == sorted((row.le, row.re, *row.payload.values()) for row in expected), (found, expected)
    executors = session.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
    print(len(executors) - 1, "executors", flush=True)
    session.stop()  # else each executor is started again ten times and more while the driver ends
"""
MODULE = """
import streamdsl as sd


class Middle(sd.UDA):
    def compute_result(self, payloads) -> int:
        return sorted(payloads)[len(payloads) // 2]
"""


def test_a_batch_and_a_stream_run_on_three_executors(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    (tmp_path / "beside_the_script.py").write_text(MODULE)
    (tmp_path / "script.py").write_text(SCRIPT)
    known = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py"), str(tmp_path), JAVA, str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**known, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "JDK_JAVA_OPTIONS": JAVA},
    )
    assert done.stdout == "a batch\na micro-batch\na micro-batch\n3 executors\n", done.stderr[-3000:]
