"""Nexmark's queries as sessions that are fed columns, each way to emit, in loops of the dict loop that runs beside them.

A session gets what has happened in a stretch of time, each stream's part as an Arrow table and then its CTI, and what it sends is
read as Arrow, what the end of all streams makes final too. Each query is first compared with its definition, on fewer events, in
each way to emit. The definition is timed as well: a loop of Python that has all events at once, and emits and corrects nothing.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import streamdsl as sd
from benchmarks.command import Study
from benchmarks.nexmark import QUERIES, Nexmark, defined, generate
from benchmarks.studies.matrix import EVENTS as LOOP_EVENTS
from benchmarks.studies.matrix import Loop
from streamdsl.emit import EMIT_MODES, EmitMode
from streamdsl.temporal import CHT

EVENTS: Final = 200_000
PUSH: Final = 16_384
STEP: Final = 10
"""The time between two events."""


class Fed:
    """A query, and what its sessions are given."""

    def __init__(self, name: str, data: Nexmark, events: int, push: int) -> None:
        self.stream = QUERIES[name][0]()
        tables = data.tables()
        self.feeds: list[tuple[str, Any]] = []
        for start in range(0, events, push):
            stop = (start + push) * STEP
            for source in self.stream.open().sources:
                self.feeds += [(source, _between(tables[source], start * STEP, stop)), (source, [sd.Cti(stop)])]

    def run(self, emit: EmitMode) -> Iterator[Any]:
        """Run a session, and yield what it sends."""
        session = self.stream.open(emit=emit)
        for source, given in self.feeds:
            yield session.feed(given, source)
        for source in self.stream.open().sources:
            yield session.feed([sd.Cti(sd.INFINITY)], source)
        yield session.close()

    def seconds(self, emit: EmitMode) -> float:
        """Return what that takes, with all that is sent as Arrow."""
        gc.collect()
        start = time.process_time()
        for sent in self.run(emit):
            if not isinstance(sent, list):
                sent.to_arrow()
        return time.process_time() - start

    def history(self, emit: EmitMode) -> CHT[Any]:
        """Return what is sent, payloads as tuples."""
        events = [event for sent in self.run(emit) for event in (sent if isinstance(sent, list) else sent.events())]
        return CHT.from_rows([(row.le, row.re, tuple(row.payload.values())) for row in CHT.from_events(events)])


def _between(table: Any, start: int, stop: int) -> Any:
    import pyarrow.compute as pc

    return table.filter(pc.and_(pc.greater_equal(table["le"], start), pc.less(table["le"], stop)))


def main() -> None:
    """Print for each query and way to emit what an event costs."""
    asked = Study(__doc__, QUERIES, events=EVENTS, push=PUSH)
    small, data, loop = generate(2_000), generate(asked.events), Loop()
    print(f"{'':6}{'':12}{'us/event':>9}{'loops':>8}{'M events/s':>12}")
    for name in asked.parts:
        start = time.process_time()
        deque(QUERIES[name][1](data), maxlen=0)
        micros = (time.process_time() - start) / asked.events * 1e6
        asked.row(f"{name}, definition", f"{name:6}{'definition':12}{micros:9.2f}{'':8}{1 / micros:12.2f}", {"micros": micros})
        checked, given = Fed(name, small, 2_000, 300), Fed(name, data, asked.events, asked.push)
        for emit in EMIT_MODES:
            sd.testing.assert_cht_equal(checked.history(emit), defined(name, small))
            spent, loops = [], []
            for _ in range(2):
                loops += [loop.seconds() for _ in range(3)]
                spent.append(given.seconds(emit))
            micros = min(spent) / asked.events * 1e6
            beside = micros / (min(loops) / LOOP_EVENTS * 1e6)
            text = f"{name:6}{emit:12}{micros:9.2f}{beside:8.1f}{1 / micros:12.2f}"
            asked.row(f"{name}, {emit}", text, {"micros": micros, "loops": beside})


if __name__ == "__main__":
    main()
