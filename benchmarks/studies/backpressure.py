"""The memory of a job whose source could give an hour of events, a thousand a second, many times as fast as the job takes them.

Alarms of a thousand sensors, with their order shaken by up to two seconds, go to a file of JSON lines; each micro-batch has a
checkpoint. At each twentieth of the way the resident memory of the process is printed; in the end, what the source takes alone.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

import streamdsl as sd
from benchmarks.command import Study
from streamdsl.connect import END, Batch, End, JsonlFile, OpenSource

HOUR: Final = 3_600_000
MICRO_BATCH: Final = 2_000
_PAGE: Final = 4096


class FastReadings(OpenSource):
    """Readings that are made when they are asked for, two thousand at a time."""

    def __init__(self, at: int, count: int) -> None:
        self.at, self.count = at, count

    def poll(self, timeout: float) -> Batch | End | None:
        if self.at >= self.count:
            return END
        numbers = np.arange(self.at, min(self.at + MICRO_BATCH, self.count))
        self.at = int(numbers[-1]) + 1
        shaken = numbers * 2_654_435_761
        columns = {"le": numbers + shaken % 2_000, "sensor": shaken % 1_000, "heat": shaken // 1_000 % 1_000 / 10}
        return Batch(pa.table(columns), self.at)


class Hour:
    """The source of a number of readings."""

    def __init__(self, count: int) -> None:
        self.count = count

    def open(self, position: Any) -> OpenSource:
        """Go on after so many."""
        return FastReadings(position or 0, self.count)


def resident() -> float:
    """Return the memory that this process has in RAM, in megabytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE / 1e6


def run(count: int) -> float:
    """Run the job, print at each twentieth how far it has come, and return how long it took."""
    readings = sd.source("readings", unit="ms", progress=sd.Progress.slack("2s"), on_violation="drop")
    hot = readings.where(lambda e: e.heat > 90).group_by("sensor").tumbling_window("1m")
    alarms = hot.aggregate(times=sd.count(), hottest=sd.max(lambda e: e.heat)).where(lambda e: e.times >= 3)
    rows, printed, begun = 0, 0, time.perf_counter()

    def watch(figures: Mapping[str, Any]) -> None:
        nonlocal rows, printed
        rows += figures["rows_in"]
        if rows * 20 // count > printed:
            printed = rows * 20 // count
            seconds, state = time.perf_counter() - begun, figures["state_bytes"] / 1e6
            print(f"| {rows:,} | {seconds:.0f} | {resident():.0f} | {state:.2f} |", flush=True)

    print("| events | seconds | memory, MB | state, MB |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        sink = JsonlFile(Path(folder, "alarms.jsonl"))
        alarms.serve(Hour(count), sink, checkpoint=Path(folder, "state"), every=MICRO_BATCH, watch=watch)
    return time.perf_counter() - begun


def seconds_of_source(count: int) -> float:
    """Return how long the source takes by itself."""
    begun, source = time.perf_counter(), Hour(count).open(None)
    while source.poll(0) is not END:
        pass
    return time.perf_counter() - begun


def main() -> None:
    """Print the memory of a job of so many events."""
    study = Study(__doc__, events=HOUR)
    seconds, source = run(study.events), seconds_of_source(study.events)
    text = (
        f"\n{seconds:.1f} s, of which the source by itself takes {source:.2f}: it could be {seconds / source:.0f} times as fast"
    )
    study.row("the job", text, {"seconds": seconds, "source": source})


if __name__ == "__main__":
    main()
