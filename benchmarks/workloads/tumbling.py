"""Filter, project, and count and average per key over tumbling windows of 10 s; ten thousand keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.answer import Answer
from benchmarks.data import KEYS, Columns, Rows, bids
from benchmarks.peers import bytewax, duckdb, pathway, polars, python, streamdsl
from benchmarks.workload import Workload

SIZE = 10_000
RATE = 0.908
LEAST = 1_000
COLUMNS = ("le", "key", "n", "mean")


def query(bids: Any) -> Any:
    import streamdsl as sd

    dear = bids.where(lambda e: e.price > LEAST).select(key=lambda e: e.key, euros=lambda e: e.price * RATE)
    return dear.group_by("key").tumbling_window(SIZE).aggregate(n=sd.count(), mean=sd.avg(lambda e: e.euros))


def query_of_tuples(bids: Any) -> Any:
    return query(bids.select(key=lambda e: e._0, price=lambda e: e._1))


SQL = f"""
    SELECT le // {SIZE} * {SIZE} AS le, key, count(*) AS n, avg(price * {RATE}) AS mean
    FROM bids WHERE price > {LEAST} GROUP BY ALL
"""


def lazy(bids: Any) -> Any:
    import polars as pl

    dear = bids.filter(pl.col("price") > LEAST)
    euros = dear.select(le=pl.col("le") // SIZE * SIZE, key="key", euros=pl.col("price") * RATE)
    return euros.group_by("le", "key").agg(n=pl.len(), mean=pl.mean("euros"))


def table(bids: Any) -> Any:
    import pathway as pw

    dear = bids.filter(bids.price > LEAST)
    euros = dear.select(le=dear.le // SIZE * SIZE, key=dear.key, euros=dear.price * RATE)
    grouped = euros.groupby(euros.le, euros.key)
    return grouped.reduce(euros.le, euros.key, n=pw.reducers.count(), mean=pw.reducers.avg(euros.euros))


def loop(rows: Rows) -> Iterator[tuple[Any, ...]]:
    cells: dict[tuple[int, int], list[Any]] = {}
    for le, key, price in rows:
        if price > LEAST:
            cell = cells.get((le // SIZE, key))
            if cell is None:
                cells[le // SIZE, key] = [1, price * RATE]
            else:
                cell[0] += 1
                cell[1] += price * RATE
    return ((window * SIZE, key, n, total / n) for (window, key), (n, total) in cells.items())


def floor(bids: Columns) -> Answer:
    dear = np.flatnonzero(bids["price"] > LEAST)
    cell = bids["le"].take(dear) // SIZE * KEYS + bids["key"].take(dear)
    counts = np.bincount(cell)
    totals = np.bincount(cell, weights=bids["price"].take(dear) * RATE)
    cells = np.flatnonzero(counts)
    n = counts.take(cells)
    return {"le": cells // KEYS * SIZE, "key": cells % KEYS, "n": n, "mean": totals.take(cells) / n}


def rekey(row: tuple[int, ...]) -> tuple[str, float] | None:
    return (str(row[1]), row[2] * RATE) if row[2] > LEAST else None


WORKLOADS = [
    Workload(
        name="tumbling",
        title="filter, project, tumbling count and average, 10,000 keys",
        events=1_000_000,
        data=lambda n: {"bids": bids(n)},
        columns=COLUMNS,
        reference=python.reference(loop, COLUMNS),
        ways={
            "streamdsl": streamdsl.columns(query),
            "duckdb": duckdb.sql(SQL),
            **polars.frames(lazy),
            "numpy floor": python.floor(floor),
            "streamdsl tuples": streamdsl.tuples(query_of_tuples),
            "dict loop": python.loop(lambda rows: list(loop(rows))),
            "bytewax": bytewax.fold(
                rekey,
                lambda: (0, 0.0),
                lambda state, euros: (state[0] + 1, state[1] + euros),
                lambda key, le, state: (le, int(key), state[0], state[1] / state[0]),
                SIZE,
            ),
            "pathway": pathway.tables(table),
        },
        notes=("the floor knows that keys are small integers",),
    )
]
