"""What a change costs a module that keeps states: counted in additions to states and removals from them."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

import streamdsl as sd
from streamdsl.temporal import Cti, Insert, Retract
from streamdsl.udm.bases import IncrementalUDA
from tests.laws.incremental import Bag, Calls, Merged, OnlyAdds, TimedCalls, Values

ROW = {"v": 1}


def test_in_a_tumbling_window_each_event_costs_one_addition_and_a_retraction_one_removal() -> None:
    module = Calls()
    session = sd.source("s").tumbling_window(10).aggregate(module, lambda e: e.v).open()
    for n in range(5):
        session.push([Insert(n, n, n + 1, ROW)])
        assert module.calls == (1, 0)
    session.push([Retract(2, 2, 3, 2, ROW)])
    assert module.calls == (0, 1)
    session.push([Insert("x", 3, 8, ROW), Insert("y", 4, 5, ROW)])
    assert module.calls == (2, 0)
    session.push([Retract("x", 3, 8, 6, ROW)])
    assert module.calls == (0, 0), "where a member ends does not matter to a time-insensitive module"


@pytest.mark.parametrize(("clip", "calls"), [(sd.Clip.NONE, (1, 1)), (sd.Clip.RIGHT, (0, 0))])
def test_a_time_sensitive_module_sees_a_change_of_a_lifetime_as_a_removal_and_an_addition(
    clip: sd.Clip, calls: tuple[int, int]
) -> None:
    module = TimedCalls()
    session = sd.source("s").tumbling_window(10, clip=clip).aggregate(module, lambda e: e.v).open()
    session.push([Insert("a", 1, 15, ROW), Insert("b", 2, 3, ROW)])
    assert module.calls == (2, 0)
    session.push([Retract("a", 1, 15, 12, ROW)])
    assert module.calls == calls
    session.push([Retract("a", 1, 12, 7, ROW)])
    assert module.calls == (1, 1)


def test_a_long_window_of_a_time_sensitive_module_costs_what_comes_and_goes() -> None:
    module = TimedCalls()
    session = sd.source("s").hopping_window(1000, 500).aggregate(module, lambda e: e.v).open()
    session.push([Insert(n, n, n + 1, ROW) for n in range(500, 900)])
    assert module.calls == (800, 0)
    session.push([Insert("a", 700, 710, ROW)])
    assert module.calls == (2, 0)
    session.push([Insert(("b", n), 700, 701, ROW) for n in range(20)])
    assert module.calls == (40, 0)
    session.push([Retract("a", 700, 710, 705, ROW), Retract(850, 850, 851, 850, ROW)])
    assert module.calls == (2, 4)


def test_a_counted_window_that_ends_elsewhere_is_another_one_to_a_time_sensitive_module() -> None:
    module = TimedCalls()
    session = sd.source("s").count_window(3).aggregate(module, lambda e: e.v).open()
    session.push([Insert(n, 2 * n, 20, ROW) for n in range(4)])
    assert module.calls == (6, 0)
    session.push([Retract(0, 0, 20, 19, ROW)])
    assert module.calls == (1, 1), "it is in the first window alone"
    session.push([Insert("late", 5, 6, ROW)])
    assert module.calls == (6, 0), "one window is new, and one ends elsewhere"


def test_states_of_snapshots_are_copied_when_a_snapshot_is_split() -> None:
    module = Calls()
    session = sd.source("s").snapshot_window().aggregate(module, lambda e: e.v).open()
    session.push([Insert(n, 0, 100, ROW) for n in range(50)])
    assert module.calls == (50, 0)
    session.push([Insert("late", 40, 60, ROW)])
    assert module.calls == (1, 0), "one addition to the middle piece; the others are copies"
    session.push([Retract("late", 40, 60, 40, ROW)])
    assert module.calls[1] == 0, "the pieces are merged again; nothing is computed anew"


@pytest.mark.parametrize("by", ["start", "end"])
def test_count_windows_take_in_what_changes(by: Any) -> None:
    module = Calls()
    session = sd.source("s").count_window(50, by=by).aggregate(module, lambda e: e.v).open()
    session.push([Insert(n, 2 * n, 2 * n + 1, ROW) for n in range(60)])
    built = module.calls
    assert built == (11 * 50, 0)
    session.push([Insert("late", 61, 62, ROW)])
    assert module.calls == (61, 11), "11 windows gain one and lose one; one window is new"


def test_a_late_event_costs_the_same_however_many_members_a_window_has() -> None:
    costs = set()
    for size in (10, 1000):
        module = Calls()
        session = sd.source("s").hopping_window(10**6, 10**5).aggregate(module, lambda e: e.v).open()
        session.push([Insert(n, n, n + 1, ROW) for n in range(size)])
        session.push([Cti(size)])
        assert module.calls[0] >= size
        session.push([Insert("late", size, size + 1, ROW)])
        costs.add(module.calls)
    assert len(costs) == 1


def test_results_do_not_change_with_the_state_that_they_were_computed_from() -> None:
    class Kept(IncrementalUDA[int, list[int], list[int]]):
        def create_state(self) -> list[int]:
            return []

        def add_event_to_state(self, state: list[int], payload: int) -> list[int]:
            state.append(payload)
            return state

        def compute_result(self, state: list[int]) -> list[int]:
            return state

    session = sd.source("s").tumbling_window(10).aggregate(Kept(), lambda e: e.v).open()
    (first,) = session.push([Insert("a", 0, 1, ROW)])
    session.push([Insert("b", 1, 2, ROW)])
    assert isinstance(first, Insert)
    assert first.payload == [1]


def test_a_module_that_needs_order_is_computed_anew_from_members_in_order() -> None:
    class Ordered(Calls):
        order_insensitive: ClassVar[bool] = False

    module = Ordered()
    session = sd.source("s").tumbling_window(10).aggregate(module, lambda e: e.v).open()
    session.push([Insert("a", 0, 1, ROW)])
    session.push([Insert("b", 1, 2, ROW)])
    assert module.calls == (3, 0)


def test_an_event_is_added_once_to_a_pane_and_not_once_to_each_window() -> None:
    class MergedCalls(Calls):
        def merge_states(self, a: Bag, b: Bag) -> Bag:
            return a + b

    module = MergedCalls()
    session = sd.source("s").hopping_window(100, 10).aggregate(module, lambda e: e.v).open(emit="watermark")
    session.push([*(Insert(n, n, n + 1, ROW) for n in range(200)), Cti(200)])
    assert module.calls == (200, 0)
    assert MergedCalls.mergeable
    assert not Calls.mergeable


def test_explain_says_what_becomes_of_states() -> None:
    class Ordered(Calls):
        order_insensitive: ClassVar[bool] = False

    windowed = sd.source("s").tumbling_window(5)
    shown = [
        windowed.aggregate(module, lambda e: e.v).explain() for module in (Values(), Merged(), Calls(), OnlyAdds(), Ordered())
    ]
    assert "incremental" not in shown[0]
    assert "[incremental]" in shown[1]
    assert "[incremental, states not merged]" in shown[2]
    assert "[incremental, computed anew on removal, states not merged]" in shown[3]
    assert "[incremental, but in order: computed anew]" in shown[4]
