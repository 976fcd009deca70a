"""Session windows on Spark: as SQL where no session is cut, in Python for modules and for cut sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import TimeOverflow, UnboundedOutputError
from tests.spark.helpers import check, check_many, explained, history, stream

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

Query = Callable[[sd.Stream[Any]], sd.Stream[Any]]


class Spread(sd.UDA[float, float]):
    def compute_result(self, payloads: Sequence[float]) -> float:
        return max(payloads) - min(payloads)


class Tails(sd.TimeSensitiveUDA[int, tuple[int, ...]]):
    def compute_result(self, events: Sequence[sd.IntervalEvent[int]], window: sd.WindowDescriptor) -> tuple[int, ...]:
        return tuple(sorted(min(window.end_time, 99) - event.start_time for event in events))


def several(s: sd.Stream[Any], gap: int, longest: int | None = None) -> sd.Stream[Any]:
    return s.session_window(gap, longest).aggregate(
        n=sd.count(),
        positive=sd.count(where=lambda e: e.v > 0),
        least=sd.min(lambda e: e.m),
        total=sd.sum(lambda e: e.f),
        middle=sd.median(lambda e: e.f),
        last=sd.last(lambda e: e.v),
        kinds=sd.count_distinct(lambda e: e.k),
    )


NATIVE: dict[str, Query] = {
    "built-ins": lambda s: several(s, 2),
    "the smallest gap": lambda s: s.session_window(1).aggregate(n=sd.count(), last=sd.last(lambda e: e.v)),
    "point at end": lambda s: s.session_window(1, output=sd.Output.POINT_AT_END).aggregate(n=sd.count()),
    "by key": lambda s: s.group_by("k").session_window(3).aggregate(n=sd.count(), top=sd.max(lambda e: e.v)),
    "by a key that can be None": lambda s: s.group_by("m").session_window(2).aggregate(n=sd.count()),
    "after another": lambda s: s.session_window(2).aggregate(n=sd.count()).session_window(9).aggregate(n=sd.sum(lambda e: e.n)),
}
PYTHON: dict[str, Query] = {
    "module": lambda s: s.session_window(1).aggregate(Spread, lambda e: e.f),
    "module by key": lambda s: s.group_by("k").session_window(3).aggregate(Spread, lambda e: e.f),
    "module beside a built-in": lambda s: s.session_window(2).aggregate(x=Spread().of(lambda e: e.f), n=sd.count()),
    "time-sensitive": lambda s: s.session_window(2, clip=sd.Clip.FULL).aggregate(Tails, lambda e: e.v),
}
CUT: dict[str, Query] = {
    "built-ins": lambda s: several(s, 2, 7),
    "by key": lambda s: s.group_by("k").session_window(3, 5).aggregate(n=sd.count(), top=sd.max(lambda e: e.v)),
    "module": lambda s: s.session_window(1, 6).aggregate(Spread, lambda e: e.f),
    "module by key": lambda s: s.group_by("m").session_window(2, 4).aggregate(Tails, lambda e: e.v),
}


@pytest.mark.parametrize("name", NATIVE)
def test_built_ins_over_whole_sessions_are_native(name: str) -> None:
    check_many(NATIVE[name], native=True)


@pytest.mark.parametrize("name", PYTHON)
def test_modules_over_sessions_run_in_python(name: str) -> None:
    check_many(PYTHON[name], seeds=range(4), native=False)


@pytest.mark.parametrize("name", CUT)
def test_sessions_with_a_longest_duration_are_cut_in_python(name: str) -> None:
    check_many(CUT[name], seeds=range(4), unending=False, native=False)


UNTIL: dict[str, tuple[Query, tuple[int, ...]]] = {
    "native": (lambda s: several(s, 2), (-5, 7, 8, 30)),
    "module by key": (PYTHON["module by key"], (7, 30)),
    "cut": (lambda s: several(s, 3, 4), (8, 30)),
}


@pytest.mark.parametrize("name", UNTIL)
def test_windows_end_by_until(name: str) -> None:
    query, ends = UNTIL[name]
    for until in ends:
        check(query(stream()), {"s": history(6, 20)}, until=until)


def test_explain_says_how_sessions_run() -> None:
    def said(query: sd.Stream[Any]) -> str:
        return next(text for label, text in explained(query).items() if label.startswith("window"))

    assert said(NATIVE["point at end"](stream())) == "native"
    cut = "where a session with a longest duration is cut is found in Python"
    assert said(stream().session_window(2, 9).aggregate(n=sd.count())) == f"Python (Arrow), all rows in one task: {cut}"
    assert (
        said(stream().group_by("k").session_window(2, 9).aggregate(n=sd.count())) == f"Python (Arrow), one call per group: {cut}"
    )
    assert "Spread is Python code" in said(PYTHON["module"](stream()))


def test_ties_and_touching_rows() -> None:
    rows = [
        (0, 4, "a"),
        (0, 2, "b"),
        (0, 4, "a"),
        (4, 5, "c"),
        (6, 7, "d"),
        (6, 6, "e"),
        (7, 9, "f"),
        (12, 13, "g"),
        (12, 20, "h"),
    ]
    data = {"s": sd.CHT.from_rows([(le, re, {"k": k}) for le, re, k in rows])}
    for gap in (1, 2, 3):
        query = stream().session_window(gap).aggregate(n=sd.count(), keys=sd.collect(lambda e: e.k))
        check(query, data, native=True)
    check(stream().session_window(2).aggregate(n=sd.count()), {"s": sd.CHT.from_rows([])})


def test_errors_have_the_names_of_the_local_engine() -> None:
    late = {"s": [sd.Insert(0, 1, sd.INFINITY - 2, {"v": 1})]}
    with pytest.raises(TimeOverflow):
        stream().session_window(5).aggregate(n=sd.count()).run(late, engine="spark")
    endless = {"s": [sd.Insert(0, 1, sd.INFINITY, {"v": 1})]}
    with pytest.raises(UnboundedOutputError, match="until"):
        stream().session_window(5, 10).aggregate(n=sd.count()).run(endless, engine="spark")
