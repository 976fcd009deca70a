"""Small modules of each kind for the laws; what they compute shows every lifetime that they are given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from streamdsl.temporal import INFINITY, payload_order
from streamdsl.udm.bases import UDA, UDO, IntervalEvent, TimeSensitiveUDA, TimeSensitiveUDO, WindowDescriptor
from streamdsl.udm.stream_operator import UDSO


class Since(UDSO[Any, list[Any], Any]):
    """The last three rows, and how long ago the one before was; no result for even values, two for negative ones."""

    def create_state(self) -> list[Any]:
        return []

    def process(self, state: list[Any], payload: Any, le: int) -> tuple[list[Any], list[Any]]:
        state.append((le, payload.v))
        del state[:-3]
        seen = {"k": payload.k, "v": sum(v for _, v in state), "ago": le - state[0][0]}
        return state, [seen] * (2 if payload.v < 0 else payload.v % 2)

    def is_empty(self, state: list[Any]) -> bool:
        return not state


class Spread(UDA[int, int]):
    """The largest value minus the smallest."""

    def compute_result(self, payloads: Sequence[int]) -> int:
        return max(payloads) - min(payloads)


class Ends(TimeSensitiveUDA[int, tuple[Any, ...]]):
    """All that a time-sensitive module can see, in an order of its own: NaN is nowhere among numbers, and None is not."""

    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> tuple[Any, ...]:
        seen = sorted(events, key=lambda e: (e.start_time, e.end_time, payload_order(e.payload)))
        return (window.start_time, window.end_time, *((e.start_time, e.end_time, e.payload) for e in seen))


class EndsInside(Ends):
    """What such a module sees if it looks at no end beyond the window."""

    ignores_ends_beyond_window: ClassVar[bool] = True

    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> tuple[Any, ...]:
        return super().compute_result(
            [IntervalEvent(e.start_time, min(e.end_time, window.end_time), e.payload) for e in events], window
        )


class Above(UDO[int, int]):
    """The values above the mean, each once, and the number of values: results that repeat across windows."""

    def compute_result(self, payloads: Sequence[int]) -> Iterable[int]:
        mean = sum(payloads) / len(payloads)
        return [*{value for value in payloads if value > mean}, 100 + len(payloads)]


class Alone(TimeSensitiveUDO[int, int]):
    """The events that last longest of those with their value, from the start of the window on."""

    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> Iterable[IntervalEvent[int]]:
        longest: dict[int, int] = {}
        for event in events:
            longest[event.payload] = max(longest.get(event.payload, event.end_time), event.end_time)
        start = window.start_time
        return [
            IntervalEvent(max(e.start_time, start), e.end_time, e.payload) for e in events if e.end_time == longest[e.payload]
        ]


class Through(TimeSensitiveUDO[int, int]):
    """Every event as it is, from the start of the window on: a change at time s changes no output before s."""

    time_bound: ClassVar[bool] = True

    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> Iterable[IntervalEvent[int]]:
        return [IntervalEvent(max(e.start_time, window.start_time), e.end_time, e.payload) for e in events]


class Latest(TimeSensitiveUDO[int, int]):
    """The events that start last, as they are: time-bound over windows that are cut at starts too."""

    time_bound: ClassVar[bool] = True

    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> Iterable[IntervalEvent[int]]:
        start = max(event.start_time for event in events)
        return [event for event in events if event.start_time == start]


class Halves(TimeSensitiveUDO[int, int]):
    """Each event's first half, cut where the window ends; starts are the events' own, so the output must be clipped."""

    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> Iterable[IntervalEvent[int]]:
        for event in events:
            end = window.end_time if event.end_time == INFINITY else event.end_time
            yield IntervalEvent(event.start_time, event.start_time + (end - event.start_time + 1) // 2, event.payload)


class Number(TimeSensitiveUDO[int, int]):
    """The number of events over the whole window: not time-bound, whatever it claims."""

    time_bound: ClassVar[bool] = True

    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> Iterable[IntervalEvent[int]]:
        return [IntervalEvent(window.start_time, window.end_time, len(events))]


class Pairs(TimeSensitiveUDO[int, int]):
    """Each event but the first, with what the one before it holds: that one may come late, and go."""

    time_bound: ClassVar[bool] = True

    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> Iterable[IntervalEvent[int]]:
        first, ordered = window.start_time, sorted(events, key=lambda e: (e.start_time, e.end_time, payload_order(e.payload)))
        return [IntervalEvent(max(b.start_time, first), b.end_time, a.payload) for a, b in pairwise(ordered)]
