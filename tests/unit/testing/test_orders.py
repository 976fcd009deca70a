from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streamdsl.temporal import CHT, INFINITY, MIN_TIME, Cti, Event, Insert, Lifetime, Retract, problems
from streamdsl.testing import arrival_orders
from streamdsl.testing.strategies import chts, lifetimes, physical_streams, records

ROWS = [(1, 5, "a"), (1, 5, "a"), (4, 9, "b"), (-7, INFINITY, "c"), (9, 12, "d")]


@given(chts(records()), st.integers(0, 10**6))
def test_every_order_is_legal_and_means_the_history(cht: CHT[Any], seed: int) -> None:
    for stream in arrival_orders(cht, 3, seed):
        assert problems(stream) == []
        assert CHT.from_events(stream) == cht


@given(physical_streams(chts(records())))
def test_streams_of_the_strategy_are_legal(stream: list[Event[Any]]) -> None:
    assert problems(stream) == []


def test_the_same_seed_gives_the_same_orders() -> None:
    assert arrival_orders(ROWS, 5, seed=3) == arrival_orders(ROWS, 5, seed=3)
    assert arrival_orders(ROWS, 5, seed=3) != arrival_orders(ROWS, 5, seed=4)


def test_the_extremes_of_time_are_no_exception() -> None:
    rows = [(MIN_TIME, MIN_TIME + 1, "first"), (INFINITY - 1, INFINITY, "last")]
    assert all(CHT.from_events(stream) == CHT.from_rows(rows) for stream in arrival_orders(rows, 50))
    assert arrival_orders([], 1) in ([[]], [[Cti(-6)]], [[Cti(0)]], [[Cti(6)]])


def test_orders_show_everything_that_a_stream_may_do() -> None:
    streams = arrival_orders(ROWS, 300, seed=1)
    events = [event for stream in streams for event in stream]
    retractions = [event for event in events if isinstance(event, Retract)]
    starts = [[event.le for event in stream if isinstance(event, Insert)] for stream in streams]
    assert any(r.re_new > r.re for r in retractions), "none is lengthened"
    assert any(r.re > r.re_new > r.le for r in retractions), "none is shortened"
    assert any(r.re_new == r.le for r in retractions), "none is fully retracted"
    assert any(r.re == INFINITY != r.re_new for r in retractions), "none ends after being without end"
    assert any(r.re_new == INFINITY != r.re for r in retractions), "none loses its end"
    assert any(found != sorted(found) for found in starts), "none is out of order"
    assert any(Cti(time) in events for time in (1, 4, 5, 9)), "no CTI is on a boundary"
    assert any(_is_tight(stream) for stream in streams), "no CTI is as late as it may be"


def _is_tight(stream: list[Event[Any]]) -> bool:
    def sync(event: Event[Any]) -> int:
        return min(event.re, event.re_new) if isinstance(event, Retract) else event.le if isinstance(event, Insert) else INFINITY

    return any(isinstance(e, Cti) and min(map(sync, stream[i:]), default=0) == e.time for i, e in enumerate(stream))


@given(lifetimes(-3, 9), lifetimes(-3, 9, unending=False))
def test_lifetimes_are_inside_their_bounds(some: Lifetime, bounded: Lifetime) -> None:
    assert -3 <= some.le < some.re
    assert some.re <= 9 or some.re == INFINITY
    assert -3 <= bounded.le < bounded.re <= 9
