"""Temporal joins beside DuckDB: equal keys and overlapping lifetimes, and bands; read whole, and in pieces.

Two streams of half a million events each, half a match for an event. DuckDB is given the tables whole, and so is streamdsl; in
pieces it is given 16k events of either stream at a time, and lets go of what the CTIs between them have passed, but makes no
events of what it finds. CPU nanoseconds per input event, the best of three runs.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

import streamdsl as sd
from streamdsl.engine.batch import Batch
from streamdsl.engine.lower import lower
from streamdsl.engine.operator import Piece
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Table

SIDE = 500_000
PIECE = 16_384
SPAN = 1_000_000
"""The ticks that the streams last."""


class Case(NamedTuple):
    """A join: how many keys there are, how long an event lives (a band: how far apart two may begin), and DuckDB's way."""

    title: str
    keys: int
    duration: int
    join: Callable[[Any, Any, int], Any]
    sql: str


def overlapping(left: Any, right: Any, duration: int) -> Any:
    return left.join(right, on="k", select=pair)


def near(left: Any, right: Any, duration: int) -> Any:
    return left.band_join(right, on="k", before=duration, after=duration, select=pair)


def near_without_key(left: Any, right: Any, duration: int) -> Any:
    return left.band_join(right, before=duration, after=duration, select=pair)


def pair(a: Any, b: Any) -> Any:
    return {"a": a.v, "b": b.v}


SELECT = "SELECT l.v AS a, r.v AS b FROM l JOIN r ON"
OVERLAP = f"{SELECT} l.k = r.k AND l.le < r.re AND r.le < l.re"
BAND = f"{SELECT} l.k = r.k AND r.le BETWEEN l.le - {{0}} AND l.le + {{0}}"
BAND_WITHOUT_KEY = f"{SELECT} r.le BETWEEN l.le - {{0}} AND l.le + {{0}}"
CASES = (
    Case("equal keys, overlapping, 1k keys", 1_000, SPAN // SIDE * 500, overlapping, OVERLAP),
    Case("equal keys, overlapping, 50k keys", 50_000, SPAN // SIDE * 25_000, overlapping, OVERLAP),
    Case("band, 50k keys", 50_000, SPAN // SIDE * 25_000, near, BAND),
    Case("band without keys", 1, 1, near_without_key, BAND_WITHOUT_KEY),
)


def table(case: Case, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    le = np.arange(SIDE) * (SPAN // SIDE)
    lasts = rng.integers(1, case.duration + 1, SIDE)
    return pa.table({"le": le, "re": le + lasts, "k": rng.integers(0, case.keys, SIDE), "v": np.arange(SIDE)})


def whole(case: Case, left: pa.Table, right: pa.Table) -> int:
    query = case.join(sd.source("l"), sd.source("r"), case.duration)
    return len(query.run({"l": left, "r": right}).to_arrow())


def in_pieces(case: Case, left: pa.Table, right: pa.Table) -> int:
    graph = lower(case.join(sd.source("l"), sd.source("r"), case.duration).plan())
    ctis = dict.fromkeys(graph.sources, 0)
    found = 0
    for start in range(0, SIDE, PIECE):
        ctis = dict.fromkeys(ctis, start * (SPAN // SIDE))
        steps = {name: Piece(piece(side, start), ctis[name]) for name, side in (("l", left), ("r", right))}
        found += len(graph.step(steps, ctis)[0].batch)
    return found


def piece(side: pa.Table, start: int) -> Batch:
    columns = {
        name: column.to_numpy()[start : start + PIECE] for name, column in zip(side.column_names, side.columns, strict=True)
    }
    le = columns["le"]
    payloads = Table(Schema.record(["k", "v"]), {name: columns[name] for name in ("k", "v")}, len(le))
    return Batch(np.arange(start, start + len(le)), le, le, columns["re"], payloads)


def by_duckdb(case: Case, left: pa.Table, right: pa.Table) -> int:
    connection = duckdb.connect()
    connection.execute("SET threads TO 1")
    connection.register("l", left)
    connection.register("r", right)
    return len(connection.execute(case.sql.format(case.duration)).to_arrow_table())


def ns_per_event(way: Callable[..., int], case: Case, left: pa.Table, right: pa.Table) -> tuple[int, float]:
    """Return how many rows a way gives, and its CPU time per input event."""
    gc.collect()
    before = time.process_time_ns()
    found = way(case, left, right)
    return found, (time.process_time_ns() - before) / (2 * SIDE)


def main() -> None:
    ways = {"whole": whole, "in pieces": in_pieces, "DuckDB": by_duckdb}
    print(f"2 x {SIDE:,} events, ns/event\n{'':<36}{'rows':>12}" + "".join(f"{name:>12}" for name in ways))
    for case in CASES:
        left, right = table(case, 1), table(case, 2)
        times = {name: [ns_per_event(way, case, left, right) for _ in range(3)] for name, way in ways.items()}
        rows = {found for runs in times.values() for found, _ in runs}
        assert len(rows) == 1, f"{case.title}: not all ways give as many rows: {rows}"
        best = "".join(f"{min(ns for _, ns in runs):>12.0f}" for runs in times.values())
        print(f"{case.title:<36}{rows.pop():>12,}{best}", flush=True)


if __name__ == "__main__":
    main()
