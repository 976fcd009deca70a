"""Temporal joins beside DuckDB: equal keys, numbers and texts, and overlapping lifetimes, and bands; read whole, and in pieces.

Two streams of half a million events each, half a match for an event. DuckDB is given the tables whole, and so is streamdsl; in
pieces it is given 16k events of either stream at a time, and lets go of what the CTIs between them have passed, but makes no
events of what it finds. CPU nanoseconds per input event, the best of some runs in turns; all rows found are compared.
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
from benchmarks.command import Study
from benchmarks.peers.streamdsl import load_kernels
from streamdsl.engine.batch import Batch
from streamdsl.engine.lower import lower
from streamdsl.engine.operator import Piece
from streamdsl.expr.deferred import with_parts
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Table
from streamdsl.io.arrow_columns import ArrowColumns

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
    text: str = ""
    """What stands before the numbers of keys that are texts."""


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
    Case("texts, overlapping, 1k keys", 1_000, SPAN // SIDE * 500, overlapping, OVERLAP, "customer-"),
    Case("texts, overlapping, 50k keys", 50_000, SPAN // SIDE * 25_000, overlapping, OVERLAP, "customer-"),
    Case(
        "long texts, overlapping, 50k keys", 50_000, SPAN // SIDE * 25_000, overlapping, OVERLAP, "https://example.org/items/" * 2
    ),
    Case("band, 50k keys", 50_000, SPAN // SIDE * 25_000, near, BAND),
    Case("texts, band, 50k keys", 50_000, SPAN // SIDE * 25_000, near, BAND, "customer-"),
    Case("band without keys", 1, 1, near_without_key, BAND_WITHOUT_KEY),
)


def table(case: Case, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    le = np.arange(SIDE) * (SPAN // SIDE)
    lasts = rng.integers(1, case.duration + 1, SIDE)
    numbers = pa.array(rng.integers(0, case.keys, SIDE))
    keys = pa.array([f"{case.text}{number:06d}" for number in range(case.keys)]).take(numbers) if case.text else numbers
    return pa.table({"le": le, "re": le + lasts, "k": keys, "v": np.arange(SIDE)})


def whole(case: Case, left: pa.Table, right: pa.Table) -> pa.Table:
    query = case.join(sd.source("l"), sd.source("r"), case.duration)
    return query.run({"l": left, "r": right}).to_arrow()


def in_pieces(case: Case, left: pa.Table, right: pa.Table) -> list[Table]:
    graph = lower(case.join(sd.source("l"), sd.source("r"), case.duration).plan())
    ctis = dict.fromkeys(graph.sources, 0)
    found = []
    for start in range(0, SIDE, PIECE):
        ctis = dict.fromkeys(ctis, start * (SPAN // SIDE))
        steps = {name: Piece(piece(side, start), ctis[name]) for name, side in (("l", left), ("r", right))}
        found.append(graph.step(steps, ctis)[0].batch.table)
    return found


def piece(side: pa.Table, start: int) -> Batch:
    columns = ArrowColumns(side.slice(start, PIECE))
    le = columns.values("le")
    payloads = Table(Schema.record(["k", "v"]), with_parts({name: columns.held(name) for name in ("k", "v")}), len(le))
    return Batch(np.arange(start, start + len(le)), le, le, columns.values("re"), payloads)


def by_duckdb(case: Case, left: pa.Table, right: pa.Table) -> pa.Table:
    connection = duckdb.connect()
    connection.execute("SET threads TO 1")
    connection.register("l", left)
    connection.register("r", right)
    return connection.sql(case.sql.format(case.duration)).to_arrow_table()


def pairs_of(found: Any) -> Any:
    """Return the pairs that a way has found, each as one integer, in order."""
    tables = found if isinstance(found, list) else [found]
    columns = [np.concatenate([_numbers(table, name) for table in tables]) for name in ("a", "b")]
    return np.sort(columns[0] * SIDE + columns[1])


def _numbers(table: Any, name: str) -> Any:
    return table.columns[name] if isinstance(table, Table) else table.column(name).to_numpy()


def ns_per_event(way: Callable[..., Any], case: Case, left: pa.Table, right: pa.Table) -> tuple[Any, float]:
    """Return what a way gives, and its CPU time per input event."""
    gc.collect()
    before = time.process_time_ns()
    found = way(case, left, right)
    return found, (time.process_time_ns() - before) / (2 * SIDE)


def main() -> None:
    study = Study(__doc__, [case.title for case in CASES], rounds=3)
    load_kernels()
    ways: dict[str, Callable[..., Any]] = {"whole": whole, "in pieces": in_pieces, "DuckDB": by_duckdb}
    print(f"2 x {SIDE:,} events, ns/event\n{'':<36}{'rows':>12}" + "".join(f"{name:>12}" for name in ways))
    for case in CASES:
        if case.title not in study.parts:
            continue
        left, right = table(case, 1), table(case, 2)
        expected, best = pairs_of(by_duckdb(case, left, right)), dict.fromkeys(ways, np.inf)
        for round in range(study.rounds):
            for name, way in ways.items():
                found, spent = ns_per_event(way, case, left, right)
                assert round or np.array_equal(pairs_of(found), expected), (
                    f"{case.title}: {name} has found other rows than DuckDB"
                )
                best[name] = min(best[name], spent)
                del found
        text = f"{case.title:<36}{len(expected):>12,}" + "".join(f"{spent:>12.0f}" for spent in best.values())
        study.row(case.title, text, {"rows": len(expected), **best})


if __name__ == "__main__":
    main()
