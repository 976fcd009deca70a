"""Incremental modules that are right until numbers are large beside small, windows are large, or the right member goes."""

from __future__ import annotations

import bisect
import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import streamdsl as sd


class FloatSum(sd.IncrementalUDA[float, float, float]):
    def create_state(self) -> float:
        return 0.0

    def add_event_to_state(self, state: float, payload: float) -> float:
        return state + payload

    def remove_event_from_state(self, state: float, payload: float) -> float:
        return state - payload

    def compute_result(self, state: float) -> float:
        return state


class Rounded(FloatSum):
    """A claim of how far off it may be, which makes it right."""

    float_error: ClassVar[float] = 1e-6


class Welford(sd.IncrementalUDA[float, tuple[int, float, float], float]):
    """The mean, moved by each value."""

    def create_state(self) -> tuple[int, float, float]:
        return 0, 0.0, 0.0

    def add_event_to_state(self, state: tuple[int, float, float], payload: float) -> tuple[int, float, float]:
        n, mean, squares = state
        moved = mean + (payload - mean) / (n + 1)
        return n + 1, moved, squares + (payload - mean) * (payload - moved)

    def remove_event_from_state(self, state: tuple[int, float, float], payload: float) -> tuple[int, float, float]:
        n, mean, squares = state
        if n == 1:
            return self.create_state()
        moved = mean - (payload - mean) / (n - 1)
        return n - 1, moved, squares - (payload - mean) * (payload - moved)

    def compute_result(self, state: tuple[int, float, float]) -> float:
        return state[1]


class WelfordVariance(Welford):
    def compute_result(self, state: tuple[int, float, float]) -> float:
        return state[2] / state[0]


class Squares(sd.IncrementalUDA[float, tuple[int, float, float], float]):
    """The variance by the sum of squares."""

    def create_state(self) -> tuple[int, float, float]:
        return 0, 0.0, 0.0

    def add_event_to_state(self, state: tuple[int, float, float], payload: float) -> tuple[int, float, float]:
        return state[0] + 1, state[1] + payload, state[2] + payload * payload

    def remove_event_from_state(self, state: tuple[int, float, float], payload: float) -> tuple[int, float, float]:
        return state[0] - 1, state[1] - payload, state[2] - payload * payload

    def compute_result(self, state: tuple[int, float, float]) -> float:
        n, total, squares = state
        return squares / n - (total / n) ** 2


class Price(NamedTuple):
    price: float
    size: float


class FloatVwap(sd.IncrementalUDA[Price, tuple[float, int], float]):
    """A float total in a field of a payload."""

    def create_state(self) -> tuple[float, int]:
        return 0.0, 0

    def add_event_to_state(self, state: tuple[float, int], payload: Price) -> tuple[float, int]:
        return state[0] + payload.price, state[1] + 1

    def remove_event_from_state(self, state: tuple[float, int], payload: Price) -> tuple[float, int]:
        return state[0] - payload.price, state[1] - 1

    def compute_result(self, state: tuple[float, int]) -> float:
        return state[0] / state[1]


class FloatsOfInts(sd.IncrementalUDA[int, float, float]):
    """Integers of any size in a float."""

    def create_state(self) -> float:
        return 0.0

    def add_event_to_state(self, state: float, payload: int) -> float:
        return state + payload

    def remove_event_from_state(self, state: float, payload: int) -> float:
        return state - payload

    def compute_result(self, state: float) -> float:
        return state


class Covered(sd.TimeSensitiveIncrementalUDA[float, float, float]):
    """Value x time in a float."""

    def create_state(self) -> float:
        return 0.0

    def add_event_to_state(self, state: float, event: sd.IntervalEvent[float], window: sd.WindowDescriptor) -> float:
        return state + event.payload * (min(event.end_time, window.end_time) - max(event.start_time, window.start_time))

    def remove_event_from_state(self, state: float, event: sd.IntervalEvent[float], window: sd.WindowDescriptor) -> float:
        return state - event.payload * (min(event.end_time, window.end_time) - max(event.start_time, window.start_time))

    def compute_result(self, state: float, window: sd.WindowDescriptor) -> float:
        return state / window.duration


class KeepsFive(sd.IncrementalUDA[int, list[int], int | None]):
    """The maximum, from the five largest values."""

    kept: ClassVar[int] = 5

    def create_state(self) -> list[int]:
        return []

    def add_event_to_state(self, state: list[int], payload: int) -> list[int]:
        return sorted([*state, payload])[-self.kept :]

    def remove_event_from_state(self, state: list[int], payload: int) -> list[int]:
        left = list(state)
        if payload in left:
            left.remove(payload)
        return left

    def compute_result(self, state: list[int]) -> int | None:
        return state[-1] if state else None


class KeepsThirty(KeepsFive):
    kept: ClassVar[int] = 30


class MedianOfBuffer(sd.IncrementalUDA[float, list[float], float]):
    """The median of at most 20 values, those in the middle."""

    def create_state(self) -> list[float]:
        return []

    def add_event_to_state(self, state: list[float], payload: float) -> list[float]:
        found = [*state]
        bisect.insort(found, payload)
        return found[1:-1] if len(found) > 20 else found

    def remove_event_from_state(self, state: list[float], payload: float) -> list[float]:
        return [value for i, value in enumerate(state) if i != bisect.bisect_left(state, payload) or len(state) == 1]

    def compute_result(self, state: list[float]) -> float:
        return state[len(state) // 2]


class NewestAdded(sd.IncrementalUDA[int, list[int], int]):
    """The last value to arrive."""

    def create_state(self) -> list[int]:
        return []

    def add_event_to_state(self, state: list[int], payload: int) -> list[int]:
        return [*state, payload]

    def remove_event_from_state(self, state: list[int], payload: int) -> list[int]:
        state.remove(payload)
        return state

    def compute_result(self, state: list[int]) -> int:
        return state[-1]


class ForgetsMultiplicity(sd.IncrementalUDA[str, set[str], int]):
    def create_state(self) -> set[str]:
        return set()

    def add_event_to_state(self, state: set[str], payload: str) -> set[str]:
        return state | {payload}

    def remove_event_from_state(self, state: set[str], payload: str) -> set[str]:
        return state - {payload}

    def compute_result(self, state: set[str]) -> int:
        return len(state)


@dataclass
class Lazy:
    heap: list[int] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)


class LazyMinimum(sd.IncrementalUDA[int, Lazy, int]):
    """The minimum from a heap whose removals wait in a set: one of several equal values takes all of them along."""

    def create_state(self) -> Lazy:
        return Lazy()

    def add_event_to_state(self, state: Lazy, payload: int) -> Lazy:
        heapq.heappush(state.heap, payload)
        state.gone.discard(payload)
        return state

    def remove_event_from_state(self, state: Lazy, payload: int) -> Lazy:
        state.gone.add(payload)
        return state

    def compute_result(self, state: Lazy) -> int:
        return min(value for value in state.heap if value not in state.gone)


class MergesMeans(sd.IncrementalUDA[int, tuple[float, int], float]):
    """The mean of two means: right for two parts of one size."""

    def create_state(self) -> tuple[float, int]:
        return 0.0, 0

    def add_event_to_state(self, state: tuple[float, int], payload: int) -> tuple[float, int]:
        return (state[0] * state[1] + payload) / (state[1] + 1), state[1] + 1

    def merge_states(self, a: tuple[float, int], b: tuple[float, int]) -> tuple[float, int]:
        if not a[1] or not b[1]:
            return a if a[1] else b
        return (a[0] + b[0]) / 2, a[1] + b[1]

    def compute_result(self, state: tuple[float, int]) -> float:
        return round(state[0], 6)


class MergesTwice(sd.IncrementalUDA[str, dict[str, Any], int]):
    """A merged state is not one to merge again."""

    def create_state(self) -> dict[str, Any]:
        return {"n": 0, "merged": 0}

    def add_event_to_state(self, state: dict[str, Any], payload: str) -> dict[str, Any]:
        return {**state, "n": state["n"] + 1}

    def merge_states(self, a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
        return {"n": a["n"], "merged": b["n"]}

    def compute_result(self, state: dict[str, Any]) -> int:
        return int(state["n"] + state["merged"])


class KeepsTheSequence(sd.IncrementalUDA[int, list[Any], int]):
    """Its state is the sequence that it was given, which is not its own."""

    def create_state(self) -> list[Any]:
        return []

    def add_event_to_state(self, state: list[Any], payload: int) -> list[Any]:
        return [*state, payload]

    def add_events_to_state(self, state: list[Any], payloads: Sequence[int]) -> list[Any]:
        if not state and isinstance(payloads, list):
            payloads.sort()
            return payloads
        return [*state, *payloads]

    def remove_event_from_state(self, state: list[Any], payload: int) -> list[Any]:
        state.remove(payload)
        return state

    def compute_result(self, state: list[Any]) -> int:
        return int(sum(state))


class KeepsInClass(sd.IncrementalUDA[int, Counter[int], int]):
    """One state for all windows."""

    shared: ClassVar[Counter[int]] = Counter()

    def create_state(self) -> Counter[int]:
        return self.shared

    def add_event_to_state(self, state: Counter[int], payload: int) -> Counter[int]:
        state[payload] += 1
        return state

    def remove_event_from_state(self, state: Counter[int], payload: int) -> Counter[int]:
        state[payload] -= 1
        return state

    def compute_result(self, state: Counter[int]) -> int:
        return sum(state.values())


@dataclass
class Reading:
    value: float


class RoundsPayload(sd.IncrementalUDA[Reading, list[float], float]):
    """It changes what it is given."""

    def create_state(self) -> list[float]:
        return []

    def add_event_to_state(self, state: list[float], payload: Reading) -> list[float]:
        payload.value = round(payload.value)
        return sorted([*state, payload.value])

    def compute_result(self, state: list[float]) -> float:
        return state[0]


class OfSmallNumbers(sd.IncrementalUDA[int, Counter[int], int]):
    """The most frequent number, right for those that it is for."""

    def create_state(self) -> Counter[int]:
        return Counter()

    def add_event_to_state(self, state: Counter[int], payload: int) -> Counter[int]:
        if abs(payload) > 100:
            raise ValueError(f"{payload} is no such number")
        state[payload] += 1
        return state

    def remove_event_from_state(self, state: Counter[int], payload: int) -> Counter[int]:
        state[payload] -= 1
        return state

    def compute_result(self, state: Counter[int]) -> int:
        return max(state, key=lambda value: (state[value], value))


FORGETFUL: list[Any] = [
    FloatSum,
    Welford,
    WelfordVariance,
    Squares,
    FloatVwap,
    FloatsOfInts,
    Covered,
    KeepsFive,
    KeepsThirty,
    MedianOfBuffer,
    NewestAdded,
    ForgetsMultiplicity,
    LazyMinimum,
    MergesMeans,
    MergesTwice,
    KeepsTheSequence,
    KeepsInClass,
    RoundsPayload,
]
