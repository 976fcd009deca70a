"""What it costs to trace a session: pushes in one that is not traced, and in one with a ring of ten thousand events, in turns.

Queries over points of a thousand keys, by size of a push; CPU microseconds a push, medians, the first tenth left out. Either
session is the first one to take a push as often as the other.
Then the page of a trace: how long it takes to write, and how large it is.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

import streamdsl as sd
from benchmarks.command import Study

RING: Final = 10_000
PUSHES: Final = 400
SIZES: Final = (1, 100, 10_000)
KEYS: Final = 1_000
PAGE: Final = 100_000
"""The events of the page's trace, in and out."""


def counts(points: Any) -> Any:
    return points.group_by("key").tumbling_window(1_000).aggregate(n=sd.count(), mean=sd.avg(lambda e: e.price))


def lately(points: Any) -> Any:
    return points.group_by("key").trailing_window(1_000).aggregate(most=sd.max(lambda e: e.price))


def cheap(points: Any) -> Any:
    return points.where(lambda e: e.price < 50).select(lambda e: {"key": e.key})


QUERIES: Final[dict[str, Callable[[Any], Any]]] = {"filter, projection": cheap, "tumbling": counts, "trailing": lately}


def pushes(size: int, number: int) -> Iterator[list[Any]]:
    """Yield pushes of points and a CTI each, ten points a tick."""
    rng = np.random.default_rng(size)
    for push in range(number):
        keys, prices = rng.integers(0, KEYS, size).tolist(), rng.uniform(1, 100, size).tolist()
        first = push * size
        points = [sd.point(first + n, (first + n) // 10, {"key": keys[n], "price": prices[n]}) for n in range(size)]
        yield [*points, sd.Cti(first // 10)]


def costs(query: Callable[[Any], Any], size: int) -> tuple[float, float]:
    """Return the CPU seconds of a push that is not traced, and of one that is."""
    off, on = (query(sd.source("points")).open() for _ in range(2))
    trace = on.trace(last=RING)
    plain: list[float] = []
    traced: list[float] = []
    turns = [(off, plain), (on, traced)]
    number = max(40, PUSHES // max(1, size // 100))
    for events in pushes(size, number):
        for session, times in turns:
            start = time.process_time_ns()
            session.push(events)
            times.append((time.process_time_ns() - start) / 1e9)
        turns.reverse()
    assert trace.input
    return statistics.median(plain[number // 10 :]), statistics.median(traced[number // 10 :])


def compare(study: Study) -> None:
    """Print what a push costs."""
    print("| query | events a push | not traced, us | traced, us | ratio |\n|---|---|---|---|---|")
    for title, query in QUERIES.items():
        for size in SIZES:
            plain, traced = costs(query, size)
            text = f"| {title} | {size:,} | {plain * 1e6:,.1f} | {traced * 1e6:,.1f} | {traced / plain:.2f} |"
            study.row(f"{title}, {size}", text, {"not traced": plain, "traced": traced})


def page(study: Study) -> None:
    """Print how long the page of a large trace takes to write."""
    session = counts(sd.source("points")).open()
    trace = session.trace(last=2 * PAGE)
    for events in pushes(100, PAGE // 200):
        session.push(events)
    with tempfile.TemporaryDirectory() as folder:
        path, start = Path(folder) / "page.html", time.perf_counter()
        trace.to_html(path)
        taken, size = time.perf_counter() - start, path.stat().st_size
    n = len(trace.input) + len(trace.output)
    text = f"\na page of {n:,} events: written in {taken:.1f} s, {size / 1e6:.1f} MB"
    study.row("page", text, {"events": n, "seconds": taken, "bytes": size})


def main() -> None:
    """Print what words name, else all."""
    study = Study(__doc__, ["pushes", "page"])
    if "pushes" in study.parts:
        compare(study)
    if "page" in study.parts:
        page(study)


if __name__ == "__main__":
    main()
