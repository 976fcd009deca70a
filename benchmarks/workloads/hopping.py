"""Count and sum per key over windows of 60 s that begin every 10 s; ten thousand keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.answer import Answer
from benchmarks.data import KEYS, Columns, Rows, bids
from benchmarks.peers import bytewax, duckdb, pathway, polars, python, streamdsl
from benchmarks.workload import Workload

SIZE = 60_000
HOP = 10_000
EACH = SIZE // HOP
COLUMNS = ("le", "key", "n", "total")


def query(bids: Any) -> Any:
    import streamdsl as sd

    return bids.group_by("key").hopping_window(SIZE, HOP).aggregate(n=sd.count(), total=sd.sum(lambda e: e.price))


def query_of_tuples(bids: Any) -> Any:
    return query(bids.select(key=lambda e: e._0, price=lambda e: e._1))


SQL = f"""
    SELECT (le // {HOP} - back) * {HOP} AS le, key, count(*) AS n, sum(price)::BIGINT AS total
    FROM bids, range({EACH}) AS hops(back) GROUP BY ALL
"""


def lazy(bids: Any) -> Any:
    import polars as pl

    panes = bids.group_by(pane=pl.col("le") // HOP, key="key").agg(n=pl.len(), total=pl.sum("price"))
    windows = panes.with_columns(back=pl.lit(list(range(EACH)))).explode("back")
    by = windows.group_by(le=(pl.col("pane") - pl.col("back")) * HOP, key="key")
    return by.agg(n=pl.sum("n"), total=pl.sum("total"))


def table(bids: Any) -> Any:
    import pathway as pw

    windows = bids.windowby(bids.le, window=pw.temporal.sliding(hop=HOP, duration=SIZE, origin=-SIZE), instance=bids.key)
    return windows.reduce(
        le=pw.this._pw_window_start, key=pw.this._pw_instance, n=pw.reducers.count(), total=pw.reducers.sum(pw.this.price)
    )


def loop(rows: Rows) -> Iterator[tuple[int, ...]]:
    cells: dict[tuple[int, int], list[int]] = {}
    for le, key, price in rows:
        for window in range(le // HOP - EACH + 1, le // HOP + 1):
            cell = cells.get((window, key))
            if cell is None:
                cells[window, key] = [1, price]
            else:
                cell[0] += 1
                cell[1] += price
    return ((window * HOP, key, *cell) for (window, key), cell in cells.items())


def floor(bids: Columns) -> Answer:
    pane = (bids["le"] // HOP + EACH - 1) * KEYS + bids["key"]
    size = (int(pane.max()) // KEYS + 1) * KEYS
    counts = np.bincount(pane, minlength=size).reshape(-1, KEYS)
    totals = np.bincount(pane, weights=bids["price"], minlength=size).reshape(-1, KEYS).astype(np.int64)
    n, total = _trailing(counts), _trailing(totals)
    cells = np.flatnonzero(n)
    return {
        "le": (cells // KEYS - EACH + 1) * HOP,
        "key": cells % KEYS,
        "n": n.ravel().take(cells),
        "total": total.ravel().take(cells),
    }


def _trailing(panes: Any) -> Any:
    """Return the sums of each pane and the next ones, as many as a window has."""
    sums = np.vstack([np.zeros((1, KEYS), np.int64), panes.cumsum(axis=0)])
    ends = np.minimum(np.arange(len(panes)) + EACH, len(panes))
    return sums[ends] - sums[:-1]


WORKLOADS = [
    Workload(
        name="hopping",
        title="count and sum per key, hopping 60 s / 10 s, 10,000 keys",
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
                lambda row: (str(row[1]), row[2]),
                lambda: (0, 0),
                lambda state, price: (state[0] + 1, state[1] + price),
                lambda key, le, state: (le, int(key), *state),
                SIZE,
                HOP,
                50_000,
            ),
            "pathway": pathway.tables(table, 50_000),
        },
        notes=(
            "DuckDB copies each event to its windows, which is how one writes it; Polars' query adds up panes, as the floor does",
        ),
    )
]
