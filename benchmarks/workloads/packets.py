"""Packets per source and destination in tumbling windows of half a million packets (paper 004, Q4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.answer import Answer
from benchmarks.data import Columns, Rows, packets
from benchmarks.peers import bytewax, duckdb, pathway, polars, python, streamdsl
from benchmarks.workload import Workload

SIZE = 1_000
COLUMNS = ("le", "src", "dst", "n")


def query(packets: Any) -> Any:
    import streamdsl as sd

    return packets.group_by(["src", "dst"]).tumbling_window(SIZE).aggregate(n=sd.count())


def query_of_tuples(packets: Any) -> Any:
    return query(packets.select(src=lambda e: e._0, dst=lambda e: e._1))


SQL = f"SELECT le // {SIZE} * {SIZE} AS le, src, dst, count(*) AS n FROM packets GROUP BY ALL"


def lazy(packets: Any) -> Any:
    import polars as pl

    return packets.group_by(pl.col("le") // SIZE * SIZE, "src", "dst").agg(n=pl.len())


def table(packets: Any) -> Any:
    import pathway as pw

    windows = packets.with_columns(le=packets.le // SIZE * SIZE)
    return windows.groupby(windows.le, windows.src, windows.dst).reduce(
        windows.le, windows.src, windows.dst, n=pw.reducers.count()
    )


def loop(rows: Rows) -> Iterator[tuple[int, ...]]:
    counts = Counter((le // SIZE * SIZE, src, dst) for le, src, dst in rows)
    return ((*cell, n) for cell, n in counts.items())


def floor(packets: Columns) -> Answer:
    cell = (packets["le"] // SIZE << 32) | (packets["src"] << 9) | packets["dst"]
    cells, n = _counted(cell)
    return {"le": (cells >> 32) * SIZE, "src": cells >> 9 & (1 << 23) - 1, "dst": cells & 511, "n": n}


def _counted(cell: Any) -> Any:
    ordered = np.sort(cell)
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return ordered.take(first), np.diff(first, append=len(ordered))


def _pair(key: str) -> list[int]:
    return [int(part) for part in key.split()]


def workload(thousands: int) -> Workload:
    """Return the workload of so many groups."""
    return Workload(
        name=f"packets{thousands}k",
        title=f"tumbling count per source and destination, {thousands},000 groups",
        events=1_000_000,
        data=lambda n: {"packets": packets(n, thousands * 1_000)},
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
                lambda row: (f"{row[1]} {row[2]}", 1),
                lambda: 0,
                lambda state, one: state + one,
                lambda key, le, state: (le, *_pair(key), state),
                SIZE,
                at_most=50_000,
            ),
            "pathway": pathway.tables(table),
        },
        notes=("the floor sorts numbers that both parts of the key fit in",),
    )


WORKLOADS = [workload(thousands) for thousands in (65, 260, 520)]
