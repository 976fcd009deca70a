"""Results: histories, events and frames of the same output."""

from __future__ import annotations

import pytest

from streamdsl.errors import CtiViolation
from streamdsl.result import Result
from streamdsl.temporal import CHT, INFINITY, Cti, Event, Insert, Retract

EVENTS: list[Event[str]] = [Insert("a", 4, 9, "x"), Insert("b", 1, INFINITY, "y"), Retract("a", 4, 9, 6), Cti(7)]


def test_events_fold_to_a_history_when_it_is_asked_for() -> None:
    result = Result.from_events(iter(EVENTS))
    assert result.events() == EVENTS
    assert result.cht() == CHT.from_rows([(4, 6, "x"), (1, INFINITY, "y")])
    assert result.cht() is result.cht()
    assert list(result) == [(1, INFINITY, "y"), (4, 6, "x")]
    assert len(result) == 2


def test_a_stream_that_breaks_a_cti_shows_it_when_it_is_folded() -> None:
    result: Result[str] = Result.from_events([Cti(5), Insert("a", 4, 9, "x")])
    assert len(result.events()) == 2
    with pytest.raises(CtiViolation):
        result.cht()


def test_a_history_as_events_ends_with_an_infinite_cti() -> None:
    cht = CHT.from_rows([(4, 6, "x"), (1, INFINITY, "y")])
    result = Result.from_cht(cht)
    assert result.events() == [Insert(0, 1, INFINITY, "y"), Insert(1, 4, 6, "x"), Cti(INFINITY)]
    assert Result.from_events(result.events()).cht() == cht
    assert result.cht() is cht


def test_the_events_given_out_are_the_callers_own() -> None:
    result = Result.from_events(EVENTS)
    result.events().clear()
    assert result.events() == EVENTS


def test_a_result_is_shown_in_its_unit() -> None:
    result = Result.from_cht(CHT.from_rows([(1, 5, {"v": 7})]), "s")
    assert result.unit == "s"
    assert repr(result) == "Result\n  [1970-01-01T00:00:01Z, 1970-01-01T00:00:05Z) v=7"
    assert repr(Result.from_events([])) == "Result (empty)"
    assert repr(Result.from_events(EVENTS)) == "Result\n  [1, inf) 'y'\n  [4, 6) 'x'"
    assert Result.from_cht(CHT.from_rows([(1, 5, "x")], "ms")).unit == "ms"


def test_frames_are_those_of_the_history() -> None:
    result = Result.from_events([Insert("a", 1, INFINITY, {"v": 7})], "ms")
    assert str(result.to_pandas()["le"].dtype) == "datetime64[ms, UTC]"
    assert result.to_arrow().to_pylist()[0]["v"] == result.to_polars()["v"][0] == 7
    assert result.to_arrow().column_names == result.to_polars().columns == ["le", "re", "v"]
