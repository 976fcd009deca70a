"""What a push of one event, or of a few, costs by query, in loops of the dict loop that runs beside it.

The rows, the keys, the progress and the loop are those of the matrix; rows come as events whose payloads are dicts. Each query
is first compared with the reference, on fewer rows.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any, Final

import streamdsl as sd
from benchmarks.command import Study
from benchmarks.studies.matrix import AGGREGATES, OTHERS, WINDOWS, Loop, Query, intervals
from benchmarks.studies.matrix import EVENTS as MATRIX_EVENTS
from streamdsl.emit import EmitMode
from streamdsl.plan.node import Source
from streamdsl.temporal import CHT

EVENTS: Final = 1_500
KEYS: Final = 100


def _windowed(window: str, aggregate: str) -> Query:
    made: Callable[[Any], Any] = WINDOWS[window]
    return lambda s, t: made(s.group_by("k")).aggregate(a=AGGREGATES[aggregate])


QUERIES: Final[dict[str, Query]] = {
    f"{window} {aggregate}": _windowed(window, aggregate)
    for window in ("tumbling", "snapshot", "session", "count")
    for aggregate in ("count", "max")
} | {name: OTHERS[name] for name in ("join", "asof_join", "distinct")}


class Pushes:
    """A query, and the pushes that its sessions get."""

    def __init__(self, query: Query, events: int, size: int) -> None:
        progress = sd.Progress.slack(50)
        self.stream = query(sd.source("s", progress=progress), sd.source("t", progress=progress))
        names = sorted({node.source for node in self.stream.plan().walk() if isinstance(node, Source)})
        columns = intervals(events, KEYS if events == EVENTS else 4)
        le, re, k, v = (columns[name].tolist() for name in ("le", "re", "k", "v"))
        given = [sd.Insert(id, a, b, {"k": c, "v": d}) for id, (a, b, c, d) in enumerate(zip(le, re, k, v, strict=True))]
        self.rows = {name: given[at :: len(names)] for at, name in enumerate(names)}
        starts = range(0, events // len(names), size)
        self.pushes = [(name, self.rows[name][start : start + size]) for start in starts for name in names]

    def seconds(self, emit: EmitMode) -> float:
        """Return what all pushes take."""
        session = self.stream.open(emit=emit)
        gc.collect()
        start = time.process_time()
        for name, rows in self.pushes:
            session.push(rows, name)
        return time.process_time() - start

    def is_right(self, emit: EmitMode) -> bool:
        """Say whether a session and the reference answer alike."""
        session = self.stream.open(emit=emit)
        sent = [event for name, rows in self.pushes for event in session.push(rows, name)]
        expected = self.stream.run(self.rows, engine="reference").cht()
        return bool(CHT.from_events([*sent, *session.close()]) == expected)


def main() -> None:
    """Print the table."""
    asked = Study(__doc__, QUERIES, size=1)
    loop = Loop()
    print(f"pushes of {asked.size}: us a push, and loops", flush=True)
    for name in asked.parts:
        for emit in ("speculative", "final"):
            if not Pushes(QUERIES[name], 120, asked.size).is_right(emit):
                raise SystemExit(f"{name}, {emit}: a session and the reference differ")
            given = Pushes(QUERIES[name], EVENTS, asked.size)
            loops = min(loop.seconds() for _ in range(3)) / MATRIX_EVENTS
            best = min(given.seconds(emit) for _ in range(2)) / len(given.pushes)
            text = f"  {name:<18}{emit:<14}{best * 1e6:>9.1f}{best / loops:>9.0f}"
            asked.row(f"{name}, {emit}", text, {"micros": best * 1e6, "loops": best / loops})


if __name__ == "__main__":
    main()
