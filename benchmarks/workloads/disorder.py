"""Count and sum per key over tumbling windows; a tenth of the bids comes up to 30 s late, in pushes of 16k rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.data import Rows, bids
from benchmarks.peers import bytewax, duckdb, polars, python, streamdsl
from benchmarks.workload import Workload

SIZE = 10_000
LATE = 30_000
COLUMNS = ("le", "key", "n", "total")


def query(bids: Any) -> Any:
    import streamdsl as sd

    return bids.group_by("key").tumbling_window(SIZE).aggregate(n=sd.count(), total=sd.sum(lambda e: e.price))


SQL = f"SELECT le // {SIZE} * {SIZE} AS le, key, count(*) AS n, sum(price)::BIGINT AS total FROM bids GROUP BY ALL"


def lazy(bids: Any) -> Any:
    import polars as pl

    return bids.group_by(pl.col("le") // SIZE * SIZE, "key").agg(n=pl.len(), total=pl.sum("price"))


def loop(rows: Rows) -> Iterator[tuple[int, ...]]:
    cells: dict[tuple[int, int], list[int]] = {}
    for le, key, price in rows:
        cell = cells.setdefault((le // SIZE * SIZE, key), [0, 0])
        cell[0] += 1
        cell[1] += price
    return ((*place, *cell) for place, cell in cells.items())


WORKLOADS = [
    Workload(
        name="disorder",
        title="tumbling count and sum, 1,000 keys, a tenth up to 30 s late, pushes of 16,384 rows",
        events=1_000_000,
        data=lambda n: {"bids": bids(n, keys=1_000, late=0.1, lateness=LATE)},
        columns=COLUMNS,
        reference=python.reference(loop, COLUMNS),
        ways={
            "streamdsl final": streamdsl.pushes(query, "final", LATE),
            "streamdsl watermark": streamdsl.pushes(query, "watermark", LATE),
            "streamdsl speculative": streamdsl.pushes(query, "speculative", LATE),
            "streamdsl final, columns": streamdsl.feeds(query, "final", LATE),
            "streamdsl watermark, columns": streamdsl.feeds(query, "watermark", LATE),
            "streamdsl speculative, columns": streamdsl.feeds(query, "speculative", LATE),
            "streamdsl": streamdsl.columns(query),
            "duckdb": duckdb.sql(SQL),
            **polars.frames(lazy),
            "dict loop": python.loop(lambda rows: list(loop(rows)), against="streamdsl final"),
            "bytewax": bytewax.fold(
                lambda row: (str(row[1]), row[2]),
                lambda: (0, 0),
                lambda state, price: (state[0] + 1, state[1] + price),
                lambda key, le, state: (le, int(key), *state),
                SIZE,
                against="streamdsl final",
            ),
        },
        notes=(
            "sessions give physical events, corrections included: Python objects, or Arrow tables where it says columns",
            "batch engines, the loop and streamdsl's run see all events before they answer; Bytewax waits 60 s",
        ),
    )
]
