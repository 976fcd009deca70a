from __future__ import annotations

from datetime import date, datetime

import numpy as np
import pytest

import streamdsl as sd
from streamdsl.demo.data import (
    LONGEST_DELAY,
    NEW_YORK,
    SLACK,
    Data,
    Feed,
    Flight,
    WeatherReading,
    load,
)
from streamdsl.demo.flight_files import Period, carrier_names
from streamdsl.temporal import to_duration

STORM = Period("8-9 February 2013", date(2013, 2, 8), date(2013, 2, 9))


@pytest.fixture(scope="module")
def data() -> Data:
    return load(STORM)


def test_a_feed_is_in_order_of_arrival() -> None:
    events: list[sd.Event[str]] = [sd.point("a", 10, "x"), sd.point("b", 20, "y"), sd.edge_end("c", 1, 15)]
    feed = Feed.of(events, np.array([30, 0, 6]))
    assert [getattr(event, "id", None) for event in feed.events] == ["b", "c", "a"]
    assert feed.arrivals.tolist() == [20, 21, 40]
    assert feed.out_of_order == 2


def test_an_empty_feed_has_nothing_out_of_order() -> None:
    assert Feed.of([], np.array([], dtype=np.int64)).out_of_order == 0


def test_the_first_flight_of_the_storm_takes_off_and_lands_when_it_did(data: Data) -> None:
    inserted = {event.id: event for event in data.flights.events if isinstance(event, sd.Insert)}
    landed = {event.id: event for event in data.flights.events if isinstance(event, sd.Retract)}
    start = datetime.fromtimestamp(inserted["US1117 EWR 02-08"].le, NEW_YORK)
    flight = inserted["US1117 EWR 02-08"].payload
    assert flight == Flight("US", 1117, "EWR", "CLT", flight.delay)
    assert (start.hour * 60 + start.minute) == 5 * 60 + flight.delay
    assert inserted["US1117 EWR 02-08"].re == sd.INFINITY
    assert landed["US1117 EWR 02-08"].re_new - inserted["US1117 EWR 02-08"].le >= 20 * 60


def test_each_flight_is_a_take_off_and_later_a_landing(data: Data) -> None:
    started: set[object] = set()
    landed: set[object] = set()
    for event in data.flights.events:
        if isinstance(event, sd.Insert):
            started.add(event.id)
        elif isinstance(event, sd.Retract):
            assert event.id in started, f"the landing of {event.id} overtook its take-off"
            landed.add(event.id)
    assert started == landed
    assert len(started) == data.flown


def test_no_report_is_later_than_the_slack(data: Data) -> None:
    for feed in (data.flights, data.weather, data.timetable):
        late = feed.arrivals - [sd.sync_time(event) for event in feed.events]
        assert late.min() >= 0
        assert late.max() <= LONGEST_DELAY < to_duration(SLACK, "s")
        assert LONGEST_DELAY < 15 * 60


def test_the_same_seed_gives_the_same_streams(data: Data) -> None:
    again = load(STORM)
    other = load(STORM, seed=7)
    assert again.flights.events == data.flights.events
    assert other.flights.events != data.flights.events
    assert sd.CHT.from_events(other.flights.events) == sd.CHT.from_events(data.flights.events)


def test_a_reading_holds_at_each_airport_before_the_first_take_off(data: Data) -> None:
    first = min(sd.sync_time(event) for event in data.flights.events)
    before = {event.payload.origin for event in data.weather.events if isinstance(event, sd.Insert) and event.le <= first}
    assert before == {"EWR", "JFK", "LGA"}
    assert all(isinstance(event.payload, WeatherReading) for event in data.weather.events if isinstance(event, sd.Insert))


def test_the_impossible_wind_is_left_out() -> None:
    data = load(Period("12 February 2013", date(2013, 2, 12), date(2013, 2, 12)))
    assert data.left_out.impossible_wind == 1
    assert max(event.payload.wind for event in data.weather.events if isinstance(event, sd.Insert)) < 60


def test_the_timetable_knows_the_cancelled_flights_too(data: Data) -> None:
    assert len(data.timetable.events) == data.scheduled == data.flown + data.left_out.cancelled + data.left_out.no_air_time
    assert data.timetable.out_of_order == 0


def test_airlines_are_called_by_their_names() -> None:
    names = carrier_names()
    assert len(names) == 16
    assert (names["UA"], names["WN"], names["FL"]) == ("United Air Lines", "Southwest Airlines", "AirTran Airways")
