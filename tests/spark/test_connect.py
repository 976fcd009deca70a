"""Batches and a stream on Spark Connect, which has no JVM at hand, on a server of its own, in a process of its own."""

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


def test_queries_of_every_kind_run_on_a_connect_session(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs the extra `connect`")
    pytest.importorskip("grpc_status", reason="Spark Connect needs the extra `connect`")
    pytest.importorskip("zstandard", reason="Spark Connect needs the extra `connect`")
    known = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    made = {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_job", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**known, **made, "JDK_JAVA_OPTIONS": JAVA},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("5 queries and a stream give the same rows\n")
