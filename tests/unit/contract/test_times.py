"""The public contract, section 1: times and durations, in any form and unit."""

from __future__ import annotations

import itertools
from datetime import date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest

import streamdsl as sd
from streamdsl import INFINITY, MIN_TIME, Cti, Insert
from streamdsl.errors import TimeOverflow, UnitError
from tests.unit.contract.common import DAY, ENGINES, X, cht_of, refused, rows


@pytest.mark.parametrize(
    "time",
    [
        DAY,
        "1970-01-02",
        "1970-01-02T00:00:00Z",
        "1970-01-02T01:00:00+01:00",
        date(1970, 1, 2),
        datetime(1970, 1, 2),
        datetime(1970, 1, 2, 2, tzinfo=timezone(timedelta(hours=2))),
        np.datetime64("1970-01-02"),
        pd.Timestamp("1970-01-02"),
    ],
)
def test_wherever_a_time_is_taken_any_form_of_it_is(time: Any) -> None:
    source = sd.from_events([sd.interval("a", 0, time, 1), Cti(time)], unit="s")
    assert cht_of(source).rows == [sd.CHTRow(0, DAY, 1)]
    assert cht_of(sd.from_rows([(0, INFINITY, 1)], unit="s").clip_interval(0, time)).rows == [sd.CHTRow(0, DAY, 1)]
    assert len(cht_of(sd.from_rows([(0, INFINITY, 1)], unit="s").tumbling_window("6h").aggregate(n=sd.count()), until=time)) == 4
    moved = sd.from_rows([(0, 5, 1)], unit="s").alter_lifetime(time, 5)
    assert cht_of(moved).rows == [sd.CHTRow(DAY, DAY + 5, 1)]


@pytest.mark.parametrize(
    "duration", [3600, "1h", "60m", "30m30m", timedelta(hours=1), np.timedelta64(1, "h"), pd.Timedelta("1h")]
)
def test_wherever_a_duration_is_taken_any_form_of_it_is(duration: Any) -> None:
    source = sd.from_rows([(0, 5, 1)], unit="s")
    assert cht_of(source.shift(duration)).rows == [sd.CHTRow(3600, 3605, 1)]
    assert cht_of(source.alter_duration(duration)).rows == [sd.CHTRow(0, 3600, 1)]
    assert cht_of(source.tumbling_window(duration, offset=duration).aggregate(sd.count())).rows == [sd.CHTRow(0, 3600, 1)]


def test_a_stream_over_dates_counts_microseconds_by_default_and_one_over_integers_ticks() -> None:
    assert sd.from_rows([("1970-01-01", "1970-01-02", 1)]).run().unit == "us"
    assert sd.from_rows([(1, 2, 1)]).run().unit == "tick"
    with refused(UnitError, "plain ticks", "'1h'"):
        sd.from_rows([(1, 2, 1)]).shift("1h")


@pytest.mark.parametrize(
    "query",
    [
        X.shift("1h"),
        X.union(X.shift("1h")),
        X.clip_interval("1970-01-01", "1970-01-03"),
        X.alter_duration(timedelta(hours=1)),
        X.tumbling_window("1h").aggregate(n=sd.count()),
        X.group_by("value").tumbling_window("1h").aggregate(n=sd.count()),
        X.group_by("value").apply(lambda g: g.union(g.shift("1h"))),
    ],
)
def test_mixed_time_units_are_refused(query: sd.Stream[Any]) -> None:
    """A source without a unit counts microseconds once a calendar duration is used with it; nothing else fits it then."""
    for unit in ("s", "ms", "ns", "tick"):
        times = (1, 2) if unit == "tick" else ("1970-01-01", "1970-01-02")
        with refused(UnitError, "us"):
            query.run({"x": sd.from_rows([(*times, 1)], unit=unit)})
    assert cht_of(query, bindings={"x": [("1970-01-01", "1970-01-01T00:30", 1)]}).rows[0].re > 10**9


def test_until_and_lambdas_are_read_in_the_unit_that_the_input_turns_out_to_have() -> None:
    seconds = sd.from_rows([("1970-01-01", INFINITY, {"at": datetime(1970, 1, 3), "for": timedelta(seconds=5)})], unit="s")
    counted = X.tumbling_window(10).aggregate(n=sd.count())
    assert len(cht_of(counted, bindings={"x": seconds}, until="1970-01-01T00:00:30")) == 3
    moved = X.alter_lifetime(lambda e: e["at"], lambda e: e["for"])
    assert [row[:2] for row in cht_of(moved, bindings={"x": seconds})] == [(2 * DAY, 2 * DAY + 5)]


def test_infinity_absorbs_addition_and_any_other_overflow_raises() -> None:
    assert cht_of(sd.from_rows([(1, INFINITY, 1)]).shift(5)).rows == [sd.CHTRow(6, INFINITY, 1)]
    assert cht_of(sd.from_rows([(MIN_TIME, 0, 1)])).rows == [sd.CHTRow(MIN_TIME, 0, 1)]
    last = INFINITY - 1
    overflowing = [
        sd.from_rows([(2**62, 2**62 + 1, 1)]).shift(2**62),
        sd.from_rows([(MIN_TIME, 0, 1)]).shift(-1),
        sd.from_rows([(MIN_TIME, MIN_TIME + 1, 1)]).tumbling_window(10).aggregate(n=sd.count()),
        sd.from_rows([(last - 5, last, 1)]).tumbling_window(10).aggregate(n=sd.median(lambda e: e)),
        sd.from_rows([(last, INFINITY, 1)]).count_window(1).aggregate(n=sd.count()),
        sd.from_rows([(1, 2, 2**70)]).alter_duration(lambda e: e),
    ]
    for query, engine in itertools.product(overflowing, ENGINES):
        with pytest.raises(TimeOverflow):
            query.run(engine=engine)


@pytest.mark.parametrize("duration", [1.5, None, "soon", True])
def test_a_lambda_gives_ticks_or_the_error_names_operator_and_event(duration: Any) -> None:
    computed = sd.from_events([Insert("late", 1, 5, {"d": duration})]).alter_duration(lambda e: e.d)
    for engine in ENGINES:
        with refused(UnitError, "operator alter_lifetime_1", "event", repr(duration)):
            computed.run(engine=engine)
    if duration is not None:
        with pytest.raises(UnitError):
            rows(1).alter_duration(lambda e: duration)
