"""Count and sum per key over tumbling and hopping windows: the window operator, a plain dict loop, and bare numpy.

Every line is fed the same columns in pushes of 16k rows, in order of time. "operator" is the window operator alone, given the
groups of the rows; "grouped" adds finding the groups; "session" is a whole query, from columns in to events out.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import streamdsl as sd
from benchmarks.command import Study
from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.lower import lower
from streamdsl.engine.operator import EmitPolicy, Operator, Piece
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Table
from streamdsl.io.binding import Inserts
from streamdsl.temporal import INFINITY

EVENTS = 1_000_000
PUSH = 16_384
KEYS = 1_000
WINDOWS = 8
SIZE = 1_000_000
"""Ticks in a window: WINDOWS tumbling ones hold all events."""

Column = NDArray[Any]


@dataclass(frozen=True)
class Events:
    """Point events as columns, in order of time."""

    le: Column
    keys: Column
    values: Column

    @classmethod
    def random(cls, n: int = EVENTS, seed: int = 0) -> Events:
        rng = np.random.default_rng(seed)
        return cls(np.sort(rng.integers(0, WINDOWS * SIZE, n)), rng.integers(0, KEYS, n), rng.integers(0, 1000, n))

    def pushes(self) -> Iterator[Events]:
        for start in range(0, len(self.le), PUSH):
            stop = start + PUSH
            yield Events(self.le[start:stop], self.keys[start:stop], self.values[start:stop])

    def table(self) -> Table:
        return Table(Schema.record(["k", "v"]), {"k": self.keys, "v": self.values}, len(self.le))


def query(hop: int) -> sd.Stream[Any]:
    windowed = sd.source("s").group_by("k").hopping_window(SIZE, hop)
    return windowed.aggregate(n=sd.count(), total=sd.sum(lambda e: e.v))


def steps(events: Events) -> Iterator[Piece]:
    """Return the pushes as what operators take, each with a CTI at its end, and the end of the stream."""
    ids = np.arange(len(events.le))
    for push in events.pushes():
        first = int(push.le[0])
        yield Piece(Batch(ids[: len(push.le)], push.le, push.le, push.le + 1, push.table()), first)
    yield Piece(EMPTY, INFINITY)


def operators(hop: int, emit_policy: EmitPolicy) -> tuple[Operator, Operator]:
    """Return the operator that finds the groups, and the window operator."""
    enter, windows, _ = lower(query(hop).plan(), emit_policy).operators
    return enter, windows


def cpu(run: Callable[[], object]) -> float:
    """Return the nanoseconds of CPU time that a call takes."""
    gc.collect()
    before = time.process_time_ns()
    run()
    return time.process_time_ns() - before


def through(operator: Operator, inputs: Iterable[Piece]) -> list[Piece]:
    return [operator.step([step]) for step in inputs]


def operator_ns(hop: int, events: Events, emit_policy: EmitPolicy) -> tuple[float, float, int]:
    """Return the CPU time per event of finding groups and of the window operator, and how many rows come out."""
    enter, windows = operators(hop, emit_policy)
    inputs = list(steps(events))
    grouped: list[Piece] = []
    found = cpu(lambda: grouped.extend(through(enter, inputs)))
    out: list[Piece] = []
    spent = cpu(lambda: out.extend(through(windows, grouped)))
    return found / len(events.le), spent / len(events.le), sum(len(step.batch) for step in out)


def session_ns(hop: int, events: Events, emit: Any) -> float:
    session = query(hop).open(emit=emit)
    pushes = [Inserts(None, push.le, push.le + 1, push.table()) for push in events.pushes()]

    def run() -> None:
        for push in pushes:
            session.push(push)
        session.close()

    return cpu(run) / len(events.le)


def dict_ns(hop: int, events: Events) -> float:
    """Return the time of the loop that one would write by hand, without corrections and without results."""
    per_event = SIZE // hop
    rows = list(zip(events.le.tolist(), events.keys.tolist(), events.values.tolist(), strict=True))

    def run() -> None:
        cells: dict[tuple[int, int], list[int]] = {}
        for le, key, value in rows:
            last = le // hop
            for number in range(last - per_event + 1, last + 1):
                cell = cells.get((number, key))
                if cell is None:
                    cells[number, key] = [1, value]
                else:
                    cell[0] += 1
                    cell[1] += value

    return cpu(run) / len(events.le)


def numpy_ns(hop: int, events: Events) -> float:
    """Return the time of adding to a dense array of windows x keys: nothing can be faster in numpy."""
    per_event = SIZE // hop
    size = (WINDOWS * per_event + per_event) * KEYS
    counts, sums = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)

    def run() -> None:
        for push in events.pushes():
            first = (push.le // hop) * KEYS + push.keys
            for later in range(per_event):
                at = first + later * KEYS
                np.add.at(counts, at, 1)
                np.add.at(sums, at, push.values)

    return cpu(run) / len(events.le)


HOPS = {"tumbling": SIZE, "hopping, size / hop = 10": SIZE // 10}


def report(study: Study, name: str, hop: int, events: Events) -> None:
    """Print the lines of one kind of window."""
    floor = numpy_ns(hop, events)
    lines: list[tuple[str, float, str]] = [
        ("numpy, dense, no results", floor, ""),
        ("dict loop, no results", dict_ns(hop, events), ""),
    ]
    for emit, emit_policy in (("speculative", EmitPolicy()), ("watermark", EmitPolicy(by_end=True))):
        found, spent, rows = operator_ns(hop, events, emit_policy)
        note = f"{rows / len(events.le):.2f} rows out per event"
        lines.append((f"operator, {emit}", spent, note))
        lines.append((f"grouped, {emit}", found + spent, f"groups {found:.1f}"))
        lines.append((f"session, {emit}", session_ns(hop, events, emit), ""))
    print(f"\n{name}: ns/event, and times the floor")
    for line, ns, note in lines:
        text = f"  {line:<34}{ns:>10.1f}{ns / floor:>10.1f}x  {note}"
        study.row(f"{name}: {line}", text, {"ns": ns, "floors": ns / floor})


def main() -> None:
    study = Study(__doc__, HOPS)
    events = Events.random()
    print(f"count + sum, {KEYS} keys, {EVENTS} point events in pushes of {PUSH}")
    for name in study.parts:
        report(study, name, HOPS[name], events)


if __name__ == "__main__":
    main()
