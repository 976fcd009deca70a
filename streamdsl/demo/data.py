"""The flights and the weather as physical streams, in order of arrival.

A flight is an edge event: at take-off its insertion `[take-off, INFINITY)` arrives, at landing a retraction gives its true end.
Reports reach us late by a random delay, so they are out of order. The delay stays below a quarter of an hour and the shortest
flight takes 20 minutes, so no landing overtakes its take-off. Times are UTC, in seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

import numpy as np

import streamdsl as sd
from streamdsl.demo.flight_files import FEBRUARY, LeftOut, Period, Times, read

if TYPE_CHECKING:
    import pandas as pd

UNIT: Final = "s"
NEW_YORK: Final = ZoneInfo("America/New_York")
LONGEST_DELAY: Final = 15 * 60 - 1
"""The most that a report is late, in seconds."""
SLACK: Final = "15m"
"""How far CTIs stay behind the largest LE seen: more than a report can be late."""
SEED: Final = 2013


@dataclass(frozen=True, slots=True)
class Flight:
    """A flight while it is in the air; `delay` is that of its departure, in minutes."""

    carrier: str
    number: int
    origin: str
    dest: str
    delay: int


@dataclass(frozen=True, slots=True)
class Departure:
    """A departure in the timetable, flown or cancelled."""

    carrier: str
    number: int
    origin: str
    dest: str


@dataclass(frozen=True, slots=True)
class WeatherReading:
    """The weather at an airport; `wind` is in mph."""

    origin: str
    wind: float


@dataclass(frozen=True, slots=True)
class Feed:
    """A physical stream without CTIs, in order of arrival."""

    events: Sequence[sd.Event[Any]]
    arrivals: Times

    @classmethod
    def of(cls, events: Sequence[sd.Event[Any]], delays: Times) -> Feed:
        """Return events in the order in which they arrive, each `delays` seconds after its sync time."""
        arrivals = np.array([sd.sync_time(event) for event in events], dtype=np.int64) + delays
        order = np.argsort(arrivals, kind="stable")
        return cls([events[row] for row in order.tolist()], arrivals[order])

    @property
    def out_of_order(self) -> int:
        """The number of events whose sync time is before that of an event which arrived earlier."""
        syncs = np.array([sd.sync_time(event) for event in self.events], dtype=np.int64)
        return int(np.count_nonzero(syncs < np.maximum.accumulate(syncs))) if len(syncs) else 0


@dataclass(frozen=True, slots=True)
class Data:
    """The three streams of the demo, and what was left out of them."""

    period: Period
    scheduled: int
    flown: int
    left_out: LeftOut
    flights: Feed
    timetable: Feed
    weather: Feed

    def feeds(self) -> dict[str, Feed]:
        """Return the streams by the names of the queries' sources."""
        return {"flights": self.flights, "timetable": self.timetable, "weather": self.weather}


def load(period: Period = FEBRUARY, seed: int = SEED) -> Data:
    """Return the streams of a period."""
    tables = read(period)
    flights = _flights(tables.flown, np.random.default_rng([seed, 0]))
    weather = _weather(tables.readings, np.random.default_rng([seed, 1]))
    timetable = _timetable(tables.timetable)
    return Data(period, len(tables.timetable), len(tables.flown), tables.left_out, flights, timetable, weather)


def _ids(frame: pd.DataFrame) -> list[str]:
    columns = [frame[name].tolist() for name in ("carrier", "flight", "origin", "month", "day")]
    return [
        f"{carrier}{number} {origin} {month:02}-{day:02}" for carrier, number, origin, month, day in zip(*columns, strict=True)
    ]


def _flights(frame: pd.DataFrame, random: np.random.Generator) -> Feed:
    columns = (frame[name].tolist() for name in ("carrier", "flight", "origin", "dest"))
    delays = frame["dep_delay"].astype(np.int64).tolist()
    payloads = [Flight(*values) for values in zip(*columns, delays, strict=True)]
    trips = list(zip(_ids(frame), frame["take_off"].tolist(), frame["landing"].tolist(), payloads, strict=True))
    events: list[sd.Event[Flight]] = [sd.edge_start(name, start, flight) for name, start, _, flight in trips]
    events += [sd.edge_end(name, start, end, flight) for name, start, end, flight in trips]
    return Feed.of(events, _late(len(events), random))


def _timetable(frame: pd.DataFrame) -> Feed:
    columns = (frame[name].tolist() for name in ("carrier", "flight", "origin", "dest"))
    payloads = [Departure(*values) for values in zip(*columns, strict=True)]
    rows = zip(_ids(frame), frame["scheduled"].tolist(), payloads, strict=True)
    events = [sd.point(name, time, departure) for name, time, departure in rows]
    return Feed.of(events, np.zeros(len(events), dtype=np.int64))


def _weather(frame: pd.DataFrame, random: np.random.Generator) -> Feed:
    rows = zip(frame["origin"].tolist(), frame["time"].tolist(), frame["wind_speed"].tolist(), strict=True)
    events = [sd.point(f"{origin} {time}", time, WeatherReading(origin, wind)) for origin, time, wind in rows]
    return Feed.of(events, _late(len(events), random))


def _late(count: int, random: np.random.Generator) -> Times:
    return random.integers(0, LONGEST_DELAY, size=count, endpoint=True, dtype=np.int64)
