"""The law of the two window operators: the same physical output after every push, and both mean what the reference says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.engine.columnar.kernels import DIGIT_ADDER
from streamdsl.engine.query_session import Session
from streamdsl.errors import StreamDslError
from streamdsl.temporal import CHT, INFINITY, Cti, Event, Insert, Record, Retract, fields_of, payload_key
from streamdsl.testing import assert_cht_equal
from streamdsl.testing.strategies import chts, physical_streams
from tests.laws.fold import Fold
from tests.laws.harness import EMITS, Emit
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


def pushing(part: list[Event[Any]]) -> Callable[[Session[Any]], list[Event[Any]]]:
    """Return the step that pushes some events."""
    return lambda session: session.push(part)


class Outcome:
    """What a session gives, or the error that ends it."""

    def __init__(self, query: sd.Stream[Any], window: str, emit: Emit) -> None:
        self.session = query.open(emit=emit, engine_options={"window": window})
        self.output = Fold()

    def of(self, step: Callable[[Any], list[Event[Any]]]) -> object:
        try:
            events = step(self.session)
        except StreamDslError as error:
            return type(error)
        self.output.take(events)
        return in_common(events)


def in_common(events: list[Event[Any]]) -> object:
    """Return what two outputs must have in common: the order of their events, and ids and types, which do not order ties."""
    return list(map(shown, events)), Counter(
        (shown(event), event.id, kind_of(event)) for event in events if not isinstance(event, Cti)
    )


def shown(event: Event[Any]) -> Hashable:
    """Return what orders an event."""
    if isinstance(event, Cti):
        return event
    re_new = event.re_new if isinstance(event, Retract) else None
    return (event.le, event.re, re_new, payload_key(event.payload))


def kind_of(event: Event[Any]) -> object:
    """Return the type of the last result in an insertion: a sum must have the same."""
    return [type(value) for _, value in fields_of(event.payload)][-1] if isinstance(event, Insert) else None


@examples(60)
@given(queries(), st.data())
def test_both_operators_give_the_same_events_after_every_push(query: sd.Stream[Any], data: st.DataObject) -> None:
    emit, stream = data.draw(st.sampled_from(EMITS)), data.draw(pushes())
    slices = patch("streamdsl.engine.batch.SLICE", data.draw(st.sampled_from([2, 2**14])))
    compiled = patch("streamdsl.expr.kernel.CALL_FROM", data.draw(st.sampled_from([1, 2**14])))
    DIGIT_ADDER.load()
    with slices, compiled:
        columnar, general = Outcome(query, "columnar", emit), Outcome(query, "general", emit)
        for step in [*map(pushing, stream), lambda session: session.close()]:
            expected = general.of(step)
            if emit == "final" and isinstance(expected, type):
                return  # of a result that is not final
            assert columnar.of(step) == expected
            if isinstance(expected, type):
                return
            assert windows_of(columnar, emit) == windows_of(general, emit)


def windows_of(outcome: Outcome, emit: str) -> list[tuple[int, int]]:
    """Return the operators' windows and calls of modules; the columnar one makes no calls for results that are not final."""
    figures = outcome.session.stats().values()
    return [(each["windows"], each["udm_calls"] if emit != "final" else 0) for each in figures]


@examples(40)
@given(queries(), st.data())
def test_both_operators_give_what_the_reference_gives(query: sd.Stream[Any], data: st.DataObject) -> None:
    stream = [event for part in data.draw(pushes(unending=False, failing=False)) for event in part]
    expected = denote(query.plan(), {"s": CHT.from_events(stream)})
    for window in ("columnar", "general"):
        assert_cht_equal(query.run({"s": sd.from_events(stream)}, engine_options={"window": window}).cht(), expected)


@examples(60)
@given(queries(), st.data())
def test_both_operators_make_the_windows_that_end_by_then(query: sd.Stream[Any], data: st.DataObject) -> None:
    stream, until = data.draw(pushes()), data.draw(st.integers(-15, 40))
    outcomes: list[object] = []
    for window in ("columnar", "general"):
        session: Session[Any] = Session(query.plan(), None, "speculative", {"window": window}, until)
        try:
            events = [event for part in stream for event in session.push(part)] + session.end(max(until, *(cti_of(stream),)))
        except StreamDslError as error:
            outcomes.append(type(error))
        else:
            outcomes.append(in_common(events))
    assert outcomes[0] == outcomes[1]


def cti_of(stream: list[list[Event[Any]]]) -> int:
    return max((event.time for part in stream for event in part if isinstance(event, Cti)), default=-INFINITY)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_results_of_a_window_that_has_lost_its_rows_have_versions_of_their_own(size: int) -> None:
    payload = Record(k="a", v=0)
    back: list[Event[Any]] = [Insert("b", 1, 2, payload), Insert("c", 2, 3, payload), Retract("b", 1, 2, 1, payload)]
    stream: list[Event[Any]] = [Insert("a", 1, 2, payload), Retract("a", 1, 2, 1, payload), *back]
    query = sd.source("s").group_by("k").tumbling_window(5).aggregate(n=sd.count())
    columnar, general = Outcome(query, "columnar", "speculative"), Outcome(query, "general", "speculative")
    for part in (stream[at : at + size] for at in range(0, len(stream), size)):
        assert columnar.of(pushing(part)) == general.of(pushing(part))
