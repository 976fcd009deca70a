"""A streaming job whose driver and workers are killed in the middle of a batch goes on as if nothing had been."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamdsl as sd
from tests.spark.streaming_job import query

pytestmark = [pytest.mark.spark]

FILES = 5
ROOT = Path(__file__).parents[2]


def cars() -> list[dict[str, Any]]:
    rng = random.Random(3)
    times = [n // 5 + rng.choice((0, 0, -15)) for n in range(FILES * 100)]
    return [{"le": le, "road": f"r{rng.randint(0, 7)}", "speed": rng.randint(0, 90)} for le in times]


def started(folder: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.spark.streaming_job", str(folder)]
    return subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True, stderr=subprocess.DEVNULL)


def wait_for_batch(job: subprocess.Popen[bytes], checkpoint: Path, batch: int) -> None:
    """Return when a batch has begun, and has not ended."""
    deadline = time.monotonic() + 300
    while not (checkpoint / "offsets" / str(batch)).exists():
        assert job.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert not (checkpoint / "commits" / str(batch)).exists()


def test_no_row_is_lost_and_none_is_doubled(tmp_path: Path) -> None:
    rows = cars()
    (tmp_path / "in").mkdir()
    for n in range(FILES):
        pq.write_table(pa.Table.from_pylist(rows[n * 100 : (n + 1) * 100]), tmp_path / "in" / f"{n}.parquet")
        os.utime(tmp_path / "in" / f"{n}.parquet", (10**9 + n, 10**9 + n))  # Spark reads files in the order of their times
    for batch in (1, 3):
        job = started(tmp_path)
        wait_for_batch(job, tmp_path / "checkpoint", batch)
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    assert started(tmp_path).wait(timeout=300) == 0
    written = pq.read_table(tmp_path / "out").drop_columns(["id"])
    events = [sd.point(n, row["le"], {"road": row["road"], "speed": row["speed"]}) for n, row in enumerate(rows)]
    expected = query().run({"cars": events}, engine="reference")
    found = sorted(tuple(row.values()) for row in written.to_pylist())
    assert found == sorted((le, re, *p.values()) for le, re, p in expected)
    assert len(found) > 10
