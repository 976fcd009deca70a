"""Windows and lifetimes at the edges of int64: every engine gives the same rows, or each refuses the input."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import TimeOverflow, UnboundedOutputError
from streamdsl.temporal import INFINITY, MIN_TIME

Rows = list[tuple[int, int, int]]
Query = Callable[["sd.Stream[Any]"], "sd.Stream[Any]"]

GRIDS = [(10, 5, 0), (10, 10, 0), (3, 7, 0), (10, 10, 3), (2**62, 2**62, 0), (INFINITY, INFINITY, 0)]
SESSIONS = [(10, None), (10, 10**18), (10, 2**62), (10, INFINITY), (INFINITY, None), (INFINITY, 2**62), (INFINITY, INFINITY)]
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
    [(0, INFINITY, 1), (3, 4, 1)],
    [(INFINITY - 21, INFINITY - 12, 1)],
    [(INFINITY - 21, INFINITY - 11, 1), (INFINITY - 13, INFINITY - 12, 1)],
    [(INFINITY - 21, INFINITY - 11, 1), (INFINITY - 13, INFINITY, 1)],
]
LONG: Rows = [(MIN_TIME, 4, 1)]
"""More windows of a grid than there is room for: of sessions it makes a few."""
FAR: list[Rows] = [
    [(MIN_TIME, INFINITY, 1), (5, 7, 1)],
    [(MIN_TIME + 2, INFINITY - 2, 1), (MIN_TIME, INFINITY, 2), (5, 7, 1), (MIN_TIME + 1, 0, 2)],
    [(MIN_TIME, MIN_TIME + 1, 1), (INFINITY - 3, INFINITY - 1, 1), (-5, 5, 1)],
]
"""Times that are further apart than int64 counts."""
QUERIES: dict[str, Query] = {
    **{f"hopping{grid}": lambda s, grid=grid: s.hopping_window(*grid).aggregate(n=sd.count()) for grid in GRIDS},  # type: ignore[misc]
    "hopping, a point at the end": lambda s: s.hopping_window(10, 5, output=sd.Output.POINT_AT_END).aggregate(n=sd.count()),
    "hopping, chopped": lambda s: s.chop(10),
    "hopping, chopped at 3": lambda s: s.chop(10, offset=3),
    "snapshot": lambda s: s.snapshot_window().aggregate(n=sd.count()),
    "sequence by time": lambda s: s.windows(sd.astral.range_slide(10, 5)).aggregate(n=sd.count()),
    "sequence at every time": lambda s: s.windows(sd.astral.range_slide(10)).aggregate(n=sd.count()),
    "sequence by position": lambda s: s.windows(sd.astral.rows_slide(2, 1)).aggregate(n=sd.count()),
    "sequence by time and position": lambda s: s.windows(sd.astral.last_n_every(2, 2**61)).aggregate(n=sd.count()),
    "count by start": lambda s: s.count_window(1).aggregate(n=sd.count()),
    "count by end": lambda s: s.count_window(1, by="end").aggregate(n=sd.count()),
    **{f"session{gaps}": lambda s, gaps=gaps: s.session_window(*gaps).aggregate(n=sd.count()) for gaps in SESSIONS},  # type: ignore[misc]
}
SPANS: dict[str, Query] = {
    **{f"quantize{grid}": lambda s, grid=grid: s.quantize(*grid) for grid in GRIDS},  # type: ignore[misc]
    "shift": lambda s: s.shift(5),
    "shift back": lambda s: s.shift(-5),
    "extend": lambda s: s.extend(5),
    "extend back": lambda s: s.extend(-5),
    "clip_duration": lambda s: s.clip_duration(5),
    "clip_duration to anything": lambda s: s.clip_duration(INFINITY),
    "clip_interval": lambda s: s.clip_interval(MIN_TIME, INFINITY),
    "alter_duration": lambda s: s.alter_duration(12),
    "match": lambda s: s.match(lambda p: p.a.within(12)),
    "to_points_at_end": lambda s: s.to_points_at_end(),
}
PIECES: dict[str, Query] = {
    "distinct": lambda s: s.distinct(),
    "stitch": lambda s: s.stitch(),
    "to_edges": lambda s: s.to_edges(),
    "clip_by": lambda s: s.clip_by(sd.from_rows([(INFINITY - 5, INFINITY - 3, {"v": 1}), (MIN_TIME + 1, 4, {"v": 2})])),
    "join": lambda s: s.join(s, on="v"),
    "anti_join": lambda s: s.anti_join(sd.from_rows([(-5, INFINITY - 3, {"v": 1}), (MIN_TIME + 1, 4, {"v": 2})]), on="v"),
}
NEVER_REFUSED = {
    "sequence by time",
    "sequence at every time",
    "sequence by position",
    "snapshot",
    f"session{(INFINITY, None)}",
    "clip_duration",
    "clip_duration to anything",
    "clip_interval",
}
UNTIL = [None, 15, MIN_TIME + 5]


def outcome(query: sd.Stream[Any], until: int | None, **how: Any) -> object:
    """Return the history that a query gives, or the type of the error with which it is refused.

    Hopping windows of an event that never ends may also lie outside time: which of the two is found first is not said.
    """
    try:
        return query.run(until=until, **how).cht()
    except (TimeOverflow, UnboundedOutputError) as error:
        return type(error)


@pytest.mark.parametrize("name", QUERIES)
def test_windows_at_the_edges_of_time(name: str) -> None:
    seen: Counter[bool] = Counter()
    for rows, until in itertools.product([*ROWS, LONG] if "session" in name else ROWS, UNTIL):
        query = QUERIES[name](sd.from_rows(rows))
        expected = outcome(query, until, engine="reference")
        refused = isinstance(expected, type)
        found = outcome(query, until)
        two_reasons = "hopping" in name and refused and isinstance(found, type)
        assert found == expected or two_reasons, (rows, until)
        seen[refused] += bool(expected)
    assert seen[False] >= 4, "there are rows too"
    assert bool(seen[True]) == (name not in NEVER_REFUSED)


@pytest.mark.parametrize("name", SPANS)
def test_lifetimes_at_the_edges_of_time(name: str) -> None:
    seen: Counter[bool] = Counter()
    for rows in ROWS:
        query = SPANS[name](sd.from_rows(rows))
        expected = outcome(query, None, engine="reference")
        assert outcome(query, None) == expected, rows
        seen[isinstance(expected, type)] += bool(expected)
    assert seen[False] >= 4, "there are rows too"
    assert bool(seen[True]) == (name not in NEVER_REFUSED)


@pytest.mark.parametrize("name", PIECES)
def test_rows_meet_however_far_their_ends_are_apart(name: str) -> None:
    for rows in [*ROWS, *FAR]:
        query = PIECES[name](sd.from_rows([(le, re, {"v": v}) for le, re, v in rows]))
        assert outcome(query, None) == outcome(query, None, engine="reference"), rows
