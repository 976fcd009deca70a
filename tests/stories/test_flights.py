"""Days of flights out of New York, as late and corrected reports: the demo's five questions, answered right.

The expected answers are worked out here from the files themselves, with numpy and pandas and none of the package's code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import streamdsl as sd
from streamdsl.demo.corrections import largest_change
from streamdsl.demo.data import load
from streamdsl.demo.flight_files import FEBRUARY, YEAR, Period, data_folder, read
from streamdsl.demo.local_run import Answer, play
from streamdsl.demo.main import demo
from streamdsl.demo.queries import QUESTIONS, Delays, Grounded, Windy
from streamdsl.testing import assert_cht_equal
from udm_examples import Busy

HOUR = 3600
STORM = Period("8-9 February 2013", date(2013, 2, 8), date(2013, 2, 9))
STORMY = Period("6-10 February 2013", date(2013, 2, 6), date(2013, 2, 10))
FOUR_HOURS = [1360404000 + hour * HOUR for hour in range(4)]
"""From 5:00 to 9:00 in New York on 9 February 2013."""


def flights_of(months: range) -> pd.DataFrame:
    frame = pd.read_csv(data_folder() / "flights.csv.zip")
    frame = frame[frame["month"].isin(months)].copy()
    hour = np.array([text[:-1] for text in frame["time_hour"]], dtype="datetime64[s]").astype(np.int64)
    frame["scheduled"] = hour + 60 * frame["minute"]
    frame["start"] = frame["scheduled"] + 60 * frame["dep_delay"]
    frame["end"] = frame["start"] + 60 * frame["air_time"]
    return frame


def in_the_air(frame: pd.DataFrame) -> pd.DataFrame:
    known = frame[frame["air_time"].notna()]
    return known.assign(start=known["start"].astype(np.int64), end=known["end"].astype(np.int64))


@pytest.fixture(scope="module")
def stormy() -> pd.DataFrame:
    frame = flights_of(range(2, 3))
    return frame[STORMY.mask(frame)]


@pytest.fixture(scope="module")
def answers() -> dict[str, Answer]:
    data = load(STORMY)
    return {question.name: play(question, data, lambda done, total: None) for question in QUESTIONS}


def test_what_the_streams_hold_and_what_they_leave_out() -> None:
    data = load(FEBRUARY)
    assert (data.scheduled, data.flown, data.left_out.cancelled, data.left_out.no_air_time) == (24_951, 23_611, 1_261, 79)
    assert (data.left_out.impossible_wind, int(data.left_out.strongest)) == (1, 1048)
    assert len(data.flights.events) == 2 * 23_611
    assert data.flights.out_of_order > 10_000


def test_the_whole_year_holds_what_it_should() -> None:
    year = read(YEAR)
    assert (len(year.timetable), len(year.flown)) == (336_776, 327_346)
    assert (year.flown["landing"] - year.flown["take_off"]).min() == 20 * 60
    assert (year.left_out.cancelled, year.left_out.no_air_time, year.left_out.impossible_wind) == (8_255, 1_175, 1)


def test_aircraft_aloft_at_every_moment(answers: dict[str, Answer], stormy: pd.DataFrame) -> None:
    rows: list[tuple[int, int, dict[str, Any]]] = []
    for carrier, part in in_the_air(stormy).groupby("carrier"):
        ends = np.concatenate([part["start"], part["end"]])
        times = np.unique(ends)
        steps = np.zeros(len(times), dtype=np.int64)
        np.add.at(steps, np.searchsorted(times, ends), np.repeat([1, -1], len(part)))
        levels = zip(times[:-1].tolist(), times[1:].tolist(), np.cumsum(steps).tolist(), strict=False)
        rows += [(le, re, {"carrier": carrier, "aloft": n}) for le, re, n in levels if n]
    assert_cht_equal(answers["aloft"].cht, rows)


def test_delays_per_origin_and_hour(answers: dict[str, Answer], stormy: pd.DataFrame) -> None:
    flown = in_the_air(stormy)
    hour = flown["start"] // HOUR * HOUR
    found: Any = flown.groupby([hour, "origin"])["dep_delay"].agg(["size", "mean", "median"]).reset_index()
    rows = [
        (row.start, row.start + HOUR, Delays(row.origin, row.size, row.mean, row.median))
        for row in found.itertuples(name="Found")
    ]
    assert_cht_equal(answers["delays"].cht, rows)
    assert sum(row.payload.departures for row in answers["delays"].cht) == len(flown)


def test_the_busiest_routes_with_ties_in_order_of_name(answers: dict[str, Answer], stormy: pd.DataFrame) -> None:
    flown = in_the_air(stormy)
    departed: dict[int, Counter[str]] = {}
    for hour, origin, dest in zip(flown["start"] // HOUR, flown["origin"], flown["dest"], strict=True):
        for window in range(hour - 2, hour + 1):
            departed.setdefault(window, Counter())[f"{origin}-{dest}"] += 1
    rows = [
        (window * HOUR, (window + 3) * HOUR, Busy(rank, name, count))
        for window, counts in departed.items()
        for rank, (name, count) in enumerate(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:5], start=1)
    ]
    assert_cht_equal(answers["busiest"].cht, rows)


def test_flights_aloft_in_a_strong_wind(answers: dict[str, Answer], stormy: pd.DataFrame) -> None:
    assert_cht_equal(answers["windy"].cht, list(windy_stretches(in_the_air(stormy))))


def windy_stretches(flown: pd.DataFrame) -> Iterator[tuple[int, int, Windy]]:
    weather = pd.read_csv(data_folder() / "weather.csv")
    weather = weather[STORMY.mask(weather) & (weather["wind_speed"] <= 250)].sort_values("time_hour")
    for origin, readings in weather.groupby("origin"):
        times = np.array([text[:-1] for text in readings["time_hour"]], dtype="datetime64[s]").astype(np.int64).tolist()
        here = flown[flown["origin"] == origin]
        for start, end, wind in zip(times, [*times[1:], 2**62], readings["wind_speed"], strict=True):
            if wind > 20:
                for row in here[(here["start"] < end) & (here["end"] > start)].itertuples():
                    yield max(row.start, start), min(row.end, end), Windy(str(origin), row.carrier, row.flight, wind)


def test_the_four_hours_in_which_nothing_flew(answers: dict[str, Answer]) -> None:
    expected = zip(FOUR_HOURS, [5, 58, 45, 67], strict=True)
    assert_cht_equal(answers["grounded"].cht, [(hour, hour + HOUR, Grounded(n)) for hour, n in expected])


def test_they_are_the_only_four_of_the_year() -> None:
    year = flights_of(range(1, 13))
    flown = in_the_air(year)
    spans = zip(flown["start"] // HOUR, (flown["end"] - 1) // HOUR, strict=True)
    aloft = {hour for first, last in set(spans) for hour in range(first, last + 1)}
    assert sorted(hour * HOUR for hour in set(year["scheduled"] // HOUR) - aloft) == FOUR_HOURS


def test_answers_come_early_and_are_corrected(answers: dict[str, Answer], stormy: pd.DataFrame) -> None:
    assert all(answer.corrections.retractions for answer in answers.values())
    aloft = answers["aloft"]
    change = largest_change(aloft.events, aloft.cht)
    assert change is not None
    assert change.size >= 3
    flown = in_the_air(stormy)
    there = (flown["carrier"] == change.carrier) & (flown["start"] <= change.moment) & (change.moment < flown["end"])
    assert change.final == there.sum()
    said = {"carrier": change.carrier, "aloft": change.early}
    assert any(event.le == change.moment and event.payload == said for event in aloft.events if isinstance(event, sd.Insert))


def test_answers_do_not_wait_for_the_end(answers: dict[str, Answer]) -> None:
    for answer in answers.values():
        before_the_end = [event for event in answer.events[: len(answer.events) // 2] if isinstance(event, sd.Cti)]
        assert before_the_end


def test_the_local_half_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo(STORM, tmp_path / "results", spark=False) == 0
    shown = capsys.readouterr().out
    assert "Sat 09 Feb 05:00  Sat 09 Feb 06:00" in shown
    assert str(tmp_path / "results") in shown
    assert {file.suffix for file in (tmp_path / "results").iterdir()} == {".csv", ".parquet", ".svg"}
