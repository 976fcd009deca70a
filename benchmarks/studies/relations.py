"""What windows of `streamdsl.cql` cost and hold: a million tuples in batches.

Each window counts its tuples (`aggregate(n=count())`). At once it gets the first tenth of them; a session gets all, 1000 batches
a push, and gives as many results. Of what it holds the most is taken after that tenth, and after all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import streamdsl as sd
from benchmarks.command import Study
from streamdsl import cql

TUPLES: Final = 1_000_000
TOGETHER: Final = 4
"""Tuples of a batch; each timestamp has two batches, and every fifth timestamp none."""
KEYS: Final = 1_000
PUSH: Final = 4_000

WINDOWS: Final[Mapping[str, Callable[[cql.BatchStream], cql.Relation]]] = {
    "rows(1000)": lambda s: s.rows(1000),
    "range(100)": lambda s: s.range(100),
    "range(100, clock='stream')": lambda s: s.range(100, clock="stream"),
    "partition_by('k').rows(3)": lambda s: s.partition_by("k").rows(3),
    "rows(100, slide=1000)": lambda s: s.rows(100, slide=1000),
    "range(100, slide=50)": lambda s: s.range(100, slide=50),
    "keep(1000)": lambda s: s.keep(1000),
}


class Held(NamedTuple):
    """What a session holds: tuples in windows, events and bytes on the engine."""

    tuples: int
    events: int
    bytes: int


class Measured(NamedTuple):
    """The microseconds per tuple at once and as a session, and the most that the session held, early and in all."""

    whole: float
    session: float
    early: Held
    held: Held


def tuples(first: int, last: int) -> Iterator[tuple[dict[str, int], int, int]]:
    """Return records of a key and a value, in batches."""
    for m in range(first, last):
        pair, i = divmod(m // TOGETHER, 2)
        yield {"k": m * 7919 % KEYS, "v": m}, pair + pair // 4, i + 1


def measure(window: Callable[[cql.BatchStream], cql.Relation], n: int) -> Measured:
    """Return what a window costs and holds."""
    given, start = list(tuples(0, n // 10)), time.process_time()
    whole = window(cql.stream_group(S=given).S).aggregate(n=sd.count()).istream().events()
    whole_time = time.process_time() - start
    session = window(cql.stream_group(S=[]).S).aggregate(n=sd.count()).open()
    start, came, early, most = time.process_time(), 0, Held(0, 0, 0), Held(0, 0, 0)
    for first in range(0, n, PUSH):
        came += len(session.push(("S", *each) for each in tuples(first, first + PUSH)).istream)
        most = Held(*map(max, most, held(session)))
        if first + PUSH == len(given):
            assert came == len(whole), (came, len(whole))
            early = most
    return Measured(whole_time * 1e7 / n, (time.process_time() - start) * 1e6 / n, early, most)


def held(session: cql.RelationSession) -> Held:
    """Return what a session holds now."""
    figures: dict[str, Any] = session.stats()
    windows = figures.pop("windows")
    return Held(
        windows["tuples"],
        sum(each["events"] for each in figures.values()),
        sum(each["state_bytes"] for each in figures.values()),
    )


def main() -> None:
    """Measure every window."""
    study = Study(__doc__, WINDOWS, tuples=TUPLES)
    n = study.tuples - study.tuples % (10 * PUSH)
    print(f"{n} tuples; microseconds of CPU per tuple; the most that was held after a tenth of them, and in all")
    for name in study.parts:
        found = measure(WINDOWS[name], n)
        early, most = (f"{each.tuples} tuples, {each.events} events, {each.bytes} bytes" for each in (found.early, found.held))
        figures = {"whole": found.whole, "session": found.session, **found.held._asdict()}
        study.row(name, f"{name:28} {found.whole:6.1f} {found.session:6.1f}   {early}; {most}", figures)


if __name__ == "__main__":
    main()
