"""The law of sums over windows on a grid: after every push the output means what the reference says."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.engine.columnar.kernels import DIGIT_ADDER
from streamdsl.temporal import INFINITY, Cti, Event, Insert, Record, Retract
from streamdsl.testing.strategies import chts, physical_streams
from tests.laws.harness import EMITS, check_until, follow, of_pushes
from tests.laws.profiles import examples

Query = Callable[[Any], "sd.Stream[Any]"]
Windows = Callable[[Any], Any]

WINDOWS: list[Windows] = [
    lambda s: s.tumbling_window(5),
    lambda s: s.tumbling_window(1),
    lambda s: s.tumbling_window(7, offset=3, output=sd.Output.POINT_AT_END),
    lambda s: s.hopping_window(10, 5),
    lambda s: s.hopping_window(7, 3, offset=-2),
    lambda s: s.hopping_window(9, 2, output=sd.Output.POINT_AT_END),
    lambda s: s.hopping_window(3, 8, offset=1),
]
RESULTS: list[Query] = [
    lambda w: w.aggregate(n=sd.count()),
    lambda w: w.aggregate(n=sd.count(lambda e: e.v), total=sd.sum(lambda e: e.v)),
    lambda w: w.aggregate(n=sd.count(), total=sd.sum(lambda e: e.v), mean=sd.avg(lambda e: e.v)),
    lambda w: w.aggregate(sd.avg(lambda e: e.v)),
    lambda w: w.aggregate(total=sd.sum(lambda e: e.v, where=lambda e: e.k != "a"), n=sd.count(where=lambda e: e.k == "b")),
    lambda w: w.aggregate(sd.sum(lambda e: e.v if e.k == "a" else None)),
    lambda w: w.aggregate(lambda w: (w.count() * 2, w.sum(lambda e: e.v))),
    lambda w: w.aggregate(first=sd.sum(lambda e: e.v, where=lambda e: e.k == "a"), rest=sd.sum(lambda e: e.v)),
    lambda w: w.aggregate(dev=sd.stddev(lambda e: e.v), mean=sd.avg(lambda e: e.v)),
    lambda w: w.aggregate(sd.variance(lambda e: e.v, where=lambda e: e.k == "a")),
]
GROUPS: list[Callable[[Any, Query], Any]] = [
    lambda s, rest: rest(s),
    lambda s, rest: rest(s),
    lambda s, rest: rest(s.group_by("k")),
    lambda s, rest: rest(s.group_by(lambda e: (e.k, e.v))),
    lambda s, rest: rest(s.group_by(lambda e: e.v)),
    lambda s, rest: s.group_by("k").apply(lambda g: rest(g.select(k=lambda e: e.k, v=lambda e: e.v))),
    lambda s, rest: s.group_by("k").apply(lambda g: rest(g.group_by(lambda e: e.v))),
]

small = st.integers(-3, 3)
whole = st.one_of(small, st.sampled_from([2**31, -(2**31), 2**45 + 1, 2**62, -(2**63), 2**63, 2**64 - 1, -(10**30)]))
real = st.one_of(
    st.floats(-4, 4, width=16),
    st.sampled_from([0.1, 0.2, 0.3, 1e100, -1e100, 1e308, 5e-324, 2.0**53, 1.0, -0.0, math.pi, 1 / 3]),
)
special = st.sampled_from([math.nan, math.inf, -math.inf])
FAILING = "text and other things"
"""What cannot be summed: a session raises on it even if it goes again, so that the history tells nothing of it."""
VALUES = {
    "small integers": small,
    "integers": whole,
    "floats": real,
    "floats and what is no number": st.one_of(real, special),
    "all numbers": st.one_of(small, whole, real, special, st.none(), st.booleans()),
    "small integers, None": st.one_of(small, st.none()),
    "floats, None": st.one_of(real, st.none()),
    "decimals": st.one_of(small, st.decimals(-3, 3, places=1), st.none()),
    FAILING: st.one_of(small, real, st.just("x"), st.just(Decimal("0.5"))),
}


@st.composite
def queries(draw: st.DrawFn) -> sd.Stream[Any]:
    group, window, result = draw(st.sampled_from(GROUPS)), draw(st.sampled_from(WINDOWS)), draw(st.sampled_from(RESULTS))
    return group(sd.source("s"), lambda s: result(window(s)))  # type: ignore[no-any-return]


@st.composite
def pushes(draw: st.DrawFn, unending: bool = True, failing: bool = True) -> list[list[Event[Any]]]:
    values = draw(st.sampled_from([name for name in VALUES if failing or name != FAILING]))
    rows = st.builds(lambda k, v: Record(k=k, v=v), st.sampled_from("ab"), VALUES[values])
    span = draw(st.sampled_from([(-3, 6), (-12, 25), (-100, 100)]))
    stream = draw(physical_streams(chts(rows, 10, *span, unending=unending)))
    cuts = sorted(draw(st.sets(st.integers(0, len(stream)), max_size=len(stream) + 1)))
    return [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


@examples(60)
@given(queries(), st.data())
def test_output_means_what_the_reference_says_after_every_push(query: sd.Stream[Any], data: st.DataObject) -> None:
    emit, stream = data.draw(st.sampled_from(EMITS)), data.draw(pushes())
    slices = patch("streamdsl.engine.batch.SLICE", data.draw(st.sampled_from([2, 2**14])))
    compiled = patch("streamdsl.expr.kernel.CALL_FROM", data.draw(st.sampled_from([1, 2**14])))
    DIGIT_ADDER.load()
    with slices, compiled:
        follow(query, stream, emit)


@examples(60)
@given(queries(), st.data())
def test_a_bounded_run_makes_the_windows_that_end_by_then(query: sd.Stream[Any], data: st.DataObject) -> None:
    stream, until = data.draw(pushes(failing=False)), data.draw(st.integers(-15, 40))
    check_until(query, of_pushes(stream), max(until, cti_of(stream)))


def cti_of(stream: list[list[Event[Any]]]) -> int:
    return max((event.time for part in stream for event in part if isinstance(event, Cti)), default=-INFINITY)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_results_of_a_window_that_has_lost_its_rows_have_versions_of_their_own(size: int) -> None:
    payload = Record(k="a", v=0)
    back: list[Event[Any]] = [Insert("b", 1, 2, payload), Insert("c", 2, 3, payload), Retract("b", 1, 2, 1, payload)]
    stream: list[Event[Any]] = [Insert("a", 1, 2, payload), Retract("a", 1, 2, 1, payload), *back]
    query = sd.source("s").group_by("k").tumbling_window(5).aggregate(n=sd.count())
    follow(query, parts := [stream[at : at + size] for at in range(0, len(stream), size)], "speculative")
    assert_ids_differ(query, parts)


def assert_ids_differ(query: sd.Stream[Any], parts: list[list[Event[Any]]]) -> None:
    """Check that no two results have one id, also if the first one has gone."""
    session = query.open(emit="speculative")
    ids = [event.id for part in parts for event in session.push(part) if isinstance(event, Insert)]
    assert len(set(ids)) == len(ids)
