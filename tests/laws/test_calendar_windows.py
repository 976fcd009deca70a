"""Calendar windows beside an oracle that shares no code with them: `datetime` and `zoneinfo`, walked second by second.

The laws of all windows, and of what an engine does with them, are tried over streams that are stretched to days.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import cache, partial
from typing import Any, TypeAlias, get_args
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pytest
from hypothesis import note
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.errors import TimeOverflow, UnboundedOutputError
from streamdsl.temporal import INFINITY, MIN_TIME, CHTRow, Cti, Event, Insert, Lifetime, Retract
from streamdsl.temporal.time import PER_SECOND, Unit
from streamdsl.windows import CalendarPeriods, Period
from tests.laws.choices import Random, given
from tests.laws.harness import EMITS, check_law, check_until
from tests.laws.modules import Ends, Spread, Through
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, Scenario, scenario

Life: TypeAlias = tuple[int, int]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR = 3600
DAY = 24 * HOUR
ZONES = sorted(available_timezones() - {"localtime", "Factory"})
CALENDAR_UNITS: list[Unit] = ["s", "ms", "us", "ns"]
PERIODS: tuple[Period, ...] = get_args(Period)


def at(text: str) -> int:
    """Return a date, or a time, of UTC in seconds since the epoch."""
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - EPOCH) // timedelta(seconds=1)


def shown(zone: str, time: int) -> date:
    """Return the date that clocks show at a time, in seconds since the epoch."""
    return (EPOCH + timedelta(seconds=time)).astimezone(ZoneInfo(zone)).date()


def period_of(period: Period, day: date) -> tuple[int, ...]:
    """Return what two days of one period have in common."""
    match period:
        case "day":
            return (day.toordinal(),)
        case "week":
            return day.isocalendar()[:2]
        case "month":
            return day.year, day.month
        case "quarter":
            return day.year, (day.month - 1) // 3
        case "year":
            return (day.year,)


# The windows themselves

CHANGES = [
    ("Europe/Berlin", "2026-03-29", "day"),
    ("Europe/Berlin", "2026-10-25", "day"),
    ("Europe/Berlin", "2026-11-01", "month"),
    ("Europe/Berlin", "2446-03-31", "day"),
    ("America/Sao_Paulo", "2018-02-18", "day"),  # at midnight clocks go back to 23:00
    ("America/Sao_Paulo", "2018-11-04", "day"),  # at midnight they go on to 1:00
    ("Africa/Cairo", "2014-05-16", "day"),
    ("Africa/Cairo", "2023-10-27", "day"),
    ("Asia/Beirut", "2022-03-27", "week"),
    ("America/St_Johns", "2010-11-07", "day"),  # a minute after midnight they go back: the new date is shown twice
    ("Pacific/Apia", "2011-12-30", "day"),  # a day is left out
    ("Pacific/Kiritimati", "1995-01-01", "year"),  # the last day of a year is left out
    ("Pacific/Kwajalein", "1993-08-21", "day"),
    ("America/Juneau", "1867-10-18", "day"),  # a day is lived twice
    ("Europe/Amsterdam", "1937-07-01", "month"),  # the offset is 19:32 until then, and then 20 minutes
    ("Europe/Amsterdam", "1916-05-01", "day"),
    ("Asia/Kathmandu", "1986-01-01", "quarter"),
    ("Africa/Monrovia", "1972-01-07", "day"),
    ("Antarctica/Troll", "2026-03-29", "day"),
]
"""Zones, and dates at which clocks are set there."""


@cache
def walked(zone: str, day: str, period: Period) -> list[int]:
    """Return the seconds around a date at which a period begins: at each, a later date than ever before is of a new one."""
    first, last = at(day) - 40 * HOUR, at(day) + 52 * HOUR
    latest = max(shown(zone, time) for time in range(first - 50 * HOUR, first, 900))
    found = []
    for time in range(first, last):
        if time % 60 and not (1000 < latest.year < 1973):  # later offsets are whole minutes
            continue
        today = max(latest, shown(zone, time))
        if period_of(period, today) != period_of(period, latest):
            found.append(time)
        latest = today
    return found


@pytest.mark.parametrize(("zone", "day", "period"), CHANGES)
def test_windows_begin_where_clocks_first_show_their_dates_tick_by_tick(zone: str, day: str, period: Period) -> None:
    first, last = at(day) - 40 * HOUR, at(day) + 52 * HOUR
    for unit in CALENDAR_UNITS:
        ticks = PER_SECOND[unit]
        if not MIN_TIME < first * ticks < last * ticks < INFINITY:
            continue
        windows = CalendarPeriods(period, tz=zone, unit=unit).over([Lifetime(first * ticks, last * ticks)])
        assert all(one.re == other.le for one, other in itertools.pairwise(windows)), "windows are a partition of time"
        assert [window.le / ticks for window in windows if window.le > first * ticks] == walked(zone, day, period)


@pytest.mark.parametrize(("zone", "day", "period"), CHANGES)
@examples(30)
@given(lives=st.lists(st.tuples(st.integers(-34, 40), st.integers(0, 30), st.integers(-2, 2), st.integers(-2, 2)), max_size=5))
def test_members_are_those_that_share_a_second_tick_by_tick(
    zone: str, day: str, period: Period, lives: list[tuple[int, int, int, int]]
) -> None:
    middle, starts = at(day), walked(zone, day, period)
    spans = [(middle + le * HOUR + early, middle + (le + length) * HOUR + late) for le, length, early, late in lives]
    rows: list[CHTRow[Any]] = [CHTRow(le, max(le, re), number) for number, (le, re) in enumerate(spans)]
    divided = CalendarPeriods(period, tz=zone, unit="s").divide(rows)
    members = {window.le: [row.payload for row in found] for window, found in divided}
    ends = {window.le: window.re for window, _ in divided}
    for start, end in itertools.pairwise(starts):
        inside = [row.payload for row in rows if row.le < row.re and row.le < end and start < row.re]
        assert members.get(start, []) == inside
        if inside:
            assert ends[start] == end


@examples(300)
@given(zone=st.sampled_from(ZONES), time=st.integers(at("1850-01-01"), at("2600-01-01")), period=st.sampled_from(PERIODS))
def test_each_instant_is_in_the_window_of_the_latest_date_that_has_been_shown(zone: str, time: int, period: Period) -> None:
    windows = CalendarPeriods(period, tz=zone, unit="s")
    window = windows.window(windows.first_ending_after(time))
    assert window.le <= time < window.re

    def latest(time: int) -> date:
        return max(shown(zone, each) for each in [*range(time - 50 * HOUR, time, 900), time])

    own = period_of(period, latest(time))
    assert period_of(period, latest(window.le)) == own == period_of(period, latest(window.re - 1))
    assert period_of(period, latest(window.le - 1)) < own < period_of(period, latest(window.re))


@examples(120)
@given(
    zone=st.sampled_from(["UTC", "Europe/Berlin", "Pacific/Apia", "America/St_Johns", "Europe/Amsterdam"]),
    period=st.sampled_from(PERIODS),
    every=st.sampled_from([1, 1, 2, 5]),
    unit=st.sampled_from(list(PER_SECOND)),
    seed=SEEDS,
)
def test_columns_of_times_are_numbered_as_each_of_them_is(zone: str, period: Period, every: int, unit: Any, seed: int) -> None:
    rng, windows = Random(seed), CalendarPeriods(period, every, zone, unit)
    spread = rng.choice([10 * DAY, 4000 * DAY, 10**7 * DAY, 2**62 // PER_SECOND[unit]]) * PER_SECOND[unit]
    middle = rng.choice([0, at("2011-12-30"), at("9000-01-01")]) * PER_SECOND[unit]
    drawn = [middle + rng.randint(-spread, spread) for _ in range(rng.choice([1, 6, 50]))]
    times = [time for time in drawn if windows.lowest <= time < INFINITY - windows.longest]
    found = windows.firsts_ending_after(np.array(times, dtype=np.int64)).tolist()
    for time, number in zip(times, found, strict=True):
        assert windows.start(number) <= time < windows.end(number), "in the window"
        assert windows.first_ending_after(time) == number == windows.last_starting_by(time)
        assert windows.start(number + 1) == windows.end(number) > windows.start(number)
    assert windows.starts_of(np.array(found, dtype=np.int64)).tolist() == [windows.start(number) for number in found]
    assert windows.ends_of(np.array(found, dtype=np.int64)).tolist() == [windows.end(number) for number in found]


# What the engine makes of them

T0 = at("2011-12-29T06:00")
"""In Apia a day is left out the day after; the year is new in three."""
SPRING = at("2026-03-28T12:00")
AUTUMN = at("2018-11-03T12:00")
STEPS = [5 * HOUR, 7 * HOUR + 1234, DAY, 9 * DAY]
"""How long a tick of the scenarios is."""


def stretched(made: Scenario, first: int, step: int, second: int = 1) -> Scenario:
    """Return a scenario with `step` seconds for each tick, from `first` on."""

    def time(old: int) -> int:
        return old if old in (MIN_TIME, INFINITY) else (first + old * step) * second

    def moved(event: Event[Any]) -> Event[Any]:
        match event:
            case Insert():
                return replace(event, le=time(event.le), re=time(event.re))
            case Retract():
                return replace(event, le=time(event.le), re=time(event.re), re_new=time(event.re_new))
        assert isinstance(event, Cti)
        return Cti(time(event.time))

    return Scenario(tuple((source, tuple(map(moved, events))) for source, events in made.pushes))


Made: TypeAlias = Callable[[Any], Any]
UNITS: list[Unit] = ["s", "ms"]
RESULTS: list[tuple[Made, dict[str, Any]]] = [
    (lambda w: w.aggregate(n=sd.count(), total=sd.sum(lambda e: e.v), mean=sd.avg(lambda e: e.v)), {}),
    (lambda w: w.aggregate(n=sd.count()), {"output": sd.Output.POINT_AT_END}),
    (lambda w: w.aggregate(low=sd.min(lambda e: e.v), mid=sd.median(lambda e: e.v)), {}),
    (lambda w: w.aggregate(Spread(), lambda e: e.v), {}),
    (lambda w: w.aggregate(Ends(), lambda e: e.v), {}),
    (lambda w: w.aggregate(Ends(), lambda e: e.v), {"clip": sd.Clip.RIGHT, "output": sd.Output.POINT_AT_END}),
    (lambda w: w.aggregate(mean=sd.time_weighted_avg(lambda e: e.v)), {"clip": sd.Clip.FULL}),
    (lambda w: w.top_k(1, by="v", rank=True), {}),
    (lambda w: w.apply(Through(), lambda e: e.v), {"output": sd.Output.TIME_BOUND}),
]
PLACES: list[tuple[str, int]] = [
    ("UTC", SPRING),
    ("Europe/Berlin", SPRING),
    ("America/Sao_Paulo", AUTUMN),
    ("Pacific/Apia", T0),
    ("Europe/Amsterdam", at("1937-06-30")),
    ("America/St_Johns", at("2010-11-06T12:00")),
]


def drawn(rng: Random) -> tuple[Any, Callable[[Scenario], Scenario], int]:
    """Return a query over calendar windows, how to stretch scenarios for it, and their unit."""
    (result, policies), (zone, first) = rng.choice(RESULTS), rng.choice(PLACES)
    period, every, unit = rng.choice(["day", "day", "week", "month", "year"]), rng.choice([1, 1, 1, 2]), rng.choice(UNITS)
    source: Any = sd.source("s0", unit=unit)
    rows = source.group_by("k") if rng.random() < 0.5 else source
    query = result(rows.calendar_window(period, every, tz=zone, **policies))
    step = rng.choice(STEPS[:2] if period == "day" else STEPS)
    note(query.explain())
    return query, partial(stretched, first=first, step=step, second=PER_SECOND[unit]), PER_SECOND[unit] * step


@examples(250)
@given(SEEDS)
def test_output_means_what_the_reference_says_after_every_push_over_a_calendar(seed: int) -> None:
    rng = Random(seed)
    query, stretch, _ = drawn(rng)
    check_law(query, stretch(scenario(rng, unending=False)), rng.choice(EMITS))


@examples(60)
@given(SEEDS)
def test_a_bounded_run_makes_the_calendar_windows_that_end_by_then(seed: int) -> None:
    rng = Random(seed)
    query, stretch, _ = drawn(rng)
    until = stretch(Scenario((("s0", (Cti(rng.randint(-5, 40)),)),))).pushes[0][1][0]
    assert isinstance(until, Cti)
    check_until(query, stretch(scenario(rng)), until.time)


EDGES: list[list[Life]] = [
    [(MIN_TIME, MIN_TIME + 1)],
    [(MIN_TIME + 5, 7)],
    [(MIN_TIME + 800 * DAY, MIN_TIME + 801 * DAY)],
    [(INFINITY - 3 * DAY, INFINITY - 2 * DAY), (0, 1)],
    [(INFINITY - 5, INFINITY - 3)],
    [(INFINITY - 800 * DAY, INFINITY - 799 * DAY), (MIN_TIME + 900 * DAY, MIN_TIME + 900 * DAY + 1)],
    [(at("9999-12-31T23:00"), at("9999-12-31T23:00") + 2 * HOUR)],
    [(3, INFINITY)],
    [(-70 * DAY, 70 * DAY)],
]


FINE_AND_COARSE: list[Unit] = ["s", "ns"]


def outcome(query: Any, until: int | None, **how: Any) -> object:
    try:
        return query.run(until=until, **how).cht()
    except (TimeOverflow, UnboundedOutputError) as error:
        return type(error)


@pytest.mark.parametrize("period", ["day", "month"])
@pytest.mark.parametrize("zone", ["UTC", "America/Anchorage"])
def test_calendar_windows_at_the_edges_of_time(zone: str, period: Period) -> None:
    seen = set()
    results: Iterable[Made] = (lambda w: w.aggregate(n=sd.count()), lambda w: w.aggregate(m=sd.max(lambda e: e)))
    for rows, until, result, unit in itertools.product(EDGES, [None, 50 * DAY, MIN_TIME + 5], results, FINE_AND_COARSE):
        query = result(sd.from_rows([(le, re, 1) for le, re in rows], unit=unit).calendar_window(period, tz=zone))
        few = sum(min(re, INFINITY if until is None else until) - le for le, re in rows) < 10**4 * DAY
        if not few and (rows[0] != (3, INFINITY) or until is not None) and until != MIN_TIME + 5:
            continue
        expected = outcome(query, until, engine="reference")
        assert outcome(query, until) == expected, (rows, until, unit)
        seen.add(isinstance(expected, type))
    assert seen == {False, True}
