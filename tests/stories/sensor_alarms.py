"""A job: readings of sensors come from a topic of Kafka, and alarms go to a table of SQLite and to another topic.

An alarm is a minute in which a sensor was hot at least three times. `python sensor_alarms.py SERVERS READINGS ALARMS` runs until
it is stopped, and goes on where it was.
"""

from __future__ import annotations

import sqlite3
import sys
from dataclasses import dataclass

import streamdsl as sd
from streamdsl.connect import KafkaTopic, kafka_topic
from streamdsl.sinks import DatabaseTable


@dataclass(frozen=True)
class Reading:
    """What a sensor says."""

    sensor: str
    heat: float


@dataclass(frozen=True)
class Alarm:
    """How often a sensor was hot in a minute, and how hot."""

    sensor: str
    times: int
    hottest: float


readings = sd.source("readings", Reading, unit="ms")
alarms = (
    readings.where(lambda e: e.heat > 90)
    .group_by("sensor")
    .tumbling_window("1m")
    .aggregate(times=sd.count(), hottest=sd.max(lambda e: e.heat))
    .where(lambda e: e.times >= 3)
    .select(lambda e: Alarm(e.sensor, e.times, e.hottest))
)

if __name__ == "__main__":
    servers, readings_topic, alarms_topic = sys.argv[1:]
    alarms.serve(
        kafka_topic(readings_topic, servers, payload=Reading, start="at", slack="10s", idle="1s", group="alarms"),
        [DatabaseTable(lambda: sqlite3.connect("alarms.db"), "alarms"), KafkaTopic(alarms_topic, servers)],
        checkpoint="state",
        every="20ms",
    )
