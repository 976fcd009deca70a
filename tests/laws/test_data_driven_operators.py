"""The law of the two operators of snapshots: the same output after every push, and what the reference says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.engine.query_session import Session
from streamdsl.errors import StreamDslError
from streamdsl.temporal import CHT, Cti, Event, Insert, Record, Retract
from streamdsl.testing import assert_cht_equal
from tests.laws.fold import Fold
from tests.laws.harness import EMITS
from tests.laws.profiles import examples
from tests.laws.test_window_operators import GROUPS, RESULTS, Outcome, cti_of, in_common, pushes, pushing

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
def test_both_operators_give_the_same_events_after_every_push(query: sd.Stream[Any], data: st.DataObject) -> None:
    emit, stream = data.draw(st.sampled_from(EMITS)), data.draw(pushes())
    with in_small_parts(data):
        columnar, general = Outcome(query, "columnar", emit), Outcome(query, "general", emit)
        for step in [*map(pushing, stream), lambda session: session.close()]:
            expected = general.of(step)
            if emit == "final" and isinstance(expected, type):
                return  # of a result that is not final
            assert columnar.of(step) == expected
            if isinstance(expected, type):
                return
            assert windows_of(columnar) == windows_of(general)


def windows_of(outcome: Outcome) -> list[int]:
    return [figures["windows"] for figures in outcome.session.stats().values()]


@examples(60)
@given(queries(), st.data())
def test_both_operators_give_what_the_reference_gives(query: sd.Stream[Any], data: st.DataObject) -> None:
    stream = [event for part in data.draw(pushes(failing=False)) for event in part]
    expected = denote(query.plan(), {"s": CHT.from_events(stream)})
    with in_small_parts(data):
        for window in ("columnar", "general"):
            assert_cht_equal(query.run({"s": sd.from_events(stream)}, engine_options={"window": window}).cht(), expected)


@examples(60)
@given(queries(), st.data())
def test_both_operators_make_the_windows_that_end_by_then(query: sd.Stream[Any], data: st.DataObject) -> None:
    stream, until = data.draw(pushes()), data.draw(st.integers(-15, 40))
    outcomes: list[object] = []
    for window in ("columnar", "general"):
        session: Session[Any] = Session(query.plan(), None, "speculative", {"window": window}, until)
        output = Fold()
        try:
            events = [*(session.push(part) for part in stream), session.end(max(until, cti_of(stream)))]
        except StreamDslError as error:
            outcomes.append(type(error))
            continue
        for part in events:
            output.take(part)
        outcomes.append([in_common([event for event in part if not isinstance(event, Cti)]) for part in events])
    assert outcomes[0] == outcomes[1]


def test_a_window_that_comes_back_at_a_cti_has_a_version_of_its_own() -> None:
    payload = Record(k="a", v=0)
    stream: list[Event[Any]] = [Insert("a", 5, 9, payload), Retract("a", 5, 9, 5, payload), Cti(5), Insert("b", 5, 9, payload)]
    query = sd.source("s").snapshot_window().aggregate(n=sd.sum(lambda e: e.v))
    with patch(f"{INNER}.timeline._SPARE", 0):
        columnar, general = Outcome(query, "columnar", "speculative"), Outcome(query, "general", "speculative")
        for event in stream:
            assert columnar.of(pushing([event])) == general.of(pushing([event]))
