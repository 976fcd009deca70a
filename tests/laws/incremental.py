"""Modules for the laws of states: the same results from payloads or events, computed anew or kept change by change."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from streamdsl.temporal import payload_key
from streamdsl.udm.bases import (
    UDA,
    UDO,
    IncrementalUDA,
    IncrementalUDO,
    IntervalEvent,
    TimeSensitiveIncrementalUDA,
    TimeSensitiveIncrementalUDO,
    TimeSensitiveUDA,
    TimeSensitiveUDO,
    WindowDescriptor,
)

Bag = Counter[Any]


def listed(bag: Bag) -> tuple[Any, ...]:
    return tuple(sorted(bag.elements()))


class Values(UDA[int, tuple[Any, ...]]):
    def compute_result(self, payloads: Sequence[int]) -> tuple[Any, ...]:
        return tuple(sorted(payloads))


class IncrementalValues(IncrementalUDA[int, Bag, tuple[Any, ...]]):
    def create_state(self) -> Bag:
        return Counter()

    def add_event_to_state(self, state: Bag, payload: int) -> Bag:
        state[payload] += 1
        return state

    def remove_event_from_state(self, state: Bag, payload: int) -> Bag:
        assert state[payload] > 0, "what is removed was added"
        state[payload] -= 1
        return state

    def compute_result(self, state: Bag) -> tuple[Any, ...]:
        return listed(state)


class TimedValues(TimeSensitiveUDA[int, tuple[Any, ...]]):
    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> tuple[Any, ...]:
        return tuple(sorted(event.payload for event in events))


class TimedIncrementalValues(TimeSensitiveIncrementalUDA[int, Bag, tuple[Any, ...]]):
    def create_state(self) -> Bag:
        return Counter()

    def add_event_to_state(self, state: Bag, event: IntervalEvent[int], window: WindowDescriptor) -> Bag:
        return state + Counter([event.payload])

    def remove_event_from_state(self, state: Bag, event: IntervalEvent[int], window: WindowDescriptor) -> Bag:
        return state - Counter([event.payload])

    def compute_result(self, state: Bag, window: WindowDescriptor) -> tuple[Any, ...]:
        return listed(state)


class OnlyAdds(IncrementalUDA[int, list[int], tuple[Any, ...]]):
    """A module that cannot remove: where something leaves, its windows are computed anew."""

    def create_state(self) -> list[int]:
        return []

    def add_event_to_state(self, state: list[int], payload: int) -> list[int]:
        state.append(payload)
        return state

    def compute_result(self, state: list[int]) -> tuple[Any, ...]:
        return tuple(sorted(state))


class IncrementalEnds(TimeSensitiveIncrementalUDA[int, Bag, tuple[Any, ...]]):
    """All that a time-sensitive module can see; each event is added and removed with the window that it is in."""

    def create_state(self) -> Bag:
        return Counter()

    def add_event_to_state(self, state: Bag, event: IntervalEvent[int], window: WindowDescriptor) -> Bag:
        state[self._seen(event, window)] += 1
        return state

    def remove_event_from_state(self, state: Bag, event: IntervalEvent[int], window: WindowDescriptor) -> Bag:
        seen = self._seen(event, window)
        assert state[seen] > 0, "what is removed was added"
        state[seen] -= 1
        return state

    def compute_result(self, state: Bag, window: WindowDescriptor) -> tuple[Any, ...]:
        assert all(seen[3:] == tuple(window) for seen in state.elements()), "events belong to the window as it is now"
        return (*window, *listed(state))

    @staticmethod
    def _seen(event: IntervalEvent[int], window: WindowDescriptor) -> tuple[Any, ...]:
        """Return what is counted: every NaN is one object, as none is equal to another."""
        payload = event.payload if event.payload == event.payload else math.nan
        return (event.start_time, event.end_time, payload, *window)


class Each(UDO[int, tuple[int, int]]):
    """Each value once, with its number."""

    def compute_result(self, payloads: Sequence[int]) -> Iterable[tuple[int, int]]:
        return list(Counter(payloads).items())


class IncrementalEach(IncrementalUDO[int, Bag, tuple[int, int]]):
    """The same; merged and copied by hand."""

    def create_state(self) -> Bag:
        return Counter()

    def copy_state(self, state: Bag) -> Bag:
        return Counter(state)

    def add_events_to_state(self, state: Bag, payloads: Sequence[int]) -> Bag:
        state.update(payloads)
        return state

    def add_event_to_state(self, state: Bag, payload: int) -> Bag:
        raise AssertionError("sets of changes come as sets")

    def remove_events_from_state(self, state: Bag, payloads: Sequence[int]) -> Bag:
        state.subtract(payloads)
        return state

    def compute_result(self, state: Bag) -> Iterable[tuple[int, int]]:
        return [(value, n) for value, n in state.items() if n]


class IncrementalSpans(TimeSensitiveIncrementalUDO[int, list[IntervalEvent[int]], int]):
    """The events as they are, from the start of the window on, from a state."""

    time_bound: ClassVar[bool] = True

    def create_state(self) -> list[IntervalEvent[int]]:
        return []

    def add_event_to_state(
        self, state: list[IntervalEvent[int]], event: IntervalEvent[int], window: WindowDescriptor
    ) -> list[IntervalEvent[int]]:
        return [*state, event]

    def remove_event_from_state(
        self, state: list[IntervalEvent[int]], event: IntervalEvent[int], window: WindowDescriptor
    ) -> list[IntervalEvent[int]]:
        seen = (event.start_time, event.end_time, payload_key(event.payload))  # NaN may be another object
        state.pop(next(n for n, e in enumerate(state) if (e.start_time, e.end_time, payload_key(e.payload)) == seen))
        return state

    def compute_result(self, state: list[IntervalEvent[int]], window: WindowDescriptor) -> Iterable[IntervalEvent[int]]:
        return [IntervalEvent(max(e.start_time, window.start_time), e.end_time, e.payload) for e in state]


class TimedEach(TimeSensitiveUDO[int, tuple[int, int]]):
    """The same of events; stamped as the window is."""

    def compute_result(
        self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor
    ) -> Iterable[IntervalEvent[tuple[int, int]]]:
        return [IntervalEvent(*window, item) for item in Counter(event.payload for event in events).items()]


class TimedIncrementalEach(TimeSensitiveIncrementalUDO[int, Bag, tuple[int, int]]):
    """The same of events, from a state."""

    def create_state(self) -> Bag:
        return Counter()

    def add_event_to_state(self, state: Bag, event: IntervalEvent[int], window: WindowDescriptor) -> Bag:
        state[event.payload] += 1
        return state

    def remove_event_from_state(self, state: Bag, event: IntervalEvent[int], window: WindowDescriptor) -> Bag:
        state[event.payload] -= 1
        return state

    def compute_result(self, state: Bag, window: WindowDescriptor) -> Iterable[IntervalEvent[tuple[int, int]]]:
        return [IntervalEvent(*window, (value, n)) for value, n in state.items() if n]


class Merged(IncrementalValues):
    """Mergeable, so that overlapping windows are put together from panes."""

    def merge_states(self, a: Bag, b: Bag) -> Bag:
        a.update(b)
        return a


class MergedOnlyAdds(OnlyAdds):
    """Mergeable without removal: where something leaves, only its pane is computed anew."""

    def merge_states(self, a: list[int], b: list[int]) -> list[int]:
        a.extend(b)
        return a


class Counted:
    """Counts the calls that reach a module."""

    def __init__(self) -> None:
        self.added = self.removed = 0

    @property
    def calls(self) -> tuple[int, int]:
        """The numbers of additions and of removals since the last look."""
        seen = self.added, self.removed
        self.added = self.removed = 0
        return seen


class Calls(Counted, IncrementalUDA[int, Bag, int]):
    """Sees payloads."""

    def create_state(self) -> Bag:
        return Counter()

    def add_event_to_state(self, state: Bag, payload: int) -> Bag:
        self.added += 1
        return state + Counter([payload])

    def remove_event_from_state(self, state: Bag, payload: int) -> Bag:
        self.removed += 1
        return state - Counter([payload])

    def compute_result(self, state: Bag) -> int:
        return sum(state.elements())


class TimedCalls(Counted, TimeSensitiveIncrementalUDA[int, int, int]):
    """Sees lifetimes too."""

    def create_state(self) -> int:
        return 0

    def add_event_to_state(self, state: int, event: IntervalEvent[int], window: WindowDescriptor) -> int:
        self.added += 1
        return state + event.end_time - event.start_time

    def remove_event_from_state(self, state: int, event: IntervalEvent[int], window: WindowDescriptor) -> int:
        self.removed += 1
        return state - event.end_time + event.start_time

    def compute_result(self, state: int, window: WindowDescriptor) -> int:
        return state
