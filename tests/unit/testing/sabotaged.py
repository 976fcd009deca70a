"""Modules with one mistake each, of the kind that people make, by the law that must find it."""

from __future__ import annotations

import heapq
import os
import statistics
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import streamdsl as sd
from streamdsl import IntervalEvent, WindowDescriptor
from tests.unit.testing.forgetful import KeepsFive, KeepsThirty
from tests.unit.testing.modules import Echo, Mean, Through, Trip, Zone, Zones


class ForgetsToReturn(sd.IncrementalUDA[int, list[int], int]):
    def create_state(self) -> list[int]:
        return []

    def add_event_to_state(self, state: list[int], payload: int) -> list[int]:  # type: ignore[return]
        state.append(payload)

    def compute_result(self, state: list[int]) -> int:
        return sum(state)


class ForgetsToReturnSets(Mean):
    def add_events_to_state(self, state: tuple[Fraction, int], payloads: Sequence[float]) -> tuple[Fraction, int]:
        if len(payloads) > 1:
            return super().add_events_to_state(state, payloads)
        return None  # type: ignore[return-value]


class ForgetsToReturnMerged(Zones):
    def merge_states(self, a: Any, b: Any) -> Any:
        a.update(b)


class NeedsTwo(sd.UDA[float, float]):
    def compute_result(self, payloads: Sequence[float]) -> float:
        return statistics.stdev(payloads)


class Yields(sd.UDA[float, Any]):
    def compute_result(self, payloads: Sequence[float]) -> Any:
        yield max(payloads)


class ReturnsOne(sd.UDO[int, int]):
    def compute_result(self, payloads: Sequence[int]) -> Any:
        return len(payloads)


class ReturnsPayloads(sd.TimeSensitiveUDO[int, int]):
    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> Any:
        return [event.payload for event in events]


class EndsEarly(sd.TimeSensitiveUDO[int, int]):
    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> Iterable[IntervalEvent[int]]:
        return [IntervalEvent(window.end_time, event.start_time, event.payload) for event in events]


class KnowsNoInfinity(sd.TimeSensitiveUDA[int, str]):
    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> str:
        return max(datetime.fromtimestamp(event.end_time, UTC).isoformat() for event in events)


class Sorts(sd.UDA[int, int]):
    def compute_result(self, payloads: Sequence[int]) -> int:
        payloads.sort()  # type: ignore[attr-defined]
        return payloads[-1]


@dataclass
class Basket:
    items: list[str]


class TakesOut(sd.TimeSensitiveUDO[Basket, str]):
    def compute_result(self, events: Sequence[IntervalEvent[Basket]], window: WindowDescriptor) -> Iterable[IntervalEvent[str]]:
        for event in events:
            while event.payload.items:
                yield IntervalEvent(window.start_time, window.end_time, event.payload.items.pop())


class FillsBasket(sd.IncrementalUDA[Basket, Any, int]):
    """Its state is the first payload itself."""

    def create_state(self) -> Any:
        return Basket([])

    def add_event_to_state(self, state: Any, payload: Basket) -> Any:
        payload.items.extend(state.items)
        return payload

    def compute_result(self, state: Any) -> int:
        return len(state.items)


class Counts(sd.UDA[float, float]):
    """Another answer each time."""

    def __init__(self) -> None:
        self.calls = 0

    def compute_result(self, payloads: Sequence[float]) -> float:
        self.calls += 1
        return float(self.calls)


class Remembers(sd.UDA[float, float]):
    """The largest value of all windows so far."""

    def __init__(self) -> None:
        self.largest = -1000.0

    def compute_result(self, payloads: Sequence[float]) -> float:
        self.largest = max(self.largest, *payloads)
        return self.largest - payloads[0] + payloads[0]


class Caches(sd.TimeSensitiveUDA[int, int]):
    """The first answer for a window, whatever its members are by now."""

    def __init__(self) -> None:
        self.cache: dict[WindowDescriptor, int] = {}

    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> int:
        return self.cache.setdefault(window, len(events))


class Incomparable:
    def __init__(self, value: float) -> None:
        self.value = value


class ReturnsObjects(sd.UDA[float, Incomparable]):
    def compute_result(self, payloads: Sequence[float]) -> Incomparable:
        return Incomparable(max(payloads))


class LendsState(sd.IncrementalUDA[int, list[int], list[int]]):
    """The state is the result, and goes on changing."""

    def create_state(self) -> list[int]:
        return []

    def add_event_to_state(self, state: list[int], payload: int) -> list[int]:
        state.append(payload)
        state.sort()
        return state

    def remove_event_from_state(self, state: list[int], payload: int) -> list[int]:
        state.remove(payload)
        return state

    def compute_result(self, state: list[int]) -> list[int]:
        return state


class LendsBuffer(sd.UDO[int, list[int]]):
    """One list for all results."""

    def __init__(self) -> None:
        self.buffer: list[int] = []

    def compute_result(self, payloads: Sequence[int]) -> Iterable[list[int]]:
        self.buffer[:] = sorted(payloads)
        return [self.buffer]


class TakesFirst(sd.UDA[str, str]):
    def compute_result(self, payloads: Sequence[str]) -> str:
        return payloads[0]


@sd.udo
def joined(values: Sequence[str]) -> Iterable[str]:
    return [",".join(values)]


class LastAdded(sd.IncrementalUDA[int, int, int]):
    def create_state(self) -> int:
        return 0

    def add_event_to_state(self, state: int, payload: int) -> int:
        return payload

    def compute_result(self, state: int) -> int:
        return state


class PopsHeap(LendsState):
    def compute_result(self, state: list[int]) -> list[int]:
        return [heapq.heappop(state) for _ in range(min(2, len(state)))]


class SetsAreSets(Mean):
    def add_events_to_state(self, state: tuple[Fraction, int], payloads: Sequence[float]) -> tuple[Fraction, int]:
        for payload in set(payloads):
            state = self.add_event_to_state(state, payload)
        return state


class RemovesOnlyOne(Mean):
    def remove_events_from_state(self, state: tuple[Fraction, int], payloads: Sequence[float]) -> tuple[Fraction, int]:
        return self.remove_event_from_state(state, payloads[0])


class ForgetsToCount(Mean):
    def remove_event_from_state(self, state: tuple[Fraction, int], payload: float) -> tuple[Fraction, int]:
        return state[0] - Fraction(payload), state[1]


class RemovesByIdentity(sd.IncrementalUDA[Trip, list[Trip], int]):
    def create_state(self) -> list[Trip]:
        return []

    def add_event_to_state(self, state: list[Trip], payload: Trip) -> list[Trip]:
        return [*state, payload]

    def remove_event_from_state(self, state: list[Trip], payload: Trip) -> list[Trip]:
        return [trip for trip in state if trip is not payload]

    def compute_result(self, state: list[Trip]) -> int:
        return len(state)


class UndoesTheLast(sd.IncrementalUDA[int, list[int], int]):
    """A stack of largest values: right if what comes last goes first."""

    def create_state(self) -> list[int]:
        return []

    def add_event_to_state(self, state: list[int], payload: int) -> list[int]:
        return [*state, max([payload, *state[-1:]])]

    def remove_event_from_state(self, state: list[int], payload: int) -> list[int]:
        return state[:-1]

    def compute_result(self, state: list[int]) -> int:
        return state[-1]


class DoesNotCopy(LendsState):
    def copy_state(self, state: list[int]) -> list[int]:
        return state

    def compute_result(self, state: list[int]) -> list[int]:
        return list(state)


class CopiesTheShell(sd.IncrementalUDA[str, dict[str, list[int]], int]):
    def create_state(self) -> dict[str, list[int]]:
        return {"lengths": []}

    def add_event_to_state(self, state: dict[str, list[int]], payload: str) -> dict[str, list[int]]:
        state["lengths"].append(len(payload))
        return state

    def copy_state(self, state: dict[str, list[int]]) -> dict[str, list[int]]:
        return dict(state)

    def compute_result(self, state: dict[str, list[int]]) -> int:
        return sum(state["lengths"]) + len(state["lengths"])


class CopiesNothing(Mean):
    def copy_state(self, state: tuple[Fraction, int]) -> tuple[Fraction, int]:
        return state[0], 1


class MergesHalf(Mean):
    def merge_states(self, a: tuple[Fraction, int], b: tuple[Fraction, int]) -> tuple[Fraction, int]:
        return a[0] + b[0], max(a[1], b[1])


class MergesMeans(sd.UDA[float, float]):
    """A claim of something that it cannot do."""

    mergeable: ClassVar[bool] = True

    def compute_result(self, payloads: Sequence[float]) -> float:
        return max(payloads)


class KeepsPartOfB(sd.IncrementalUDA[str, dict[str, list[int]], int]):
    def create_state(self) -> dict[str, list[int]]:
        return defaultdict(list)

    def add_event_to_state(self, state: dict[str, list[int]], payload: str) -> dict[str, list[int]]:
        state[payload].append(1)
        return state

    def merge_states(self, a: dict[str, list[int]], b: dict[str, list[int]]) -> dict[str, list[int]]:
        for name, ones in b.items():
            if name in a:
                a[name] = a[name] + ones
            else:
                a[name] = ones
        return a

    def compute_result(self, state: dict[str, list[int]]) -> int:
        return sum(map(len, state.values()))


class HoldsLock(sd.UDA[float, float]):
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def compute_result(self, payloads: Sequence[float]) -> float:
        with self.lock:
            return max(payloads)


class HoldsLambda(sd.IncrementalUDA[int, tuple[Callable[[int], int], int], int]):
    def create_state(self) -> tuple[Callable[[int], int], int]:
        return (lambda value: value * 2), 0

    def add_event_to_state(self, state: tuple[Callable[[int], int], int], payload: int) -> tuple[Callable[[int], int], int]:
        return state[0], state[1] + state[0](payload)

    def compute_result(self, state: tuple[Callable[[int], int], int]) -> int:
        return state[1]


class ForgetsOnLoad(Mean):
    """A setting that is not stored."""

    def __init__(self) -> None:
        self.scale = 2.0

    def __getstate__(self) -> dict[str, float]:
        return {}

    def __deepcopy__(self, memo: dict[int, Any]) -> ForgetsOnLoad:
        return ForgetsOnLoad()

    def compute_result(self, state: tuple[Fraction, int]) -> float:
        return getattr(self, "scale", 1.0) * state[1]


class Numbers(sd.TimeSensitiveUDO[int, int]):
    time_bound: ClassVar[bool] = True

    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> Iterable[IntervalEvent[int]]:
        return [IntervalEvent(window.start_time, window.end_time, len(events))]


class LooksBeyond(sd.TimeSensitiveUDA[int, int]):
    ignores_ends_beyond_window: ClassVar[bool] = True

    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> int:
        return sum(event.end_time > window.end_time for event in events)


class StampsBeyond(Through):
    """Payloads do not depend on ends beyond the window, but the results' own ends do."""

    ignores_ends_beyond_window: ClassVar[bool] = True


class ReadsMore(sd.UDA[Trip, str]):
    reads: ClassVar[Sequence[str] | None] = ("zone",)

    def compute_result(self, payloads: Sequence[Trip]) -> str:
        return max(f"{trip.zone}{trip.fare}" for trip in payloads)


class ReadsNothingThere(sd.UDA[Trip, int]):
    reads: ClassVar[Sequence[str] | None] = ("price",)

    def compute_result(self, payloads: Sequence[Trip]) -> int:
        return len(payloads)


class BusiestOnly(Zones):
    """One zone alone depends on all of them."""

    def compute_result(self, state: Any) -> Iterable[Zone]:
        zones = list(super().compute_result(state))
        return [zone for zone in zones if zone.n == max(n for _, n in zones)]


class FilterOnNothing(Zones):
    commutes_with_filter_on: ClassVar[Sequence[str]] = ("fare",)


class Share(NamedTuple):
    zone: str
    part: float


class Shares(sd.UDO[Trip, Share]):
    commutes_with_filter_on: ClassVar[Sequence[str]] = ("zone",)

    def compute_result(self, payloads: Sequence[Trip]) -> Iterable[Share]:
        zones = sorted({trip.zone for trip in payloads})
        return [Share(zone, sum(trip.zone == zone for trip in payloads) / len(payloads)) for zone in zones]


class Approximates(sd.UDA[int, int]):
    """Exact for the first windows, then not: the results of windows that no CTI lets change any more change."""

    def __init__(self) -> None:
        self.seen: set[tuple[int, ...]] = set()

    def compute_result(self, payloads: Sequence[int]) -> int:
        self.seen.add(tuple(sorted(payloads)))
        return max(payloads) + 1000 * max(0, len(self.seen) - 2)


class Differences(sd.TimeSensitiveUDA[int, int]):
    """The difference to the window before, as if windows came in order and once."""

    def __init__(self) -> None:
        self.totals: dict[int, int] = {}

    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> int:
        self.totals[window.start_time] = total = sum(event.payload for event in events)
        return total - self.totals.get(window.start_time - window.duration, 0)


class AtHome(sd.UDA[int, int]):
    """Another answer in another process."""

    def __init__(self) -> None:
        self.process = os.getpid()

    def compute_result(self, payloads: Sequence[int]) -> int:
        return max(payloads) + (os.getpid() != self.process)


SABOTAGED: dict[str, list[Any]] = {
    "states_are_returned": [ForgetsToReturn, ForgetsToReturnSets, ForgetsToReturnMerged],
    "answers": [NeedsTwo, Yields, ReturnsOne, ReturnsPayloads, EndsEarly],
    "clipping": [KnowsNoInfinity],
    "no_output_in_the_past": [Echo],
    "inputs_not_mutated": [Sorts, TakesOut, FillsBasket],
    "deterministic": [Counts, Remembers, Caches, ReturnsObjects],
    "result_not_aliased": [LendsState, LendsBuffer],
    "order_insensitive": [TakesFirst, joined, LastAdded],
    "computing_keeps_state": [PopsHeap],
    "sets_equal_singles": [SetsAreSets, RemovesOnlyOne],
    "remove_undoes_add": [ForgetsToCount, RemovesByIdentity],
    "incremental_equals_recompute": [UndoesTheLast],
    "what_has_gone_leaves_no_trace": [KeepsFive, KeepsThirty],
    "state_copyable": [DoesNotCopy, CopiesTheShell, CopiesNothing],
    "merge_agrees": [MergesHalf, MergesMeans, KeepsPartOfB],
    "picklable": [HoldsLock, HoldsLambda, ForgetsOnLoad],
    "time_bound": [Numbers],
    "ignores_ends_beyond_window": [LooksBeyond, StampsBeyond],
    "reads": [ReadsMore, ReadsNothingThere],
    "commutes_with_filter_on": [BusiestOnly, FilterOnNothing, Shares],
    "arrival_order": [Differences],
}
