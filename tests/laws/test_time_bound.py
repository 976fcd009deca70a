"""A module that claims to be time-bound and is not is found out at once (`test_operators.py` tries those that are)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import pytest

import streamdsl as sd
from streamdsl.errors import TimestampViolation
from streamdsl.temporal import Event, Insert, Retract, sync_time
from streamdsl.udm.bases import IntervalEvent, TimeSensitiveUDO, WindowDescriptor


class Number(TimeSensitiveUDO[int, int]):
    """The number of events over the whole window: not time-bound, whatever it claims."""

    time_bound: ClassVar[bool] = True

    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> Iterable[IntervalEvent[int]]:
        return [IntervalEvent(window.start_time, window.end_time, len(events))]


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
