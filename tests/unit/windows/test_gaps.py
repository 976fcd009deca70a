"""Hopping windows with a size below their hop: a warning at the line of the query, once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import WindowGapsWarning

S: sd.Stream[Any] = sd.source("s")
LINES = Path(__file__).read_text().splitlines()

GAPS: dict[str, Callable[[], object]] = {
    "ticks": lambda: S.hopping_window(5, 10),
    "dates": lambda: S.group_by("k").hopping_window("10m", "1h"),
    "sql": lambda: sd.sql("SELECT count(*) AS n FROM s GROUP BY HOP(5, 10)", s=S),
}


@pytest.mark.parametrize("query", GAPS.values(), ids=list(GAPS))
def test_gaps_are_warned_of_at_the_line_of_the_query(query: Callable[[], object]) -> None:
    with pytest.warns(WindowGapsWarning, match=r"leaves gaps.*\nHint: the size comes first: hopping_window\('?1[0h]") as seen:
        query()
    assert [(each.filename, "lambda: " in LINES[each.lineno - 1]) for each in seen] == [(__file__, True)]


def test_a_line_warns_once() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for _ in range(3):
            S.hopping_window(5, 10).aggregate(n=sd.count()).run({"s": [(1, 2, "a")]})
    assert [each.category for each in seen] == [WindowGapsWarning]


@pytest.mark.parametrize(
    "query",
    [
        lambda: S.hopping_window(10, 5),
        lambda: S.hopping_window("1h", "1h"),
        lambda: S.tumbling_window(3),
        lambda: S.trailing_window("10m", "1h"),
        lambda: S.calendar_window("month"),
    ],
)
def test_windows_that_cover_all_times_do_not_warn(query: Callable[[], object]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        query()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("length", ["1h30m", "2d", "45s", "1d1s"])
def test_lengths_of_windows_are_shown_as_durations_that_are_read_again(unit: Any, length: str) -> None:
    rows: sd.Stream[Any] = sd.source("s", unit=unit)
    for windows, shown in (
        (rows.tumbling_window(length), f"tumbling({length})"),
        (rows.hopping_window("4d", length), f"hopping(4d, {length})"),
        (rows.session_window(length, max_duration="9d"), f"session({length}, max_duration=9d)"),
    ):
        assert shown in repr(windows)
        assert shown in windows.aggregate(n=sd.count()).explain()
        assert shown in windows.aggregate(n=sd.count()).explain("reference")
    assert "tumbling(90)" in repr(S.tumbling_window(90))
