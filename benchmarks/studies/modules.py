"""What a late event costs when a window holds n events: a module computed anew, an incremental one, and a built-in.

A window is filled with n events in one push. Then a late event comes and is retracted again, one push each, many times: every
push corrects the result, and the window keeps n or n + 1 members.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from typing import Any

import streamdsl as sd
from benchmarks.command import Study
from streamdsl.temporal import Event, Insert, Record, Retract

SIZES = (1, 10, 100, 1_000, 100_000)
WINDOW = 10**9

Total = tuple[int, int]


class Mean(sd.UDA[int, float]):
    """The mean of all values, computed anew."""

    def compute_result(self, payloads: Sequence[int]) -> float:
        return sum(payloads) / len(payloads)


class IncrementalMean(sd.IncrementalUDA[int, Total, float]):
    """The mean from a running total."""

    def create_state(self) -> Total:
        return 0, 0

    def add_event_to_state(self, state: Total, payload: int) -> Total:
        return state[0] + payload, state[1] + 1

    def remove_event_from_state(self, state: Total, payload: int) -> Total:
        return state[0] - payload, state[1] - 1

    def compute_result(self, state: Total) -> float:
        return state[0] / state[1]


class TimedMean(sd.TimeSensitiveUDA[int, float]):
    """The mean of a module that is given events."""

    def compute_result(self, events: Sequence[sd.IntervalEvent[int]], window: sd.WindowDescriptor) -> float:
        return sum(event.payload for event in events) / len(events)


def row(n: int) -> Insert[Any]:
    return Insert(n, n % WINDOW, n % WINDOW + 1, Record(v=n % 97))


def queries() -> dict[str, sd.Stream[Any]]:
    windowed = sd.source("s").tumbling_window(WINDOW)
    return {
        "computed anew": windowed.aggregate(Mean(), lambda e: e.v),
        "computed anew, time-sensitive": windowed.aggregate(TimedMean(), lambda e: e.v),
        "incremental": windowed.aggregate(IncrementalMean(), lambda e: e.v),
        "built-in avg": windowed.aggregate(sd.avg(lambda e: e.v)),
    }


def fill_and_correct(query: sd.Stream[Any], n: int) -> tuple[float, float]:
    """Return the microseconds of CPU time per event while the window is filled, and per push of one late change."""
    session = query.open()
    events: list[Event[Any]] = [row(i) for i in range(n)]
    gc.collect()
    start = time.process_time()
    session.push(events)
    filling = time.process_time() - start
    _correct(session, n)  # the first retraction finds rows by their ids from then on
    rounds = max(5, min(100, 500_000 // n))
    start = time.process_time()
    for i in range(n + 1, n + 1 + rounds):
        _correct(session, i)
    return filling / n * 1e6, (time.process_time() - start) / (2 * rounds) * 1e6


def _correct(session: Any, n: int) -> None:
    late = row(n)
    session.push([late])
    session.push([Retract(late.id, late.le, late.re, late.le)])


def main() -> None:
    study = Study(__doc__, queries())
    fill_and_correct(queries()["computed anew"], 1_000)  # the first run pays for imports
    print("a window of n events, then late changes, one push each: us per change (us per event while filling)")
    print(f"  {'':<34}" + "".join(f"{f'n = {n}':>22}" for n in SIZES))
    for name in study.parts:
        found = {n: fill_and_correct(queries()[name], n) for n in SIZES}
        text = f"  {name:<34}" + "".join(f"{f'{late:.1f} ({filling:.1f})':>22}" for filling, late in found.values())
        study.row(name, text, {f"n = {n}": late for n, (_, late) in found.items()})


if __name__ == "__main__":
    main()
