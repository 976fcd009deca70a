"""The five questions of the demo, as queries over named sources. Nothing here says where they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamdsl as sd
from streamdsl.demo.data import SLACK, UNIT, Departure, Flight, WeatherReading
from udm_examples import Busiest, Busy, Median

STRONG_WIND = 20.0
"""Query (d) counts the wind above this as strong, in mph."""

flights = sd.source("flights", Flight, unit=UNIT, progress=sd.Progress.slack(SLACK))
timetable = sd.source("timetable", Departure, unit=UNIT, progress=sd.Progress.slack(SLACK))
weather = sd.source("weather", WeatherReading, unit=UNIT, progress=sd.Progress.slack(SLACK))


@dataclass(frozen=True, slots=True)
class Delays:
    """The departures from an airport in an hour, and their delays in minutes."""

    origin: str
    departures: int
    mean: float
    median: float


@dataclass(frozen=True, slots=True)
class Windy:
    """A flight in the air while the wind at its origin is strong."""

    origin: str
    carrier: str
    number: int
    wind: float


@dataclass(frozen=True, slots=True)
class Grounded:
    """How many departures were scheduled in an hour in which nothing was in the air."""

    scheduled: int


def aloft() -> sd.Stream[Any]:
    """Return how many aircraft of each carrier are in the air, at every moment."""
    return flights.group_by(lambda f: f.carrier).snapshot_window().aggregate(aloft=sd.count())


def delays() -> sd.Stream[Delays]:
    """Return the departures per origin and hour, and the mean and the median of their delays."""
    return (
        flights.to_points()
        .group_by(lambda f: f.origin)
        .tumbling_window("1h")
        .aggregate(lambda w: Delays(w.key, w.count(), w.avg(lambda f: f.delay), w.udm(Median(), lambda f: f.delay)))
    )


def busiest() -> sd.Stream[Busy]:
    """Return the five routes with the most departures over three hours, every hour."""
    return flights.to_points().hopping_window("3h", "1h").apply(Busiest(5), lambda f: f.origin + "-" + f.dest)


def windy() -> sd.Stream[Windy]:
    """Return the flights in the air from an origin while its wind is strong; a reading holds until the next one."""
    strong = weather.to_edges(key="origin").where(lambda r: r.wind > STRONG_WIND)
    return flights.join(strong, on="origin", select=lambda f, r: Windy(f.origin, f.carrier, f.number, r.wind))


def grounded() -> sd.Stream[Grounded]:
    """Return the hours with departures scheduled but nothing in the air, from the three airports together."""
    scheduled = timetable.tumbling_window("1h").aggregate_as(Grounded, scheduled=sd.count())
    flown = flights.tumbling_window("1h").aggregate(aloft=sd.count())
    return scheduled.anti_join(flown)


@dataclass(frozen=True, slots=True)
class Question:
    """One of the demo's questions: the query that answers it, and the sources that the query reads."""

    letter: str
    name: str
    title: str
    query: sd.Stream[Any]
    sources: Sequence[str]


QUESTIONS = (
    Question("a", "aloft", "aircraft in the air per carrier, at every moment", aloft(), ["flights"]),
    Question("b", "delays", "departures and their delays per origin and hour", delays(), ["flights"]),
    Question("c", "busiest", "the five busiest routes over three hours, every hour", busiest(), ["flights"]),
    Question(
        "d",
        "windy",
        f"flights aloft while the wind at their origin is above {STRONG_WIND:.0f} mph",
        windy(),
        ["flights", "weather"],
    ),
    Question("e", "grounded", "hours with departures scheduled and nothing in the air", grounded(), ["timetable", "flights"]),
)
