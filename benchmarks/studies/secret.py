"""What a running simulation of SECRET keeps, and how many tuples a second it takes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

from benchmarks.command import Study
from streamdsl import secret
from streamdsl.secret import Scope, Simulation, Tuple

TUPLES = 1_000_000
"""Of windows with a slide of 1, of which an instant may report sixty, a tenth."""
WINDOWS = ((60, 60), (60, 10), (60, 1))
ENGINES: dict[str, tuple[secret.Profile, Any]] = {
    "STREAM": (secret.STREAM, "time"),
    "Coral8": (secret.CORAL8, "time"),
    "StreamBase": (secret.STREAMBASE, "time"),
    "StreamBase, last closed": (replace(secret.STREAMBASE, scope=Scope.LAST_CLOSED), "time"),
    "StreamBase, windows of tuples": (secret.STREAMBASE, "tuples"),
    "Spark, update": (secret.SPARK_UPDATE, "time"),
}


class Measured(NamedTuple):
    """Tuples a second, how many reports, and the most tuples that were kept."""

    rate: float
    reports: int
    kept: int


def stream(count: int) -> Iterator[Tuple]:
    """Tuples with gaps and simultaneity, each its own batch: four in three instants."""
    rng, t = Random(1), 0
    for n in range(1, count + 1):
        t += rng.choice((0, 0, 1, 2))
        yield Tuple(n, t, n, n)


def measure(engine: str, size: int, slide: int, count: int = TUPLES) -> Measured:
    """Feed a simulation tuple by tuple."""
    profile, by = ENGINES[engine]
    running, reports, kept = Simulation(profile, size, slide, by=by), 0, 0
    before = time.process_time()
    for each in stream(count):
        reports += len(running.push(each))
        kept = max(kept, running.kept)
    return Measured(count / (time.process_time() - before), reports, kept)


def main() -> None:
    """Print a table for the page."""
    study = Study(__doc__, ENGINES)
    print("| engine | size, slide | tuples a second | reports | kept at most |\n|---|---|---|---|---|")
    for engine in study.parts:
        for size, slide in WINDOWS:
            found = measure(engine, size, slide, TUPLES if slide > 1 else TUPLES // 10)
            text = f"| {engine} | {size}, {slide} | {found.rate:,.0f} | {found.reports:,} | {found.kept} |"
            study.row(f"{engine}, {size}, {slide}", text, found._asdict())


if __name__ == "__main__":
    main()
