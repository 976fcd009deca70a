"""The one Spark session of all tests, with settings for small data."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA = " ".join(
    [
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        # With the cache that Java takes for this level, code is thrown away and compiled again all the time.
        "-XX:ReservedCodeCacheSize=240m",
        "-XX:MetaspaceSize=256m",
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:-BytecodeVerificationRemote",
    ]
)
"""For a JVM that lives for minutes: it compiles in a hurry, and does not check Spark's classes."""
FEW_ROWS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.lightweightPlanChangeValidation": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.ui.explainMode": "simple",
}
"""For queries over few rows: most of the time goes into planning them."""
DAEMON = {"spark.python.daemon.module": "tests.spark.worker_daemon"}
OF_OTHERS = " ".join([JAVA, *(f"-D{name}={value}" for name, value in (FEW_ROWS | DAEMON).items() if "shuffle" not in name)])
"""For the JVM of a program whose session the tests do not make: `JDK_JAVA_OPTIONS`. It keeps the number of shards."""
FAST = {
    **FEW_ROWS,
    **DAEMON,
    "spark.driver.extraJavaOptions": f"{JAVA} -Xms1g -Xmn600m",
    "spark.driver.memory": "2g",
    "spark.buffer.pageSize": "256k",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.ui.enabled": "false",
    **dict.fromkeys(("spark.ui.retainedJobs", "spark.ui.retainedStages", "spark.sql.ui.retainedExecutions"), "100"),
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "OFF",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.unix.domain.socket.enabled": "true",
}
_ROOT = str(Path(__file__).parents[2])
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session; without pyspark or Java the tests that ask for it are skipped."""
    sql = pytest.importorskip("pyspark.sql")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYTHONPATH"] = os.pathsep.join([_ROOT, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]).rstrip(os.pathsep)
    builder = sql.SparkSession.builder.master("local[2]").appName("streamdsl-tests")
    for name, value in FAST.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    _remember_classes(session._jvm)
    yield session
    session.stop()


def _remember_classes(jvm: Any) -> None:
    """Let Java not look through all its archives each time that PySpark names one of these."""
    functions, session = (f"org.apache.spark.sql.{name}" for name in ("functions", "classic.SparkSession"))
    for name in ("PythonUtils", "PythonSQLUtils", "functions", functions, session):
        setattr(jvm, name, getattr(jvm, name))


@pytest.fixture(scope="module")
def streaming(spark: Any) -> Iterator[Any]:
    """The session with what streams need, and two shards."""
    before = {name: spark.conf.get(name, None) for name in (_PROVIDER, "spark.sql.shuffle.partitions")}
    spark.conf.set(_PROVIDER, _ROCKSDB)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield spark
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)
