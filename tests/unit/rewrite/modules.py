"""Modules that promise something to the optimizer, and keep it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypedDict

from numpy.typing import NDArray

import streamdsl as sd
from streamdsl.temporal import Record
from streamdsl.udm.bases import UDA, UDO, IncrementalUDO, IntervalEvent, TimeSensitiveUDA, TimeSensitiveUDO, WindowDescriptor


class Row(TypedDict):
    """What the streams of the laws carry."""

    k: str
    v: int


class Best(UDO[Record, Record]):
    """The largest value of each key; None is no value."""

    commutes_with_filter_on = ("k",)
    reads = ("k", "v")

    def compute_result(self, payloads: Sequence[Record]) -> Iterable[Record]:
        best: dict[str, int] = {}
        for row in payloads:
            if row.v is not None:
                best[row.k] = max(row.v, best.get(row.k, row.v))
        return [Record(k=k, v=v) for k, v in best.items()]


class Known(UDO[Record, Record]):
    """The rows that have a value."""

    commutes_with_filter_on = ("k", "v")

    def compute_result(self, payloads: Sequence[Record]) -> Iterable[Record]:
        return [row for row in payloads if row.v is not None]


class Tally(IncrementalUDO[Record, "Counter[str]", Record]):
    """How often each key occurs."""

    commutes_with_filter_on = ("k",)
    reads = ("k",)

    def create_state(self) -> Counter[str]:
        return Counter()

    def add_event_to_state(self, state: Counter[str], payload: Record) -> Counter[str]:
        state[payload.k] += 1
        return state

    def remove_event_from_state(self, state: Counter[str], payload: Record) -> Counter[str]:
        state[payload.k] -= 1
        return state

    def compute_result(self, state: Counter[str]) -> Iterable[Record]:
        return [Record(k=k, v=n) for k, n in state.items() if n]


class Spells(TimeSensitiveUDO[Record, Record]):
    """Every event as it is, from the start of the window on."""

    commutes_with_filter_on = ("k", "v")
    reads = ("k", "v")
    time_bound: ClassVar[bool] = True

    def compute_result(
        self, events: Sequence[IntervalEvent[Record]], window: WindowDescriptor
    ) -> Iterable[IntervalEvent[Record]]:
        for event in events:
            yield IntervalEvent(
                max(event.start_time, window.start_time), event.end_time, Record(k=event.payload.k, v=event.payload.v)
            )


class Distinct(UDO[int, int]):
    """Each value once; None is no value."""

    commutes_with_filter_on = ("value",)

    def compute_result(self, payloads: Sequence[int]) -> Iterable[int]:
        return {value for value in payloads if value is not None}


class Total(UDA[Record, int]):
    """The sum of the values."""

    reads = ("v",)

    def compute_result(self, payloads: Sequence[Record]) -> int:
        return sum(row.v for row in payloads if row.v is not None)


class Busy(TimeSensitiveUDA[Record, int]):
    """The time that rows with a value live inside their window."""

    reads = ("v",)

    def compute_result(self, events: Sequence[IntervalEvent[Record]], window: WindowDescriptor) -> int:
        return sum(
            min(event.end_time, window.end_time) - max(event.start_time, window.start_time)
            for event in events
            if event.payload.v is not None
        )


class Ended(TimeSensitiveUDA[Record, int]):
    """The number of rows that have ended inside their window."""

    ignores_ends_beyond_window: ClassVar[bool] = True

    def compute_result(self, events: Sequence[IntervalEvent[Record]], window: WindowDescriptor) -> int:
        return sum(event.end_time < window.end_time for event in events)


class Inside(TimeSensitiveUDO[Record, Record]):
    """Every event for the time that it lives inside the window."""

    ignores_ends_beyond_window: ClassVar[bool] = True
    commutes_with_filter_on = ("k", "v")
    time_bound: ClassVar[bool] = True

    def compute_result(
        self, events: Sequence[IntervalEvent[Record]], window: WindowDescriptor
    ) -> Iterable[IntervalEvent[Record]]:
        for event in events:
            start, end = max(event.start_time, window.start_time), min(event.end_time, window.end_time)
            yield IntervalEvent(start, end, Record(k=event.payload.k, v=event.payload.v))


class Guessed(Ended):
    """Says that equal members may give other results."""

    deterministic = False


@sd.uda(ignores_ends_beyond_window=True)
def rows(payloads: Sequence[Record]) -> int:
    """Sees no ends at all."""
    return len(payloads)


class Columns(UDA[Record, int]):
    """The sum of the values, in columns."""

    vectorized = True
    reads = ("v",)

    def compute_result(self, payloads: Any) -> int:
        columns: Mapping[str, NDArray[Any]] = payloads
        return sum(value for value in columns["v"].tolist() if value is not None)


class Rows(UDA[Record, int]):
    """The number of rows."""

    reads = ()

    def compute_result(self, payloads: Sequence[Record]) -> int:
        return len(payloads)


class InOrder(UDA[Record, str]):
    """The values in the order in which they come, which whole payloads decide where events start together."""

    reads = ("v",)
    order_insensitive = False

    def compute_result(self, payloads: Sequence[Record]) -> str:
        return " ".join(str(row.v) for row in payloads)


class Sampled(Best):
    """Says that equal members may give other results."""

    deterministic = False


@sd.udo
def anything(payloads: Sequence[Any]) -> Iterable[Any]:
    """Promises nothing."""
    return list(payloads)
