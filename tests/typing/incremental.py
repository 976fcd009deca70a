"""What type checkers infer for incremental modules, and what they refuse."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, assert_type

import streamdsl as sd
from tests.typing.payloads import Trip, numbers, trips


class Total(NamedTuple):
    sum: float
    n: int


class Mean(sd.IncrementalUDA[float, Total, float]):
    def create_state(self) -> Total:
        return Total(0.0, 0)

    def add_event_to_state(self, state: Total, payload: float) -> Total:
        return Total(state.sum + payload, state.n + 1)

    def remove_event_from_state(self, state: Total, payload: float) -> Total:
        return Total(state.sum - payload, state.n - 1)

    def merge_states(self, a: Total, b: Total) -> Total:
        return Total(a.sum + b.sum, a.n + b.n)

    def compute_result(self, state: Total) -> float:
        return state.sum / state.n


class Busy(sd.TimeSensitiveIncrementalUDA[object, int, float]):
    def create_state(self) -> int:
        return 0

    def add_event_to_state(self, state: int, event: sd.IntervalEvent[object], window: sd.WindowDescriptor) -> int:
        return state + event.end_time - event.start_time

    def compute_result(self, state: int, window: sd.WindowDescriptor) -> float:
        return state / window.duration


class Zones(sd.IncrementalUDO[Trip, list[int], int]):
    def create_state(self) -> list[int]:
        return []

    def add_event_to_state(self, state: list[int], payload: Trip) -> list[int]:
        return [*state, payload.zone]

    def compute_result(self, state: list[int]) -> Iterable[int]:
        return set(state)


class Through(sd.TimeSensitiveIncrementalUDO[str, list[sd.IntervalEvent[str]], str]):
    def create_state(self) -> list[sd.IntervalEvent[str]]:
        return []

    def add_event_to_state(
        self, state: list[sd.IntervalEvent[str]], event: sd.IntervalEvent[str], window: sd.WindowDescriptor
    ) -> list[sd.IntervalEvent[str]]:
        return [*state, event]

    def compute_result(self, state: list[sd.IntervalEvent[str]], window: sd.WindowDescriptor) -> Iterable[sd.IntervalEvent[str]]:
        return state


class WrongState(sd.IncrementalUDA[float, Total, float]):
    def create_state(self) -> int:  # type: ignore[override]
        return 0

    def add_event_to_state(self, state: Total, payload: float) -> Total:
        return state

    def compute_result(self, state: Total) -> float:
        return 0.0


hours = trips.tumbling_window("1h")
tens = numbers.hopping_window(10, 5)


def modules() -> None:
    assert_type(tens.aggregate(Mean), sd.Stream[float])
    assert_type(tens.aggregate(Mean()), sd.Stream[float])
    assert_type(hours.aggregate(Mean(), lambda e: e.fare), sd.Stream[float])
    assert_type(hours.aggregate(Busy()), sd.Stream[float])
    assert_type(hours.apply(Zones()), sd.Stream[int])
    assert_type(hours.apply(Through(), lambda e: e.vendor), sd.Stream[str])
    assert_type(hours.aggregate(lambda w: w.udm(Mean(), lambda e: e.fare)), sd.Stream[float])
    hours.aggregate(Mean())  # type: ignore[arg-type]
    hours.aggregate(Mean(), lambda e: e.vendor)  # type: ignore[arg-type, return-value]
    tens.apply(Zones())  # type: ignore[arg-type]
    hours.apply(Mean())  # type: ignore[call-overload]
