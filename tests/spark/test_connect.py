"""Batches and a stream on Spark Connect, in a process of its own that has no JVM; the server is in that of the other tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd

pytestmark = pytest.mark.spark

ROOT = Path(sd.__file__).parent.parent


@pytest.fixture
def server(spark: Any) -> Iterator[str]:
    """The address of a server."""
    service = getattr(getattr(spark._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$"), "MODULE$")
    service.start(spark._jsc.sc())
    yield f"sc://127.0.0.1:{service.localPort()}"
    none = getattr(getattr(spark._jvm, "scala.None$"), "MODULE$")
    service.stop(none, none)


def test_queries_of_every_kind_run_on_a_connect_session(server: str, tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs the extra `connect`")
    pytest.importorskip("grpc_status", reason="Spark Connect needs the extra `connect`")
    pytest.importorskip("zstandard", reason="Spark Connect needs the extra `connect`")
    known = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_job", server, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**known, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("5 queries and a stream give the same rows\n")
