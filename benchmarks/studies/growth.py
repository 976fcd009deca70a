"""How the cost of an event grows with the work: with events, keys, windows per event, disorder, and lifetimes.

Count and sum per key, in two ways: a run from an Arrow table to one, and a session that is pushed 16k rows at a time and returns
its final results as events. A point is the least CPU time per event of three runs; beside it stand the rows of result per event.
They are drawn.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import streamdsl as sd
from benchmarks.command import Study
from benchmarks.data import Columns, bids

EVENTS = 2**19
PUSH = 16_384
KEYS = 1_000
SIZE = 10_000
LATENESS = 30_000


@dataclass(frozen=True)
class Case:
    """Bids, and windows over them."""

    columns: Columns
    hop: int = SIZE
    slack: int = 0

    def measure(self) -> Measured:
        """Return what the case costs."""
        import pyarrow as pa

        table, each = pa.table(dict(self.columns)), 1e9 / len(self.columns["le"])
        run, push = ([_timed(way, self, table) for _ in range(3)] for way in (_run, _push))
        return Measured(min(run)[0] * each, min(push)[0] * each, run[0][1] / len(table))

    def query(self, progress: sd.Progress | None = None) -> sd.Stream[Any]:
        """Return the query."""
        windows = sd.source("bids", progress=progress).group_by("key").hopping_window(SIZE, self.hop)
        return windows.aggregate(n=sd.count(), total=sd.sum(lambda e: e.price))


class Measured(NamedTuple):
    """The nanoseconds per event of a run and of a session, and the rows of the result per event."""

    run: float
    push: float
    rows: float


def _timed(way: Callable[[Case, Any], int], case: Case, table: Any) -> tuple[float, int]:
    gc.collect()
    start = time.process_time()
    rows = way(case, table)
    return time.process_time() - start, rows


def _run(case: Case, table: Any) -> int:
    return len(case.query().run({"bids": table}).to_arrow())


def _push(case: Case, table: Any) -> int:
    session = case.query(sd.Progress.slack(case.slack)).open(emit="final")
    rows = sum(len(session.push(table.slice(first, PUSH))) for first in range(0, len(table), PUSH))
    return rows + len(session.close())


@dataclass(frozen=True)
class Axis:
    """What grows, the sizes to measure, and the case of each."""

    label: str
    sizes: Sequence[float]
    case: Callable[[Any], Case]

    def measure(self) -> list[Measured]:
        """Return the costs at each size."""
        return [self.case(size).measure() for size in self.sizes]


def lasting(windows: float) -> Columns:
    """Return bids that live for so many windows."""
    columns = bids(EVENTS, KEYS)
    return {**columns, "re": columns["le"] + max(1, int(windows * SIZE))}


AXES = [
    Axis("events", [2**n for n in range(14, 23)], lambda n: Case(bids(n, KEYS))),
    Axis("keys", [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000], lambda keys: Case(bids(EVENTS, keys))),
    Axis("windows per event (size / hop)", [1, 2, 5, 10, 20, 50, 100], lambda n: Case(bids(EVENTS, 100), hop=SIZE // n)),
    Axis(
        "share of late events, %",
        [0, 1, 5, 10, 20, 50],
        lambda late: Case(bids(EVENTS, KEYS, late=late / 100), slack=LATENESS),
    ),
    Axis("lifetime in windows", [0, 1, 10, 100, 1_000], lambda windows: Case(lasting(windows))),
]


COLUMNS: Final = 3
"""How many plots stand side by side: more cannot be read on a page."""


def draw(study: Study, axes: Sequence[Axis]) -> None:
    """Measure each axis, print the figures, and draw them."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    pyplot.rcParams["svg.hashsalt"] = "streamdsl"
    rows = -(-len(axes) // COLUMNS)
    figure, grid = pyplot.subplots(rows, COLUMNS, figsize=(4 * COLUMNS, 3.2 * rows), constrained_layout=True)
    places = grid.flatten()
    for place in places[len(axes) :]:
        place.remove()
    for axis, place in zip(axes, places, strict=False):
        found = axis.measure()
        print(axis.label)
        for size, each in zip(axis.sizes, found, strict=True):
            study.row(f"{axis.label}: {size:g}", f"  {size:g}: {each}", each._asdict())
        place.plot([each.run for each in found], marker="o", color="#2a6f97", label="run, to columns")
        place.plot([each.push for each in found], marker="s", color="#e07a1f", label="session, to events")
        for at, each in enumerate(found):
            place.annotate(f"{each.rows:.2g}", (at, each.push), textcoords="offset points", xytext=(0, 7), ha="center", size=7)
        place.set_xlabel(axis.label)
        place.set_yscale("log")
        place.set_ylim(10, 20_000)
        place.set_xticks(range(len(found)), [f"{size:,g}" if size < 10_000 else f"{size:.0e}" for size in axis.sizes], size=7)
        place.grid(alpha=0.3)
        place.spines[["top", "right"]].set_visible(False)
    places[0].set_ylabel("ns per event")
    places[0].legend(frameon=False)
    figure.savefig(study.to, metadata={"Date": None})


if __name__ == "__main__":
    study = Study(__doc__, [axis.label for axis in AXES], to=Path("docs/growth.svg"))
    draw(study, [axis for axis in AXES if axis.label in study.parts])
