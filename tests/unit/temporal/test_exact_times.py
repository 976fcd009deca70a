"""Times and durations are exact: what leaves int64 or falls between two ticks is refused, never rounded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdsl.errors import TimeOverflow, UnitError
from streamdsl.temporal import INFINITY, MIN_TIME, Unit, format_time, to_duration, to_ticks

UNITS: st.SearchStrategy[Unit] = st.sampled_from(("s", "ms", "us", "ns"))
SECONDS = {
    "W": Fraction(604800),
    "D": Fraction(86400),
    "h": Fraction(3600),
    "m": Fraction(60),
    "s": Fraction(1),
    "ms": Fraction(1, 10**3),
    "us": Fraction(1, 10**6),
    "ns": Fraction(1, 10**9),
    "ps": Fraction(1, 10**12),
    "fs": Fraction(1, 10**15),
    "as": Fraction(1, 10**18),
}
COUNTS = st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-5000, 5000).map(lambda n: n * 1000)


def expected(seconds: Fraction, unit: Unit) -> int | type[Exception]:
    ticks = seconds / SECONDS[unit]
    if ticks.denominator != 1:
        return UnitError
    return ticks.numerator if MIN_TIME <= ticks <= INFINITY else TimeOverflow


def outcome(convert: Any, value: object, unit: Unit) -> int | type[Exception]:
    try:
        ticks: int = convert(value, unit)
    except (UnitError, TimeOverflow) as error:
        return type(error)
    return ticks


@given(COUNTS, st.sampled_from(sorted(SECONDS)), UNITS)
def test_a_numpy_time_of_any_unit_is_its_exact_ticks_or_refused(count: int, numpy_unit: Any, unit: Unit) -> None:
    seconds = count * SECONDS[numpy_unit]
    assert outcome(to_ticks, np.datetime64(count, numpy_unit), unit) == expected(seconds, unit)
    assert outcome(to_duration, np.timedelta64(count, numpy_unit), unit) == expected(seconds, unit)


PARTS: dict[str, int | Fraction] = {
    "d": 86400,
    "h": 3600,
    "m": 60,
    "s": 1,
    "ms": Fraction(1, 10**3),
    "us": Fraction(1, 10**6),
    "ns": Fraction(1, 10**9),
}


@given(st.dictionaries(st.sampled_from(list(PARTS)), st.integers(0, 10**6), min_size=1), st.booleans(), UNITS)
def test_a_written_duration_is_its_exact_ticks_or_refused(parts: dict[str, int], is_negative: bool, unit: Unit) -> None:
    text = ("-" if is_negative else "") + "".join(f"{parts[name]}{name}" for name in PARTS if name in parts)
    seconds = sum((Fraction(count * PARTS[name]) for name, count in parts.items()), Fraction(0))
    assert outcome(to_duration, text, unit) == expected(-seconds if is_negative else seconds, unit)


@given(st.timedeltas(timedelta(days=-(10**5)), timedelta(days=10**5)), UNITS)
def test_every_timedelta_is_its_exact_ticks_or_refused(length: timedelta, unit: Unit) -> None:
    assert outcome(to_duration, length, unit) == expected(Fraction(length // timedelta(microseconds=1), 10**6), unit)


@pytest.mark.parametrize(("value", "ticks"), [("2013", 1356998400), ("2013-02", 1359676800), ("1969-12", -2678400)])
def test_numpy_years_and_months_are_dates(value: str, ticks: int) -> None:
    assert to_ticks(np.datetime64(value), "s") == ticks


def test_a_numpy_year_beyond_all_dates_overflows() -> None:
    for value in (np.datetime64(2**60, "Y"), np.datetime64(2**62, "M"), np.datetime64(2**40, "Y")):
        with pytest.raises(TimeOverflow):
            to_ticks(value, "ns")


@pytest.mark.parametrize("value", [np.timedelta64(1, "Y"), np.timedelta64(2, "M"), np.timedelta64(3)])
def test_years_and_months_and_numbers_without_a_unit_are_no_durations(value: Any) -> None:
    with pytest.raises(UnitError, match="no fixed length"):
        to_duration(value, "s")


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1970-01-01T00:00:00.000000001", 1),
        ("1970-01-01 00:00:01.1234567", 1_123_456_700),
        ("1970-01-01T00:00:00,123456789Z", 123_456_789),
        ("19700101T000000.000000002", 2),
        ("1970-01-01T01:00:00.000000003+01:00", 3),
        ("1969-12-31T23:59:59.999999999", -1),
    ],
)
def test_text_keeps_its_nanoseconds(text: str, nanoseconds: int) -> None:
    assert to_ticks(text, "ns") == nanoseconds
    with pytest.raises(UnitError, match="whole number of us"):
        to_ticks(text, "us")


def test_digits_beyond_nanoseconds_are_not_cut_off() -> None:
    with pytest.raises(UnitError, match="whole number of ns"):
        to_ticks("1970-01-01T00:00:00.0000000001", "ns")
    assert to_ticks("1970-01-01T00:00:00.0000000010", "ns") == 1


@pytest.mark.parametrize("text", ["1970-01-01T00:00.5", "1970-01-01T00:00.1234567", "1970-01-01T00,1234567", "1970-01-01.1"])
def test_a_fraction_of_anything_but_a_second_is_no_date(text: str) -> None:
    with pytest.raises(UnitError, match="is not a date"):
        to_ticks(text, "ns")


def test_pandas_times_keep_their_nanoseconds() -> None:
    assert to_ticks(pd.Timestamp(1, unit="ns"), "ns") == to_duration(pd.Timedelta(1, unit="ns"), "ns") == 1
    for convert, value in ((to_ticks, pd.Timestamp(1, unit="ns")), (to_duration, pd.Timedelta(1, unit="ns"))):
        with pytest.raises(UnitError, match="whole number of us"):
            convert(value, "us")


def test_pandas_times_beyond_pythons_years_are_times() -> None:
    far = np.datetime64("20000-01-01T00:00:07", "s")
    assert to_ticks(pd.Timestamp(far), "s") == int(far.astype(np.int64))
    assert to_ticks(pd.Timestamp("2013-02-08T01:00", tz="Europe/Berlin"), "s") == to_ticks("2013-02-08", "s")
    assert to_duration(pd.Timedelta(np.timedelta64(2**62, "s")), "s") == 2**62
    with pytest.raises(TimeOverflow):
        to_ticks(pd.Timestamp(far), "ns")


@given(st.datetimes(timezones=st.timezones() | st.none()))
def test_every_datetime_is_its_microseconds(moment: datetime) -> None:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    assert to_ticks(moment) == (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@pytest.mark.parametrize(("text", "seconds"), [("-1h", -3600), ("+1h", 3600), (" - 1h 30m ", -5400), ("1 h30 m", 5400)])
def test_a_sign_stands_once_before_a_duration(text: str, seconds: int) -> None:
    assert to_duration(text, "s") == seconds


@pytest.mark.parametrize("text", ["--1h", "+-1h", "1h-30m", "1h -30m", "\u0663s", ".5s", "1e3s", "5 minutes", "1H", "-", "h"])
def test_what_looks_like_a_duration_but_is_none(text: str) -> None:
    with pytest.raises(UnitError, match="is not a duration"):
        to_duration(text, "ms")


@pytest.mark.parametrize(
    "value", [None, float("inf"), float("nan"), np.float64("inf"), np.datetime64("NaT"), np.datetime64("NaT", "ns"), pd.NaT]
)
@pytest.mark.parametrize("unit", [None, "tick", "us"])
def test_what_elsewhere_means_an_end_that_is_not_known_is_refused_with_a_hint(value: Any, unit: Any) -> None:
    with pytest.raises(UnitError, match=r"is not a time\n.*sd\.INFINITY"):
        to_ticks(value, unit)


def test_the_ends_of_time_are_shown_as_what_they_are() -> None:
    assert [format_time(time, "us") for time in (MIN_TIME, INFINITY)] == ["MIN_TIME", "inf"]
    assert format_time(MIN_TIME + 1, "ns") == "1677-09-21T00:12:43.145224193Z"
    assert format_time(MIN_TIME) == str(MIN_TIME)
