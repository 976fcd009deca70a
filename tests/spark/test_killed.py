"""A job that is killed while it writes two tables, and started again: no row is lost, and none is there twice."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import streamdsl as sd
from streamdsl.denote import denote
from tests.spark.helpers import history
from tests.spark.killed_job import QUERY, run
from tests.spark.streams import told_in_files

pytestmark = pytest.mark.spark

ROOT = Path(sd.__file__).parent.parent
Rows = list[tuple[Any, ...]]


def killed(folder: Path) -> int:
    """Run the job in a process group of its own, and return how it ended."""
    known = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    made = {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-m", "tests.spark.killed_job", str(folder)]
    with (folder / "log").open("wb") as log:
        return subprocess.run(
            command, check=False, cwd=ROOT, env={**known, **made}, stdout=log, stderr=log, start_new_session=True
        ).returncode


def in_files(folder: Path) -> Rows:
    tables = [pq.read_table(file).drop_columns(["id"]) for file in (folder / "files").glob("le_*")]
    return sorted(tuple(row.values()) for table in tables for row in table.to_pylist())


def in_database(folder: Path) -> Rows:
    with closing(sqlite3.connect(folder / "database")) as connection:
        return sorted(connection.execute("SELECT le, re, k, n, mean FROM rows"))


def fail() -> None:
    raise RuntimeError("the power is gone")


def test_tables_hold_each_row_once_though_the_job_is_killed_after_them_and_between_them(streaming: Any, tmp_path: Path) -> None:
    rows = history(11, 18, unending=False)
    told_in_files(rows, 2, tmp_path / "s", seed=5)
    expected = sorted((row.le, row.re, *row.payload.values()) for row in denote(QUERY.plan(), {"s": rows}))
    with pytest.raises(Exception, match="the power is gone"):
        run(streaming, tmp_path, after=fail)
    first = in_files(tmp_path)
    assert first == in_database(tmp_path) != expected
    assert not list((tmp_path / "checkpoint" / "commits").glob("[0-9]*"))
    assert killed(tmp_path) == -signal.SIGKILL, (tmp_path / "log").read_text()[-3000:]
    assert in_files(tmp_path) == expected
    assert in_database(tmp_path) == first
    run(streaming, tmp_path)
    assert in_files(tmp_path) == in_database(tmp_path) == expected
