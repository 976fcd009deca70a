from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from streamdsl.errors import QueryError, UnitError
from streamdsl.testing import VirtualClock


def test_time_stands_still_until_it_is_moved() -> None:
    clock = VirtualClock(datetime(2013, 1, 1, tzinfo=UTC))
    start = clock()
    assert clock() == start == int(datetime(2013, 1, 1, tzinfo=UTC).timestamp()) * 10**9
    clock.advance("1h30m")
    clock.advance(timedelta(milliseconds=5))
    clock.advance(7)
    assert clock() - start == 5400 * 10**9 + 5 * 10**6 + 7
    clock.advance_to("2013-01-02")
    assert clock() - start == 86400 * 10**9


def test_it_goes_where_the_clock_of_the_machine_goes() -> None:
    clocks: list[Callable[[], int]] = [time.time_ns, VirtualClock("2013-01-01")]
    assert all(type(clock()) is int for clock in clocks)


def test_time_does_not_go_back() -> None:
    clock = VirtualClock("2013-01-02")
    with pytest.raises(QueryError, match="does not go back"):
        clock.advance(-1)
    with pytest.raises(QueryError, match="does not go back"):
        clock.advance_to("2013-01-01")
    with pytest.raises(UnitError):
        clock.advance(0.5)  # type: ignore[arg-type]
