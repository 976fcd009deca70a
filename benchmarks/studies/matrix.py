"""What an event costs, by window and aggregate, and in the other operators, beside a plain dict loop in the same run.

A session is fed Arrow tables of 5,000 rows (intervals of 1-59 ticks, ten a tick, 20,000 in all, prices of two digits, 200
integer keys, `Progress.slack(50)`), and what it sends is read as Arrow. The unit is a loop over tuples that counts and averages
by key and tumbling window: it runs beside each cell, so that a slow moment of the machine is one for both. Each query is first
compared with the reference, on fewer rows.

    python -m benchmarks.studies.matrix [--emit MODE] [--repeat N] [--check | --record] [ROW ...]

`--check` compares with what `--record` has written to matrix.json, and fails where an event costs 1.5 times as many loops.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

import streamdsl as sd
from benchmarks.data import Columns, rows
from streamdsl import astral
from streamdsl.emit import EMIT_MODES, EmitMode
from streamdsl.plan.node import Source
from streamdsl.temporal import CHT
from streamdsl.udm import UDSO

EVENTS: Final = 20_000
FEED: Final = 5_000
KEYS: Final = 200
PER_TICK: Final = 10
SIZE: Final = 1_000
LIMIT: Final = 1.5
"""How many times as many loops as recorded a cell may take."""
RECORD: Final = Path(__file__).with_suffix(".json")

Stream: TypeAlias = Any
Query: TypeAlias = Callable[[Stream, Stream], Stream]
Record: TypeAlias = dict[str, dict[str, dict[str, float]]]
"""Loops by way to emit, row and column."""


class Spread(sd.UDA[float, float]):
    """The largest value less the smallest."""

    def compute_result(self, payloads: Sequence[float]) -> float:
        return max(payloads) - min(payloads)


class Cents(sd.IncrementalUDA[float, int, int]):
    """The sum in hundredths, whose state is exact."""

    def create_state(self) -> int:
        return 0

    def add_event_to_state(self, state: int, payload: float) -> int:
        return state + round(100 * payload)

    def remove_event_from_state(self, state: int, payload: float) -> int:
        return state - round(100 * payload)

    def compute_result(self, state: int) -> int:
        return state


class MergedCents(Cents):
    """The same, of which states of parts may be merged."""

    def merge_states(self, a: int, b: int) -> int:
        return a + b


class Total(UDSO[Any, int, int]):
    """How many rows there have been."""

    def create_state(self) -> int:
        return 0

    def process(self, state: int, payload: Any, le: int) -> tuple[int, list[int]]:
        return state + 1, [state + 1]


WINDOWS: Final[dict[str, Callable[[Any], Any]]] = {
    "tumbling": lambda s: s.tumbling_window(1_000),
    "hopping": lambda s: s.hopping_window(1_000, 100),
    "snapshot": lambda s: s.snapshot_window(),
    "session": lambda s: s.session_window(40),
    "cut session": lambda s: s.session_window(40, max_duration=200),
    "count": lambda s: s.count_window(20),
    "trailing": lambda s: s.trailing_window(1_000),
    "sequence by time": lambda s: s.windows(astral.range_slide(1_000, 100)),
    "sequence by position": lambda s: s.windows(astral.rows_slide(20, 10)),
}

AGGREGATES: Final[dict[str, Any]] = {
    "count": sd.count(),
    "sum": sd.sum(lambda e: e.v),
    "avg": sd.avg(lambda e: e.v),
    "min": sd.min(lambda e: e.v),
    "max": sd.max(lambda e: e.v),
    "median": sd.median(lambda e: e.v),
    "count_distinct": sd.count_distinct(lambda e: e.v),
    "time_weighted_avg": sd.time_weighted_avg(lambda e: e.v),
    "collect": sd.collect(lambda e: e.v),
    "UDA": Spread().of(lambda e: e.v),
    "incremental UDA": Cents().of(lambda e: e.v),
    "mergeable UDA": MergedCents().of(lambda e: e.v),
}


def _difference(a: Any, b: Any) -> Any:
    return {"k": a.k, "v": a.v - b.v}


OTHERS: Final[dict[str, Query]] = {
    "distinct": lambda s, t: s.distinct(lambda e: e.k),
    "stitch": lambda s, t: s.select(lambda e: e.k).stitch(),
    "clip_by": lambda s, t: s.clip_by(t, on="k"),
    "chop": lambda s, t: s.chop(20),
    "to_edges": lambda s, t: s.to_edges(key="k"),
    "asof_join": lambda s, t: s.asof_join(t, on="k", select=_difference),
    "join": lambda s, t: s.join(t, on="k", select=_difference),
    "left_join": lambda s, t: s.left_join(t, on="k"),
    "full_join": lambda s, t: s.full_join(t, on="k"),
    "anti_join": lambda s, t: s.anti_join(t, on="k"),
    "semi_join": lambda s, t: s.semi_join(t, on="k"),
    "match": lambda s, t: s.match(
        lambda p: p.low.where(lambda e: e.v < 50).then(p.high.where(lambda e: e.v > 90)).within(30),
        by="k",
        select=lambda m: {"low": m.low.v, "high": m.high.v},
    ),
    "scan": lambda s, t: s.group_by("k").apply(lambda g: g.scan(Total)),
}


UNTIMED: Final = ("sequence by time", "sequence by position")
"""Windows that hold rows as points, without their ends."""


def _windowed(window: Callable[[Any], Any], aggregate: Any) -> Query:
    return lambda s, t: window(s.group_by("k")).aggregate(x=aggregate)


def _ranked(window: Callable[[Any], Any]) -> Query:
    return lambda s, t: window(s.group_by("k")).top_k(3, by="v")


MATRIX: Final[dict[str, dict[str, Query]]] = {
    **{
        name: {
            **{c: _windowed(window, agg) for c, agg in AGGREGATES.items() if name not in UNTIMED or c != "time_weighted_avg"},
            "top_k": _ranked(window),
        }
        for name, window in WINDOWS.items()
    },
    "operators": OTHERS,
}


class Cell(NamedTuple):
    """The microseconds that an event costs, and how many events of the loop that is."""

    micros: float
    loops: float


class Input:
    """A query of one source or two, and its tables in the order in which it is fed them: rows go to the sources in turn."""

    def __init__(self, query: Query, events: int = EVENTS, feed: int = FEED, keys: int = KEYS) -> None:
        import pyarrow as pa

        progress = sd.Progress.slack(50)
        self.stream = query(sd.source("s", progress=progress), sd.source("t", progress=progress))
        names = sorted({node.source for node in self.stream.plan().walk() if isinstance(node, Source)})
        columns = intervals(events, keys)
        tables = {name: pa.table({c: v[at :: len(names)] for c, v in columns.items()}) for at, name in enumerate(names)}
        starts = range(0, events // len(names), feed)
        self.feeds = [(name, tables[name].slice(start, feed)) for start in starts for name in names]
        self.tables = tables

    def seconds(self, emit: EmitMode) -> float:
        """Return what it takes to feed all, and to read what is sent."""
        session = self.stream.open(emit=emit)
        gc.collect()
        start = time.process_time()
        for name, table in self.feeds:
            session.feed(table, name).to_arrow()
        return time.process_time() - start

    def is_right(self, emit: EmitMode) -> bool:
        """Say whether a session and the reference answer alike."""
        session = self.stream.open(emit=emit)
        sent = [event for name, table in self.feeds for event in session.push(table, name)]
        expected = self.stream.run(self.tables, engine="reference").cht()
        return bool(CHT.from_events([*sent, *session.close()]) == expected)


def small(query: Query) -> Input:
    """Return an input that the reference can read."""
    return Input(query, events=120, feed=30, keys=4)


def intervals(events: int, keys: int) -> Columns:
    """Return the rows."""
    rng = np.random.default_rng(5)
    le = np.arange(events) // PER_TICK
    prices = np.round(rng.uniform(0, 100, events), 2)
    return {"le": le, "re": le + rng.integers(1, 60, events), "k": rng.integers(0, keys, events), "v": prices}


class Loop:
    """The unit: count and average by key and tumbling window, as one would write it by hand."""

    def __init__(self) -> None:
        self._rows = rows(intervals(EVENTS, KEYS))

    def seconds(self) -> float:
        """Return what it takes."""
        cells: dict[tuple[int, int], list[float]] = {}
        start = time.process_time()
        for le, _, key, price in self._rows:
            cell = cells.get((le // SIZE, key))
            if cell is None:
                cells[le // SIZE, key] = [1, price]
            else:
                cell[0] += 1
                cell[1] += price
        means = [(window * SIZE, key, n, total / n) for (window, key), (n, total) in cells.items()]
        assert means
        return time.process_time() - start


def measure(query: Query, emit: EmitMode, repeat: int, loop: Loop) -> Cell:
    """Return what an event of a query costs: the best of some runs, of which the first is not counted."""
    if not small(query).is_right(emit):
        raise SystemExit("a session and the reference differ")
    given, sessions, loops = Input(query), [], []
    for _ in range(repeat + 1):
        loops += [loop.seconds() for _ in range(3)]
        sessions.append(given.seconds(emit))
    best = min(sessions[1:])
    return Cell(best / EVENTS * 1e6, best / min(loops))


def main(arguments: list[str] | None = None) -> int:
    """Print the tables, and compare them with the record, or write it; return 1 if a cell is worse than recorded."""
    asked = _arguments(arguments)
    loop, record, worse = Loop(), _recorded(), []
    for row in asked.rows or MATRIX:
        print(f"\n{row}, {asked.emit}: us an event, and loops", flush=True)
        known = record.setdefault(asked.emit, {}).setdefault(row, {})
        for column, query in MATRIX[row].items():
            cell, bound = measure(query, asked.emit, asked.repeat, loop), LIMIT * known.get(column, math.inf)
            if asked.check and cell.loops > bound:  # once more, as a moment may have been slow
                cell = min(cell, measure(query, asked.emit, 2 * asked.repeat, loop), key=lambda cell: cell.loops)
            beside = f"   recorded {known[column]:8.1f}{'   WORSE' if cell.loops > bound else ''}" if column in known else ""
            print(f"  {column:<20}{cell.micros:>9.2f}{cell.loops:>9.1f}{beside}", flush=True)
            if cell.loops > bound:
                worse.append(f"{row} {column}")
            if asked.record:
                known[column] = round(cell.loops, 1)
    if asked.record:
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
    if asked.check and worse:
        print(f"\n{LIMIT} times as many loops as recorded, or more: {', '.join(worse)}")
        return 1
    return 0


def _recorded() -> Record:
    found: Record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    return found


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies.matrix", description="what an event costs, in CPU time")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"all, or some of: {', '.join(MATRIX)}")
    parser.add_argument("--emit", choices=EMIT_MODES, default="speculative", help="how results go out (speculative)")
    parser.add_argument("--repeat", type=int, default=3, help="runs, of which the best counts (3)")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--check", action="store_true", help=f"fail if a cell is {LIMIT} times as dear as recorded")
    action.add_argument("--record", action="store_true", help="write the loops of these cells into the record")
    asked = parser.parse_args(arguments)
    for row in asked.rows:
        if row not in MATRIX:
            parser.error(f"there is no row {row!r}; there are: {', '.join(MATRIX)}")
    return asked


if __name__ == "__main__":
    sys.exit(main())
