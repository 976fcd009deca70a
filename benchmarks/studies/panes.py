"""Runs of several windows over one stream of points, with and without panes (`share_panes`).

Three windows per key, of 5, 15 and 60 minutes, from a frame to a history. What matters is how many rows a pane has per key, the
shortest hop being the pane: with few, panes are as many as rows. CPU nanoseconds per event, the better of two runs each.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import streamdsl as sd
from benchmarks.command import Study

EVENTS = 200_000
FEWER_EVENTS = 20_000
MINUTE = 60
KEYS = 20
ROWS = (1, 3, 10, 30, 100, 300)


class Reading(NamedTuple):
    """What is declared of the payloads: sums of integers add up."""

    k: int
    v: int


Aggregates = Callable[[], Mapping[str, Any]]
Windows = Callable[[Any], list[Any]]

WINDOWS: dict[str, Windows] = {
    "tumbling 5, 60": lambda s: [s.tumbling_window(5 * MINUTE), s.tumbling_window(60 * MINUTE)],
    "hopping 15/5, 60/15": lambda s: [s.hopping_window(15 * MINUTE, 5 * MINUTE), s.hopping_window(60 * MINUTE, 15 * MINUTE)],
    "tumbling 5, 15, 60": lambda s: [s.tumbling_window(size * MINUTE) for size in (5, 15, 60)],
}
AGGREGATES: dict[str, tuple[Aggregates, int]] = {
    "count, sum": (lambda: {"n": sd.count(), "total": sd.sum(lambda e: e.v)}, EVENTS),
    "min, max": (lambda: {"lo": sd.min(lambda e: e.v), "hi": sd.max(lambda e: e.v)}, FEWER_EVENTS),
}


def query(source: Any, windows: Windows, aggregates: Aggregates) -> Any:
    first, *others = (window.aggregate(**aggregates()) for window in windows(source.to_points().group_by("k")))
    return first.union(*others)


def frame(n: int, rows_per_pane: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    span = max(n // (rows_per_pane * KEYS), 12) * 5 * MINUTE
    columns = {"le": np.sort(rng.integers(0, span, n)), "k": rng.integers(0, KEYS, n), "v": rng.integers(0, 1000, n)}
    return pd.DataFrame(columns)


def ns_per_event(made: Any, rules: Any, n: int) -> float:
    """Return the CPU time of a run per event."""
    gc.collect()
    before = time.process_time_ns()
    made.run(engine_options={"rewrite": rules}).cht()
    return (time.process_time_ns() - before) / n


def main() -> None:
    study = Study(__doc__, [f"{kind}, {name}" for kind in AGGREGATES for name in WINDOWS])
    print(f"{KEYS} keys; ns/event as written, with panes, and how many times faster")
    print(f"  {'rows per pane and key':<44}" + "".join(f"{rows:>22}" for rows in ROWS))
    for kind, (aggregates, n) in AGGREGATES.items():
        for name, windows in WINDOWS.items():
            if f"{kind}, {name}" not in study.parts:
                continue
            cells, figures = [], dict[str, float]()
            for rows in ROWS:
                made = query(sd.from_pandas(frame(n, rows), Reading), windows, aggregates)
                times = [(ns_per_event(made, "off", n), ns_per_event(made, ["share_panes"], n)) for _ in range(2)]
                written, shared = (min(each) for each in zip(*times, strict=True))
                cells.append(f"{written:.0f} {shared:.0f} {written / shared:.2f}x")
                figures |= {f"written, {rows}": written, f"shared, {rows}": shared}
            study.row(f"{kind}, {name}", f"  {f'{kind}, {name}':<44}" + "".join(f"{cell:>22}" for cell in cells), figures)


if __name__ == "__main__":
    main()
