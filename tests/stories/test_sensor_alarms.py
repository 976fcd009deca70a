"""From Kafka to SQLite and to Kafka: the job is killed at random moments, and the table and the topic have each alarm once."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.connect import Batch, kafka_topic
from tests.stories import sensor_alarms

pytest.importorskip("confluent_kafka", reason="the extra kafka is not installed")
from tests.kafka_broker import broker, new_topic, places_of_messages, send

KILLS = int(os.environ.get("STREAMDSL_KILLS", "4"))
"""How often the job is killed; each takes some three seconds."""
START = datetime.fromisoformat("2026-01-01T00:00:00+00:00").timestamp()


def reading(second: int, rng: Random) -> dict[str, Any]:
    at = datetime.fromtimestamp(START + second).astimezone().isoformat()
    return {"at": at, "sensor": rng.choice("abcd"), "heat": rng.randint(200, 1_000) / 10}


def alarms_of(readings: list[dict[str, Any]]) -> dict[tuple[float, str], tuple[int, float]]:
    hot = dict[tuple[float, str], list[float]]()
    for each in readings:
        if each["heat"] > 90:
            minute = datetime.fromisoformat(each["at"]).timestamp() // 60 * 60
            hot.setdefault((minute, each["sensor"]), []).append(each["heat"])
    return {key: (len(heats), max(heats)) for key, heats in hot.items() if len(heats) >= 3}


def in_table(path: Path) -> dict[tuple[float, str], tuple[int, float]]:
    with closing(sqlite3.connect(path)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alarms'").fetchall():
            return {}
        rows = connection.execute("SELECT le, sensor, times, hottest FROM alarms").fetchall()
    found = {(datetime.fromisoformat(le).timestamp(), sensor): (times, hottest) for le, sensor, times, hottest in rows}
    assert len(found) == len(rows)
    return found


def in_topic(servers: str, topic: str) -> dict[tuple[float, str], tuple[int, float]]:
    events = list[Any]()
    with closing(kafka_topic(topic, servers).open(None)) as reader:
        while isinstance(batch := reader.poll(0.2), Batch):
            events += [event for event in batch.data if not isinstance(event, sd.Cti)]
    rows = list(sd.CHT.from_events(events, unit="us"))
    found = {(row.le / 10**6, row.payload["sensor"]): (row.payload["times"], row.payload["hottest"]) for row in rows}
    assert len(found) == len(rows)
    return found


def test_a_job_that_is_killed_at_random_has_each_alarm_once(tmp_path: Path) -> None:
    rng = Random(3)
    given = list[dict[str, Any]]()
    with broker() as servers:
        readings, alarms = new_topic(servers), new_topic(servers)
        command = [sys.executable, str(Path(sensor_alarms.__file__)), servers, readings, alarms]
        environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
        for n in range(KILLS + 1):
            known, job = in_table(tmp_path / "alarms.db"), subprocess.Popen(command, cwd=tmp_path, env=environment)
            # Every other time it has written something, so that what it does then is cut off; else it may be starting still.
            begun, until = n % 2 == 1, time.monotonic() + 0.2 + 2 * rng.random()
            while not begun or time.monotonic() < until:
                assert job.poll() is None
                some = [reading(second, rng) for second in range(len(given), len(given) + rng.randint(1, 60))]
                send(servers, readings, [(rng.randrange(4), json.dumps(each)) for each in some])
                given += some
                time.sleep(0.05)
                if not begun and in_table(tmp_path / "alarms.db") != known:
                    begun, until = True, time.monotonic() + 0.3 * rng.random()
            if n < KILLS:
                job.kill()
                assert job.wait(60) == -signal.SIGKILL
        expected = alarms_of(given)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and in_table(tmp_path / "alarms.db") != expected:
            time.sleep(0.2)
        job.terminate()
        assert job.wait(60) == 0
        assert in_table(tmp_path / "alarms.db") == expected
        assert in_topic(servers, alarms) == expected
        assert len(expected) > 4 * KILLS
        places = places_of_messages(servers, alarms)
        assert len(places) == len(set(places)), "no message is there twice"
