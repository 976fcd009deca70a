"""A module that claims to be time-bound and is not is found out at once (`test_operators.py` tries those that are)."""

from __future__ import annotations

from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import TimestampViolation
from streamdsl.temporal import Cti, Event, Insert, Retract, sync_time
from tests.laws.modules import Number, Through


def over(module: Any, s: sd.Stream[Any]) -> sd.Stream[Any]:
    return s.tumbling_window(10, output=sd.Output.TIME_BOUND).apply(module, lambda e: e.v)


ROW = {"v": 1}


@pytest.mark.parametrize(
    "second",
    [Insert("b", 5, 8, ROW), Retract("a", 0, 9, 0), Insert("b", 9, 30, ROW)],
    ids=["an insertion", "a full retraction", "an event that stays longer"],
)
def test_a_breach_is_found_without_a_cti(second: Event[Any]) -> None:
    session = over(Number(), sd.source("s")).open()
    session.push([Insert("a", 0, 9, ROW)])
    if sync_time(second) > 0:
        message = rf"(?s)^Number .*input at {sync_time(second)} .*\[0, 10\).*starts at 0.*Hint: "
        with pytest.raises(TimestampViolation, match=message):
            session.push([second])
    else:
        assert session.push([second]), "a change at 0 may change what starts at 0"


def test_the_first_result_may_not_lie_before_its_cause_either() -> None:
    with pytest.raises(TimestampViolation, match="input at 3"):
        over(Number(), sd.source("s")).open().push([Insert("a", 3, 9, ROW)])


def test_a_window_that_is_gone_as_another_takes_it_in_is_no_breach_of_what_changes_later() -> None:
    query = sd.source("s").session_window(1, output=sd.Output.TIME_BOUND).apply(Through(), lambda e: e.v)
    session = query.open()
    session.push([Insert("a", 23, 31, ROW)])
    session.push([Retract("a", 23, 31, 25), Insert("b", 14, 25, ROW)])


def test_an_operator_whose_windows_wait_holds_its_cti_back_as_far_as_their_first_result() -> None:
    session = over(Through(), sd.source("s")).open(emit="watermark")
    assert session.push([Insert("a", 3, 7, ROW), Insert("b", 6, 8, ROW), Cti(5)]) == [Cti(3)]
    assert [event.le for event in session.push([Cti(10)]) if isinstance(event, Insert)] == [3, 6]
