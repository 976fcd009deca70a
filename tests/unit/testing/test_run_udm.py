from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import pytest

from streamdsl.errors import EventError, QueryError, TimestampViolation
from streamdsl.temporal import CHT, CHTRow, Insert, Record
from streamdsl.testing import arrival_orders, events, run_udm
from streamdsl.udm.bases import (
    UDA,
    UDO,
    IncrementalUDA,
    IntervalEvent,
    OverEvents,
    OverPayloads,
    TimeSensitiveUDA,
    TimeSensitiveUDO,
    WindowDescriptor,
)
from streamdsl.windows import Clip, Output
from tests.unit.testing.modules import Uptime


class AsGiven(UDA[int, list[int]]):
    def compute_result(self, payloads: Sequence[int]) -> list[int]:
        return list(payloads)


class Twice(UDO[int, int]):
    def compute_result(self, payloads: Sequence[int]) -> Iterable[int]:
        return [value for value in payloads for _ in range(2)]


class Echo(TimeSensitiveUDO[int, int]):
    time_bound: ClassVar[bool] = True

    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> Iterable[IntervalEvent[int]]:
        return events


EVENTS = [(0, 3, 1), (2, 12, 2), (9, 10, 3), (10, 11, 4)]


def test_a_module_sees_what_overlaps_its_window_in_no_promised_order() -> None:
    assert sorted(run_udm(AsGiven(), EVENTS, (0, 10))) == [1, 2, 3]
    assert len({tuple(run_udm(AsGiven(), EVENTS, (0, 10), seed=seed)) for seed in range(20)}) > 1
    assert run_udm(AsGiven(), EVENTS, (50, 60)) is None


def test_operators_give_rows_stamped_as_the_policy_says() -> None:
    assert run_udm(Twice(), CHT.from_rows([(1, 2, 7)]), (0, 10)) == [CHTRow(0, 10, 7)] * 2
    assert run_udm(Twice(), [(1, 2, 7)], (0, 10), output=Output.POINT_AT_END) == [CHTRow(10, 11, 7)] * 2
    assert run_udm(Twice(), [], (0, 10)) == []
    events = [IntervalEvent(2, 12, 5)]
    assert run_udm(Echo(), events, (0, 10), output=Output.UNCHANGED) == [CHTRow(2, 12, 5)]
    assert run_udm(Echo(), events, (0, 10), clip=Clip.RIGHT, output=Output.UNCHANGED) == [CHTRow(2, 10, 5)]
    assert run_udm(Echo(), events, (5, 10), output=Output.CLIP) == [CHTRow(5, 10, 5)]


class Trace(IncrementalUDA[int, list[str], list[str]]):
    """What its state has been told, in order."""

    def create_state(self) -> list[str]:
        return []

    def add_event_to_state(self, state: list[str], payload: int) -> list[str]:
        return [*state, f"+{payload}"]

    def remove_event_from_state(self, state: list[str], payload: int) -> list[str]:
        return [*state, f"-{payload}"]

    def compute_result(self, state: list[str]) -> list[str]:
        return state


ARRIVALS = """
    kind     id  le  re   re_new  value
    insert   a   1   inf  -       1
    insert   b   20  30   -       2
    insert   c   4   6    -       3
    retract  a   1   inf  9
    cti      -   3
    retract  c   4   6    4
    insert   d   12  14   -       4
    retract  b   20  30   40
"""


def test_an_incremental_module_follows_events_as_they_arrive() -> None:
    assert run_udm(Trace(), events(ARRIVALS), (0, 10)) == ["+1", "+3", "-1", "+1", "-3"]
    assert run_udm(Trace(), ARRIVALS, (15, 50)) == ["+1", "+2", "-1", "-2", "+2"]
    assert run_udm(Trace(), ARRIVALS, (10, 12)) is None
    assert sorted(run_udm(Trace(), EVENTS, (0, 10))) == ["+1", "+2", "+3"]
    assert len({tuple(run_udm(Trace(), EVENTS, (0, 10), seed=seed)) for seed in range(20)}) > 1


class NoRemoval(Trace):
    remove_event_from_state = OverPayloads.remove_event_from_state


def test_a_state_that_nothing_leaves_is_made_anew() -> None:
    assert run_udm(NoRemoval(), ARRIVALS, (0, 10)) == ["+1"]


class Ordered(Trace):
    order_insensitive: ClassVar[bool] = False


def test_no_state_is_kept_of_a_module_to_which_the_order_matters() -> None:
    assert run_udm(Ordered(), ARRIVALS, (15, 50)) == ["+2"]
    assert run_udm(Ordered(), [(4, 5, 1), (3, 9, 2), (3, 7, 3)], (0, 10)) == ["+2", "+3", "+1"]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("clip", Clip)
def test_with_and_without_state_the_result_is_the_same(clip: Clip, seed: int) -> None:
    class Whole(TimeSensitiveUDA[bool, int]):
        def compute_result(self, events: Sequence[IntervalEvent[bool]], window: WindowDescriptor) -> int:
            return sum(event.payload * (event.end_time - event.start_time) for event in events)

    class Anew(Uptime):
        remove_event_from_state = OverEvents.remove_event_from_state

    rows = [(0, 3, True), (2, 12, False), (-4, 9, True), (5, 40, True), (9, 10, True)]
    arrivals: list[Any] = [rows, *arrival_orders(rows, 10, seed)]
    for arrival in arrivals:
        expected = run_udm(Whole(), arrival, (2, 10), clip=clip)
        assert run_udm(Uptime(), arrival, (2, 10), clip=clip) == expected
        assert run_udm(Anew(), arrival, (2, 10), clip=clip) == expected


def test_a_mapping_comes_to_the_module_as_a_record() -> None:
    class Fares(UDA[Record, float]):
        def compute_result(self, payloads: Sequence[Record]) -> float:
            return float(sum(payload.fare for payload in payloads))

    assert run_udm(Fares(), [(0, 3, {"fare": 2.0}), (1, 3, {"fare": 0.5})], (0, 10)) == 2.5


def test_malformed_events_are_refused() -> None:
    with pytest.raises(EventError, match="known already"):
        run_udm(Trace(), [Insert("a", 1, 2, 1), Insert("a", 1, 2, 1)], (0, 10))
    with pytest.raises(QueryError, match="is no event"):
        run_udm(Trace(), [3], (0, 10))  # type: ignore[list-item]


def test_output_before_the_window_is_a_violation() -> None:
    with pytest.raises(TimestampViolation):
        run_udm(Echo(), [(2, 12, 5)], (5, 10), output=Output.UNCHANGED)
