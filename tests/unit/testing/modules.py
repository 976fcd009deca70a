"""Modules that keep every law: one of each base class, and some that make every claim there is."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

import streamdsl as sd
from streamdsl import IntervalEvent, WindowDescriptor


class Spread(sd.UDA[float, float]):
    def compute_result(self, payloads: Sequence[float]) -> float:
        return max(payloads) - min(payloads)


class Coverage(sd.TimeSensitiveUDA[int, float]):
    """The sum of value x lifetime inside the window."""

    ignores_ends_beyond_window: ClassVar[bool] = True

    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> float:
        inside = [min(e.end_time, window.end_time) - max(e.start_time, window.start_time) for e in events]
        return sum(e.payload * duration for e, duration in zip(events, inside, strict=True)) / window.duration


class Distinct(sd.UDO[str, str]):
    def compute_result(self, payloads: Sequence[str]) -> Iterable[str]:
        return sorted(set(payloads))


class Through(sd.TimeSensitiveUDO[int, int]):
    time_bound: ClassVar[bool] = True

    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> Iterable[IntervalEvent[int]]:
        for event in events:
            yield IntervalEvent(max(event.start_time, window.start_time), event.end_time, event.payload)


class Echo(sd.TimeSensitiveUDO[int, int]):
    """Events as they are: queries must cut them."""

    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> Iterable[IntervalEvent[int]]:
        return events


class Mean(sd.IncrementalUDA[float, tuple[Fraction, int], float]):
    def create_state(self) -> tuple[Fraction, int]:
        return Fraction(), 0

    def add_event_to_state(self, state: tuple[Fraction, int], payload: float) -> tuple[Fraction, int]:
        return state[0] + Fraction(payload), state[1] + 1

    def remove_event_from_state(self, state: tuple[Fraction, int], payload: float) -> tuple[Fraction, int]:
        return state[0] - Fraction(payload), state[1] - 1

    def merge_states(self, a: tuple[Fraction, int], b: tuple[Fraction, int]) -> tuple[Fraction, int]:
        return a[0] + b[0], a[1] + b[1]

    def compute_result(self, state: tuple[Fraction, int]) -> float:
        return float(state[0] / state[1])


class Largest(sd.IncrementalUDA[int, list[int], int]):
    """Without removal: its windows are computed anew."""

    def create_state(self) -> list[int]:
        return []

    def add_event_to_state(self, state: list[int], payload: int) -> list[int]:
        return [max([*state, payload])]

    def compute_result(self, state: list[int]) -> int:
        return state[0]


class Ordered(sd.IncrementalUDA[float, list[float], list[float]]):
    """All values in order, in a state that is changed in place and takes sets."""

    def create_state(self) -> list[float]:
        return []

    def add_event_to_state(self, state: list[float], payload: float) -> list[float]:
        bisect.insort(state, payload)
        return state

    def add_events_to_state(self, state: list[float], payloads: Sequence[float]) -> list[float]:
        state.extend(payloads)
        state.sort()
        return state

    def remove_event_from_state(self, state: list[float], payload: float) -> list[float]:
        del state[bisect.bisect_left(state, payload)]
        return state

    def copy_state(self, state: list[float]) -> list[float]:
        return list(state)

    def merge_states(self, a: list[float], b: list[float]) -> list[float]:
        return sorted(a + b)

    def compute_result(self, state: list[float]) -> list[float]:
        return list(state)


class Uptime(sd.TimeSensitiveIncrementalUDA[bool, int, int]):
    """The sum of the lifetimes of what is true, as clipped."""

    def create_state(self) -> int:
        return 0

    def add_event_to_state(self, state: int, event: IntervalEvent[bool], window: WindowDescriptor) -> int:
        return state + event.payload * (event.end_time - event.start_time)

    def remove_event_from_state(self, state: int, event: IntervalEvent[bool], window: WindowDescriptor) -> int:
        return state - event.payload * (event.end_time - event.start_time)

    def compute_result(self, state: int, window: WindowDescriptor) -> int:
        return state


@dataclass
class Trip:
    zone: str
    fare: float | None
    at: datetime


class Zone(NamedTuple):
    zone: str
    n: int


class Zones(sd.IncrementalUDO[Trip, Counter[str], Zone]):
    """The number of trips of each zone: to filter the zones is to filter the trips, and nothing else is read."""

    commutes_with_filter_on: ClassVar[Sequence[str]] = ("zone",)
    reads: ClassVar[Sequence[str] | None] = ("zone",)

    def create_state(self) -> Counter[str]:
        return Counter()

    def add_event_to_state(self, state: Counter[str], payload: Trip) -> Counter[str]:
        state[payload.zone] += 1
        return state

    def remove_event_from_state(self, state: Counter[str], payload: Trip) -> Counter[str]:
        state[payload.zone] -= 1
        return state

    def merge_states(self, a: Counter[str], b: Counter[str]) -> Counter[str]:
        a.update(b)
        return a

    def compute_result(self, state: Counter[str]) -> Iterable[Zone]:
        return [Zone(zone, n) for zone, n in state.items() if n]


class Lasting(sd.TimeSensitiveIncrementalUDO[str, Counter[IntervalEvent[str]], str]):
    """Every event that lasts longer than one tick, from the start of the window on."""

    time_bound: ClassVar[bool] = False

    def create_state(self) -> Counter[IntervalEvent[str]]:
        return Counter()

    def add_event_to_state(
        self, state: Counter[IntervalEvent[str]], event: IntervalEvent[str], window: WindowDescriptor
    ) -> Counter[IntervalEvent[str]]:
        state[event] += 1
        return state

    def remove_event_from_state(
        self, state: Counter[IntervalEvent[str]], event: IntervalEvent[str], window: WindowDescriptor
    ) -> Counter[IntervalEvent[str]]:
        state[event] -= 1
        return state

    def compute_result(self, state: Counter[IntervalEvent[str]], window: WindowDescriptor) -> Iterable[IntervalEvent[str]]:
        for event in state.elements():
            if event.end_time - event.start_time > 1:
                yield IntervalEvent(max(event.start_time, window.start_time), event.end_time, event.payload)


class Fares(sd.UDA[Mapping[str, Any], float]):
    """A module over records of which only examples tell the fields."""

    reads: ClassVar[Sequence[str] | None] = ("fare",)

    def compute_result(self, payloads: Sequence[Mapping[str, Any]]) -> float:
        return float(sum(payload["fare"] for payload in payloads))


class Norm(sd.UDA[float, float]):
    vectorized: ClassVar[bool] = True

    def compute_result(self, payloads: Sequence[float]) -> float:
        return float(np.abs(payloads).max())


class Power(sd.IncrementalUDA[float, float, float]):
    """A vectorized module with state, that takes sets only."""

    vectorized: ClassVar[bool] = True

    def create_state(self) -> float:
        return 0.0

    def add_event_to_state(self, state: float, payload: float) -> float:
        return state + payload * payload

    def add_events_to_state(self, state: float, payloads: Sequence[float]) -> float:
        return state + float(np.square(payloads).sum())

    def compute_result(self, state: float) -> float:
        return state


class Earliest(sd.UDA[str, str]):
    """The first payload of those given in order."""

    order_insensitive: ClassVar[bool] = False

    def compute_result(self, payloads: Sequence[str]) -> str:
        return payloads[0]


class Number(sd.UDA[float, float]):
    """Another answer each time, as it says."""

    deterministic: ClassVar[bool] = False

    def __init__(self) -> None:
        self.calls = 0

    def compute_result(self, payloads: Sequence[float]) -> float:
        self.calls += 1
        return float(self.calls)


@sd.uda
def middle(values: Sequence[int]) -> float:
    return sorted(values)[len(values) // 2]


@sd.udo
def running(events: Sequence[IntervalEvent[float]], window: WindowDescriptor) -> Iterable[IntervalEvent[float]]:
    return [e for e in events if e.start_time >= window.start_time]
