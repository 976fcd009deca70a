"""A job of alarms, as somebody writes it: sensors report, hot ones are alarms in a table, the job is killed and goes on."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import datetime
from pathlib import Path
from random import Random

JOB = """
import sqlite3
from dataclasses import dataclass
import streamdsl as sd
from streamdsl.connect import JsonlFile, jsonl_file
from streamdsl.sinks import DatabaseTable

@dataclass(frozen=True)
class Reading:
    sensor: str
    heat: float

readings = sd.source("readings", Reading, unit="s", progress=sd.Progress.slack("10s"))
alarms = (
    readings.where(lambda e: e.heat > 90)
    .group_by("sensor")
    .tumbling_window("1m")
    .aggregate(n=sd.count(), hottest=sd.max(lambda e: e.heat))
)
alarms.serve(
    jsonl_file("readings.jsonl", at_once=25),
    DatabaseTable(lambda: sqlite3.connect("alarms.db"), "alarms"),
    checkpoint="state",
    every=25,
    dead_letters=JsonlFile("letters.jsonl"),
)
"""


def newest(folder: Path) -> int:
    """Return the number of the last micro-batch that is committed."""
    return max((int(path.name) for path in folder.glob("[0-9]*")), default=-1)


def test_a_job_of_alarms_that_is_killed_again_and_again_has_each_alarm_once(tmp_path: Path) -> None:
    rng, expected = Random(7), dict[tuple[int, str], list[float]]()
    with (tmp_path / "readings.jsonl").open("w") as file:
        for second in range(5_000):
            sensor, heat = rng.choice("abc"), rng.randint(200, 1_000) / 10
            file.write(json.dumps({"le": second, "sensor": sensor, "heat": heat}) + "\n" + "garbage\n" * (second % 1_000 == 0))
            if heat > 90:
                expected.setdefault((second // 60 * 60, sensor), []).append(heat)
    positions = tmp_path / "state" / "served" / "positions"
    for kill in range(5):
        job = subprocess.Popen([sys.executable, "-c", JOB], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(Path.cwd())})
        until = newest(positions) + rng.randint(3, 20)
        while kill < 4 and newest(positions) < until:
            assert job.poll() is None
            time.sleep(0.002)
        if kill < 4:
            job.kill()
        assert job.wait(60) == (-9 if kill < 4 else 0)
    with closing(sqlite3.connect(tmp_path / "alarms.db")) as connection:
        rows = connection.execute("SELECT le, sensor, n, hottest FROM alarms").fetchall()
    found = {(datetime.fromisoformat(le).timestamp(), sensor): found for le, sensor, *found in rows}
    assert found == {key: [len(heats), max(heats)] for key, heats in expected.items()}
    assert len(rows) == len(expected)
    assert len((tmp_path / "letters.jsonl").read_text().splitlines()) == 5
