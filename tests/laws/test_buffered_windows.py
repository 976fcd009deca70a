"""The law of composed windows on a grid: after every push the output means what the reference says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.emit import EmitMode
from streamdsl.engine.buffered.modules import ExtremumAggregate
from streamdsl.engine.lower import lower
from streamdsl.errors import UserCodeError
from streamdsl.temporal import CHT, Insert, Record, payload_key, payload_order
from streamdsl.testing import assert_cht_equal
from streamdsl.udm.bases import UDA, UDO, IncrementalUDA, IncrementalUDO
from tests.laws.harness import EMITS, follow
from tests.laws.modules import Ends
from tests.laws.profiles import examples
from tests.laws.test_window_operators import GROUPS, WINDOWS, Query, pushes


class Listed(UDA[Any, Any]):
    """All that a module sees, whatever its order."""

    def compute_result(self, payloads: Sequence[Any]) -> Any:
        assert type(payloads) is list
        return tuple(map(payload_key, sorted(payloads, key=payload_order)))


class Ordered(UDA[Any, Any]):
    """All that a module sees, in the order in which it sees it."""

    order_insensitive: ClassVar[bool] = False

    def compute_result(self, payloads: Sequence[Any]) -> Any:
        assert type(payloads) is list
        return tuple(map(payload_key, payloads))


class Arrays(UDA[Any, Any]):
    """The same as `Listed` of arrays, and of what type they are."""

    vectorized: ClassVar[bool] = True

    def compute_result(self, payloads: Any) -> Any:
        columns = payloads if isinstance(payloads, Mapping) else {"": payloads}
        return tuple(
            (name, str(column.dtype), *map(payload_key, sorted(column.tolist(), key=payload_order)))
            for name, column in columns.items()
        )


class Kept(IncrementalUDA[Any, Any, Any]):
    """The bag of what a module is given, in a state."""

    def create_state(self) -> Any:
        return Counter()

    def add_event_to_state(self, state: Any, payload: Any) -> Any:
        state[payload_key(payload)] += 1
        return state

    def remove_event_from_state(self, state: Any, payload: Any) -> Any:
        assert state[payload_key(payload)] > 0, "what is removed was added"
        state[payload_key(payload)] -= 1
        return state

    def compute_result(self, state: Any) -> Any:
        return frozenset((key, n) for key, n in state.items() if n)


class Merging(Kept):
    """The same, of which states are merged."""

    def merge_states(self, a: Any, b: Any) -> Any:
        a.update(b)
        return a


class Adding(IncrementalUDA[Any, Any, Any]):
    """The same of a state from which nothing can be taken."""

    def create_state(self) -> Any:
        return []

    def add_event_to_state(self, state: Any, payload: Any) -> Any:
        return [*state, payload_key(payload)]

    def compute_result(self, state: Any) -> Any:
        return frozenset(Counter(state).items())


class InOrder(Adding):
    order_insensitive: ClassVar[bool] = False


class Twice(UDO[Any, Any]):
    """Each value twice, and how many there are: results that are equal, in one window and across windows."""

    def compute_result(self, payloads: Sequence[Any]) -> Any:
        return [*payloads, len(payloads), *payloads]


class Each(IncrementalUDO[Any, Any, Any]):
    """Each value from a state, in an order that shows no history."""

    def create_state(self) -> Any:
        return []

    def add_event_to_state(self, state: Any, payload: Any) -> Any:
        return [*state, payload]

    def remove_event_from_state(self, state: Any, payload: Any) -> Any:
        state.pop(next(n for n, item in enumerate(state) if payload_key(item) == payload_key(payload)))
        return state

    def compute_result(self, state: Any) -> Any:
        return sorted(state, key=payload_order)


RESULTS: list[Query] = [
    lambda w: w.aggregate(n=sd.count(), low=sd.min(lambda e: e.v), high=sd.max(lambda e: e.v)),
    lambda w: w.aggregate(mid=sd.median(lambda e: e.v), total=sd.sum(lambda e: e.v)),
    lambda w: w.aggregate(q=sd.quantile(lambda e: e.v, 0.3), r=sd.quantile(lambda e: e.v, 0.7, "inverted_cdf")),
    lambda w: w.aggregate(kinds=sd.count_distinct(lambda e: e.v), all=sd.count_distinct()),
    lambda w: w.aggregate(first=sd.first(lambda e: e.v), last=sd.last(lambda e: e.k), all=sd.collect(lambda e: e.v)),
    lambda w: w.aggregate(low=sd.min(lambda e: e.v, where=lambda e: e.k == "a"), n=sd.count(where=lambda e: e.k == "b")),
    lambda w: w.aggregate(kinds=sd.count_distinct(lambda e: e.v, where=lambda e: e.k == "a"), dev=sd.stddev(lambda e: e.v)),
    lambda w: w.aggregate(Ordered(), lambda e: e.v),
    lambda w: w.aggregate(Kept(), lambda e: e.v),
    lambda w: w.aggregate(kept=Kept().of(lambda e: e.v), some=sd.Agg(Kept(), lambda e: e.v, lambda e: e.k == "a"), n=sd.count()),
    lambda w: w.aggregate(adding=Adding().of(lambda e: e.k), kept=Kept().of(lambda e: e.v), low=sd.min(lambda e: e.k)),
    lambda w: w.aggregate(kept=Merging().of(lambda e: e.v), some=sd.Agg(Merging(), lambda e: e.v, lambda e: e.k == "a")),
    lambda w: w.aggregate(InOrder(), lambda e: e.v),
    lambda w: w.apply(Twice(), lambda e: e.v),
    lambda w: w.apply(Each(), lambda e: e.v),
    lambda w: w.top_k(2, by=lambda e: e.v),
    lambda w: w.top_k(1, by="k", rank=True),
]
BAGS: list[Query] = [
    lambda w: w.aggregate(Listed(), lambda e: e.v),
    lambda w: w.aggregate(whole=Listed().of(lambda e: e), some=sd.Agg(Listed(), lambda e: e.v, lambda e: e.k == "a")),
    lambda w: w.aggregate(lambda w: (w.udm(Arrays(), lambda e: e.v), w.count(), w.udm(Arrays()))),
]
"""Modules that see their members as a bag, in lists and in arrays."""


@st.composite
def queries(draw: st.DrawFn, results: list[Query]) -> sd.Stream[Any]:
    group, window, result = draw(st.sampled_from(GROUPS)), draw(st.sampled_from(WINDOWS)), draw(st.sampled_from(results))
    return group(sd.source("s"), lambda s: result(window(s)))  # type: ignore[no-any-return]


@examples(90)
@given(queries(RESULTS), st.data(), st.sampled_from(EMITS))
def test_output_means_what_the_reference_says_after_every_push(
    query: sd.Stream[Any], data: st.DataObject, emit: EmitMode
) -> None:
    check_pushes(query, data, emit)


TIMED_WINDOWS = [
    lambda s, clip: s.tumbling_window(5, clip=clip),
    lambda s, clip: s.tumbling_window(7, offset=3, clip=clip, output=sd.Output.POINT_AT_END),
    lambda s, clip: s.hopping_window(10, 5, clip=clip),
    lambda s, clip: s.hopping_window(7, 3, offset=-2, clip=clip),
    lambda s, clip: s.hopping_window(3, 8, offset=1, clip=clip),
]
TIMED: list[Query] = [
    lambda w: w.aggregate(Ends(), lambda e: e.v),
    lambda w: w.aggregate(ends=Ends().of(lambda e: e.v), some=sd.Agg(Ends(), lambda e: e.v, lambda e: e.k == "a"), n=sd.count()),
    lambda w: w.aggregate(mean=sd.time_weighted_avg(lambda e: e.v), high=sd.max(lambda e: e.v)),
    lambda w: w.aggregate(sd.time_weighted_avg(lambda e: e.v, where=lambda e: e.k == "a")),
]


@st.composite
def timed_queries(draw: st.DrawFn) -> sd.Stream[Any]:
    """Queries that see lifetimes, clipped to the right."""
    group, window, result = draw(st.sampled_from(GROUPS)), draw(st.sampled_from(TIMED_WINDOWS)), draw(st.sampled_from(TIMED))
    clip = draw(st.sampled_from([sd.Clip.RIGHT, sd.Clip.FULL]))
    return group(sd.source("s"), lambda s: result(window(s, clip)))  # type: ignore[no-any-return]


@examples(90)
@given(timed_queries(), st.data(), st.sampled_from(EMITS))
def test_modules_see_lifetimes_as_the_reference_says(query: sd.Stream[Any], data: st.DataObject, emit: EmitMode) -> None:
    check_pushes(query, data, emit)


@examples(80)
@given(queries(BAGS), st.data(), st.sampled_from(("speculative", "watermark")))
def test_modules_see_members_as_the_reference_says(query: sd.Stream[Any], data: st.DataObject, emit: EmitMode) -> None:
    check_pushes(query, data, emit)


@contextmanager
def keeping(data: st.DataObject) -> Iterator[None]:
    """Let windows of few rows be long, so that sums, extrema and states of them are kept."""
    least = data.draw(st.sampled_from([0, 2, 64]))
    with (
        patch.object(ExtremumAggregate, "least_rows", least),
        patch("streamdsl.engine.operators.framed_windows.LONG", least),
        patch("streamdsl.engine.operators.framed_windows._MANY_MORE", data.draw(st.sampled_from([0, 1, 16]))),
    ):
        yield


def check_pushes(query: sd.Stream[Any], data: st.DataObject, emit: EmitMode) -> None:
    """Hold the operator to the reference, under limits so small that rows are in runs, and windows apart."""
    assert "window (framed)" in [operator.kind for operator in lower(query.plan()).operators]
    stream = data.draw(pushes())
    slices = patch("streamdsl.engine.batch.SLICE", data.draw(st.sampled_from([2, 2**14])))
    few = patch("streamdsl.engine.frames.arrangement._SPARE", data.draw(st.sampled_from([0, 256])))
    little = patch("streamdsl.engine.frames.arrangement._FEW", data.draw(st.sampled_from([0, 8192])))
    found = patch("streamdsl.engine.frames.arrangement._FOUND", data.draw(st.sampled_from([0, 4])))
    short = patch("streamdsl.engine.buffered.runs.SHORT", data.draw(st.sampled_from([0, 256])))
    long = patch("streamdsl.engine.buffered.holistic.LONG", data.draw(st.sampled_from([0, 256])))
    with slices, few, little, found, short, long, keeping(data):
        follow(query, stream, emit)


def test_each_window_has_all_rows_of_a_state_that_windows_share() -> None:
    rows = [Insert(f"e{n}", n // 4, n // 4 + 2, Record(k="a", v=n)) for n in range(40)]
    query = sd.source("s").hopping_window(8, 2).aggregate(Merging(), lambda e: e.v)
    assert_cht_equal(query.run({"s": sd.from_events(rows)}).cht(), denote(query.plan(), {"s": CHT.from_events(rows)}))


@examples(80)
@given(queries(RESULTS), st.data())
def test_it_gives_what_the_reference_gives(query: sd.Stream[Any], data: st.DataObject) -> None:
    stream = [event for part in data.draw(pushes(unending=False, failing=False)) for event in part]
    assert_cht_equal(query.run({"s": sd.from_events(stream)}).cht(), denote(query.plan(), {"s": CHT.from_events(stream)}))


def test_values_without_an_order_are_an_error_of_the_query_where_the_extremum_is_kept() -> None:
    query = sd.source("s").tumbling_window(10).aggregate(low=sd.min(lambda e: e.v))
    with patch.object(ExtremumAggregate, "least_rows", 0):
        session = query.open()
        session.push([sd.Insert("a", 0, 1, {"v": 1})])
        with pytest.raises(UserCodeError, match="str"):
            session.push([sd.Insert("b", 1, 2, {"v": "x"})])
