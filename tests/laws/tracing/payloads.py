"""Payloads with fields of every kind: dataclasses, records, classes that run code of their own; corner cases and random rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from streamdsl.expr.schema import Schema
from streamdsl.temporal import Record

WHEN = datetime(2020, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


@dataclass
class Point:
    x: float
    y: int


@dataclass
class Row:
    i: int
    j: int
    f: float
    g: float
    m: Any
    b: bool
    s: str
    o: Any
    t: datetime
    d: timedelta
    p: Point

    scale = 3

    @property
    def double(self) -> int:
        return self.i * 2

    def total(self) -> float:
        return self.f + self.g


@dataclass
class Initialized(Row):
    def __post_init__(self) -> None:
        self.seen = self.i


@dataclass
class Allocated(Row):
    def __new__(cls, *values: Any, **named: Any) -> Allocated:
        return super().__new__(cls)


CLASS_SCHEMA = Schema.of_type(Row)
RECORD_SCHEMA = Schema.record([f.name for f in fields(Row)])


def as_record(row: Row) -> Record:
    return Record({f.name: getattr(row, f.name) for f in fields(Row)})


def made_by(cls: type[Row]) -> Callable[[Row], Row]:
    return lambda row: cls(**{f.name: getattr(row, f.name) for f in fields(Row)})


small = st.integers(-4, 9)
edge = st.sampled_from([0, 1, -1, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63), 3])
big = st.one_of(edge, st.integers(-(2**70), 2**70))
wild = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.5, 0.1, 3.0, math.nan, math.inf, -math.inf, 9007199254740992.0, 1e308, 5e-324]),
    st.floats(-100, 100),
    st.floats(),
)
tame = st.sampled_from([1.0, 2.5, -3.75, 0.1, 1e-3, 7.0])
mixed = st.one_of(st.none(), st.booleans(), small, wild, st.just("ab"))
text = st.sampled_from(["", "a", "ab", " AB ", "bc", "12", "%s", "%d", "ß"])
other = st.one_of(st.none(), text, st.tuples(small, small))
times = st.datetimes(datetime(2019, 1, 1), datetime(2022, 1, 1), timezones=st.just(UTC))
durations = st.timedeltas(timedelta(hours=-30), timedelta(hours=30))
points = st.builds(Point, wild, small)


@st.composite
def batches(draw: st.DrawFn) -> list[Row]:
    i, j, f = (
        draw(st.sampled_from([small, edge, big])),
        draw(st.sampled_from([small, st.integers(1, 5)])),
        draw(st.sampled_from([wild, tame])),
    )
    row = st.builds(Row, i, j, f, f, mixed, st.booleans(), text, other, times, durations, points)
    return draw(st.lists(row, max_size=5))


def fixed(i: int, j: int, f: float, g: float, m: Any, o: Any = None) -> Row:
    return Row(i, j, f, g, m, i % 2 == 0, "ab", o, WHEN, HOUR, Point(f, j))


MIN, MAX, EXACT = -(2**63), 2**63 - 1, 2**53
CORNERS: list[list[Row]] = [
    [],
    [fixed(MIN, -1, -0.0, 0.5, None), fixed(MAX, 1, 0.0, 0.5, True)],
    [fixed(MIN + 1, -1, math.nan, math.inf, 1), fixed(MAX - 1, 2, -math.inf, -0.5, 0.5)],
    [fixed(EXACT + 1, 3, float(EXACT), 3.0, "ab"), fixed(-EXACT - 1, -3, -float(EXACT), 5e-324, EXACT + 1)],
    [fixed(EXACT, 0, 1.0, 0.0, 0), fixed(1, 1, 1.0, 1.0, 0)],
    [fixed(3, 2, -7.5, 2.0, -1, (1, 2)), fixed(3, 2, 7.5, -2.0, None, "ab"), fixed(0, 0, 0.0, 1.0, 0, (3, 1))],
    [fixed(2**70, 1, 1e308, 1e308, 2**70), fixed(-(2**70), 1, 0.1, 0.2, -(2**70))],
    [fixed(3037000500, 3, 0.1, 0.3, False), fixed(-3037000500, -2, 1e16, 0.1, 1.5)],
]
