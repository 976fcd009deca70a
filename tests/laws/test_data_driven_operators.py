"""The law of sums over snapshots: after every push the output means what the reference says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.temporal import Cti, Event, Insert, Record, Retract
from tests.laws.harness import EMITS, check_until, follow, of_pushes
from tests.laws.profiles import examples
from tests.laws.test_window_operators import GROUPS, RESULTS, assert_ids_differ, cti_of, pushes

INNER = "streamdsl.engine.data_driven"


@st.composite
def queries(draw: st.DrawFn) -> sd.Stream[Any]:
    group, result = draw(st.sampled_from(GROUPS)), draw(st.sampled_from(RESULTS))
    return group(sd.source("s"), lambda s: result(s.snapshot_window()))  # type: ignore[no-any-return]


@contextmanager
def in_small_parts(data: st.DataObject) -> Iterator[None]:
    """Let what needs many rows happen with few: an index of many pieces, state that is looked through often, wide numbers."""
    with (
        patch(f"{INNER}.sorted_index.PIECE", data.draw(st.sampled_from([1, 2, 512]))),
        patch(f"{INNER}.timeline._SPARE", data.draw(st.sampled_from([0, 1024]))),
        patch(f"{INNER}.packing._BITS", data.draw(st.sampled_from([8, 10, 62]))),
    ):
        yield


@examples(120)
@given(queries(), st.data())
def test_output_means_what_the_reference_says_after_every_push(query: sd.Stream[Any], data: st.DataObject) -> None:
    emit, stream = data.draw(st.sampled_from(EMITS)), data.draw(pushes())
    with in_small_parts(data):
        follow(query, stream, emit)


@examples(60)
@given(queries(), st.data())
def test_a_bounded_run_makes_the_windows_that_end_by_then(query: sd.Stream[Any], data: st.DataObject) -> None:
    stream, until = data.draw(pushes(failing=False)), data.draw(st.integers(-15, 40))
    with in_small_parts(data):
        check_until(query, of_pushes(stream), max(until, cti_of(stream)))


def test_a_window_that_comes_back_at_a_cti_has_a_version_of_its_own() -> None:
    payload = Record(k="a", v=0)
    stream: list[Event[Any]] = [Insert("a", 5, 9, payload), Retract("a", 5, 9, 5, payload), Cti(5), Insert("b", 5, 9, payload)]
    query = sd.source("s").snapshot_window().aggregate(n=sd.sum(lambda e: e.v))
    with patch(f"{INNER}.timeline._SPARE", 0):
        follow(query, parts := [[event] for event in stream], "speculative")
        assert_ids_differ(query, parts)
