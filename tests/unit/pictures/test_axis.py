"""The axis of time: places are exact, and what is written on it are round numbers or dates, in order and not too many."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdsl.pictures.axis import TimeAxis
from streamdsl.temporal import INFINITY, MIN_TIME, Unit
from streamdsl.temporal.time import PER_SECOND

FINITE = st.integers(MIN_TIME + 1, INFINITY - 1)


@given(FINITE, FINITE, st.lists(FINITE, max_size=5))
def test_times_are_in_order_between_the_ends(one: int, other: int, times: list[int]) -> None:
    axis = TimeAxis.over([np.array([one, other])], None, 10.0, 900.0, 40.0)
    inside = sorted({min(max(time, axis.first), axis.last) for time in times})
    places = axis.xs(np.array(inside, dtype=np.int64)).tolist()
    assert places == sorted(places)
    assert all(10.0 <= place <= 900.0 for place in places)
    exact = [10 + 890 * (time - axis.first) / axis.span for time in inside]
    assert places == pytest.approx(exact, abs=1e-3)


def test_nearby_times_of_today_in_nanoseconds_are_told_apart() -> None:
    first = 1_774_656_000_000_000_000
    axis = TimeAxis(first, first + 10, "ns", 0.0, 100.0)
    assert axis.xs(np.arange(first, first + 11)).tolist() == [10.0 * n for n in range(11)]


def test_infinity_is_beyond_and_the_least_time_at_the_start() -> None:
    axis = TimeAxis.over([np.array([MIN_TIME, 3]), np.array([9, INFINITY])], None, 0.0, 100.0, 20.0)
    assert (axis.first, axis.last) == (3, 9)
    assert axis.xs(np.array([MIN_TIME, 3, 9, INFINITY])).tolist() == [0.0, 0.0, 80.0, 100.0]


@given(FINITE, st.integers(1, 2**62), st.sampled_from([None, "tick", "s", "ms", "us", "ns"]), st.integers(2, 14))
def test_marks_are_in_the_axis_evenly_spaced_and_not_too_many(first: int, span: int, unit: Unit | None, most: int) -> None:
    last = min(first + span, INFINITY - 1)
    if last <= first:
        return
    marks = TimeAxis(first, last, unit, 0.0, 1.0).marks(most)
    assert len(marks) <= 2 * most + 1
    times = [mark.time for mark in marks]
    assert times == sorted(set(times))
    assert all(first <= time <= last for time in times)
    gaps = [b - a for a, b in pairwise(times)]
    assert not gaps or max(gaps) <= 1.2 * min(gaps)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@given(st.datetimes(datetime(1950, 1, 1), datetime(2150, 1, 1)), st.integers(11, 10**9))
def test_what_is_written_is_the_date(unit: Unit, start: datetime, seconds: int) -> None:
    first = int(start.replace(tzinfo=UTC).timestamp()) * PER_SECOND[unit]
    day = ""
    for mark in TimeAxis(first, first + seconds * PER_SECOND[unit], unit, 0.0, 1.0).marks(11):
        moment = datetime.fromtimestamp(mark.time // PER_SECOND[unit], UTC)
        day = mark.date or day
        shown = f"{day} {mark.text}" if ":" in mark.text else f"{day}-{mark.text}" if day else mark.text
        assert moment.isoformat(sep=" ").startswith(shown)


def test_fractions_of_seconds_have_the_digits_of_their_step() -> None:
    assert [mark.text for mark in TimeAxis(0, 1_000_000, "us", 0.0, 1.0).marks(4)] == [
        "00:00:00.0",
        "00:00:00.5",
        "00:00:01.0",
    ]
    assert [mark.text for mark in TimeAxis(0, 4, "ms", 0.0, 1.0).marks(2)] == ["00:00:00.000", "00:00:00.002", "00:00:00.004"]
