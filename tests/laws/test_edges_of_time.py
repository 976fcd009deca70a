"""Windows and lifetimes at the edges of int64: every engine gives the same rows, or each refuses the input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import TimeOverflow, UnboundedOutputError
from streamdsl.temporal import INFINITY, MIN_TIME

Rows = list[tuple[int, int, int]]
Query = Callable[["sd.Stream[Any]"], "sd.Stream[Any]"]

GRIDS = [(10, 5, 0), (10, 10, 0), (3, 7, 0), (10, 10, 3), (2**62, 2**62, 0), (INFINITY, INFINITY, 0)]
ROWS: list[Rows] = [
    [(MIN_TIME, MIN_TIME + 1, 1)],
    [(MIN_TIME, MIN_TIME + 20, 1)],
    [(MIN_TIME + 3, MIN_TIME + 4, 1)],
    [(MIN_TIME, MIN_TIME + 1, 1), (3, 4, 1)],
    [(INFINITY - 3, INFINITY - 1, 1)],
    [(INFINITY - 12, INFINITY - 10, 1)],
    [(INFINITY - 21, INFINITY - 19, 1)],
    [(INFINITY - 5, INFINITY - 4, 1), (3, 4, 1)],
    [(INFINITY - 3, INFINITY, 1)],
    [(INFINITY - 1, INFINITY, 1)],
    [(0, INFINITY, 1)],
]
QUERIES: dict[str, Query] = {
    **{f"hopping{grid}": lambda s, grid=grid: s.hopping_window(*grid).aggregate(n=sd.count()) for grid in GRIDS},  # type: ignore[misc]
    "hopping, a point at the end": lambda s: s.hopping_window(10, 5, output=sd.Output.POINT_AT_END).aggregate(n=sd.count()),
    "snapshot": lambda s: s.snapshot_window().aggregate(n=sd.count()),
    "count by start": lambda s: s.count_window(1).aggregate(n=sd.count()),
    "count by end": lambda s: s.count_window(1, by="end").aggregate(n=sd.count()),
}

SPANS: dict[str, Query] = {
    **{f"quantize{grid}": lambda s, grid=grid: s.quantize(*grid) for grid in GRIDS},  # type: ignore[misc]
    "shift": lambda s: s.shift(5),
    "shift back": lambda s: s.shift(-5),
    "extend": lambda s: s.extend(5),
    "extend back": lambda s: s.extend(-5),
    "clip_duration": lambda s: s.clip_duration(5),
    "clip_duration to anything": lambda s: s.clip_duration(INFINITY),
    "clip_duration to nothing": lambda s: s.clip_duration(-3),
    "clip_interval": lambda s: s.clip_interval(MIN_TIME, INFINITY),
    "alter_duration": lambda s: s.alter_duration(7),
    "to_points_at_end": lambda s: s.to_points_at_end(),
}


def outcome(query: sd.Stream[Any], until: int | None, **how: Any) -> object:
    try:
        return query.run(until=until, **how).cht()
    except (TimeOverflow, UnboundedOutputError):
        return "refused"


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("until", [None, 15, MIN_TIME + 5])
def test_windows_at_the_edges_of_time(name: str, until: int | None) -> None:
    for rows in ROWS:
        query = QUERIES[name](sd.from_rows(rows))
        expected = outcome(query, until, engine="reference")
        assert outcome(query, until) == expected, rows
        assert outcome(query, until, engine_options={"window": "general"}) == expected, rows


@pytest.mark.parametrize("name", SPANS)
def test_lifetimes_at_the_edges_of_time(name: str) -> None:
    for rows in ROWS:
        query = SPANS[name](sd.from_rows(rows))
        assert outcome(query, None) == outcome(query, None, engine="reference"), rows
