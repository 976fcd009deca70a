"""What window sequences cost and hold: a million rows, one at each tick, in order, 1000 a push with a CTI behind them.

Each window counts its rows in a session that sends final results. Of what it holds the most is taken after a tenth of the rows,
and after all; for each of a hundred keys a tenth of the rows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

import streamdsl as sd
from benchmarks.command import Study
from streamdsl import astral

ROWS: Final = 1_000_000
PUSH: Final = 1_000
KEYS: Final = 100
SEQUENCES: Final[Mapping[str, astral.AnySequence]] = {
    "range_slide(100, 50)": astral.range_slide(100, 50),
    "range_slide(100)": astral.range_slide(100),
    "rows_slide(100, 50)": astral.rows_slide(100, 50),
    "last_n_every(100, 50)": astral.last_n_every(100, 50),
    "five_uplet(0, 99, 50, 50, 50)": astral.five_uplet(0, 99, 50, 50, 50),
    "linear((50, 0), (50, 99), 50)": astral.linear((50, 0), (50, 99), 50),
}


class Measured(NamedTuple):
    """Microseconds per row, how many results, and the most bytes that were held, early and in all."""

    cost: float
    results: int
    early: int
    most: int


def measure(ws: astral.AnySequence, grouped: bool, n: int) -> Measured:
    """Return what a sequence costs and holds."""
    rows: Any = sd.source("rows", unit="tick")
    windows = rows.group_by("k").windows(ws, start=0) if grouped else rows.windows(ws, start=0)
    session = windows.aggregate(n=sd.count()).open("final")
    start, results, early, most = time.process_time(), 0, 0, 0
    for first in range(0, n, PUSH):
        le = np.arange(first, first + PUSH)
        frame = pd.DataFrame({"kind": "insert", "id": le, "le": le, "re": le + 1, "re_new": None, "k": le % KEYS})
        results += len(session.feed(frame)) + len(session.feed([sd.Cti(first + PUSH)]))
        most = max(most, sum(each["state_bytes"] for each in session.stats().values()))
        early = most if first + PUSH <= n // 10 else early
    return Measured((time.process_time() - start) * 1e6 / n, results, early, most)


def main() -> None:
    """Measure every sequence, alone and for each of the keys."""
    study = Study(__doc__, SEQUENCES, rows=ROWS)
    n = study.rows
    print(f"{n} rows; microseconds of CPU per row; results; kB held at most after a tenth of them, and in all")
    for grouped in (False, True):
        for name in study.parts:
            found = measure(SEQUENCES[name], grouped, n // 10 if grouped else n)
            of = f"{name} per key" if grouped else name
            text = f"{of:40} {found.cost:7.1f} {found.results:9} {found.early / 1e3:8.1f} {found.most / 1e3:8.1f}"
            study.row(of, text, found._asdict())


if __name__ == "__main__":
    main()
