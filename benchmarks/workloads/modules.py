"""User-defined modules: an opaque median over 60 s every second, and an incremental mean per key."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.answer import Answer
from benchmarks.data import Columns, Rows, bids
from benchmarks.peers import bytewax, duckdb, pathway, polars, python, streamdsl
from benchmarks.workload import Workload

SIZE = 60_000
HOP = 1_000
MEDIAN = ("le", "median")
MEAN = ("le", "key", "mean")
TUMBLE = 10_000


def vectorized_median(bids: Any) -> Any:
    import streamdsl as sd

    class Median(sd.UDA[float, float]):
        vectorized = True

        def compute_result(self, payloads: Any) -> float:
            return float(np.median(payloads))

    return bids.hopping_window(SIZE, HOP).aggregate(median=Median().of(lambda e: e.price))


def plain_median(bids: Any) -> Any:
    import streamdsl as sd

    class Median(sd.UDA[float, float]):
        def compute_result(self, payloads: Sequence[float]) -> float:
            return statistics.median(payloads)

    return bids.hopping_window(SIZE, HOP).aggregate(median=Median().of(lambda e: e._1))


MEDIAN_SQL = f"""
    SELECT (le // {HOP} - back) * {HOP} AS le, median(price) AS median
    FROM bids, range({SIZE // HOP}) AS hops(back) GROUP BY ALL
"""


def lazy_median(bids: Any) -> Any:
    import polars as pl

    backs = pl.DataFrame({"back": range(SIZE // HOP)}).lazy()
    windows = bids.join(backs, how="cross").group_by(le=(pl.col("le") // HOP - pl.col("back")) * HOP)
    return windows.agg(median=pl.median("price"))


def table_of_medians(bids: Any) -> Any:
    import pathway as pw

    windows = bids.windowby(bids.le, window=pw.temporal.sliding(hop=HOP, duration=SIZE, origin=-SIZE))
    rows = windows.reduce(le=pw.this._pw_window_start, prices=pw.reducers.tuple(pw.this.price))
    return rows.select(rows.le, median=pw.apply_with_type(lambda prices: float(statistics.median(prices)), float, rows.prices))


def medians(rows: Rows) -> Iterator[tuple[float, ...]]:
    windows: dict[int, list[int]] = {}
    for le, _, price in rows:
        for window in range(le // HOP - SIZE // HOP + 1, le // HOP + 1):
            windows.setdefault(window, []).append(price)
    return ((window * HOP, statistics.median(prices)) for window, prices in windows.items())


def gather(prices: list[int], price: int) -> list[int]:
    prices.append(price)
    return prices


def floor_of_medians(bids: Columns) -> Answer:
    le, price = bids["le"], bids["price"]
    windows = np.arange(int(le[0]) // HOP - SIZE // HOP + 1, int(le[-1]) // HOP + 1) * HOP
    starts, stops = np.searchsorted(le, windows), np.searchsorted(le, windows + SIZE)
    return {"le": windows, "median": np.array([np.median(price[a:b]) for a, b in zip(starts, stops, strict=True)])}


def incremental_mean(bids: Any) -> Any:
    import streamdsl as sd

    class Mean(sd.IncrementalUDA[float, tuple[int, float], float]):
        def create_state(self) -> tuple[int, float]:
            return 0, 0

        def add_event_to_state(self, state: tuple[int, float], payload: float) -> tuple[int, float]:
            return add(state, payload)

        def compute_result(self, state: tuple[int, float]) -> float:
            return state[1] / state[0]

    return bids.group_by("key").tumbling_window(TUMBLE).aggregate(mean=Mean().of(lambda e: e.price))


def incremental_mean_of_tuples(bids: Any) -> Any:
    return incremental_mean(bids.select(key=lambda e: e._0, price=lambda e: e._1))


def add(state: tuple[int, float], price: float) -> tuple[int, float]:
    return state[0] + 1, state[1] + price


def means(rows: Rows) -> Iterator[tuple[float, ...]]:
    cells: dict[tuple[int, int], tuple[int, float]] = {}
    for le, key, price in rows:
        place = (le // TUMBLE * TUMBLE, key)
        cells[place] = add(cells.get(place, (0, 0)), price)
    return ((*place, total / n) for place, (n, total) in cells.items())


WORKLOADS = [
    Workload(
        name="median",
        title="an opaque Python median, 60 s every second, no keys",
        events=100_000,
        data=lambda n: {"bids": bids(n, rate=0.1)},
        columns=MEDIAN,
        reference=python.reference(medians, MEDIAN),
        ways={
            "streamdsl": streamdsl.columns(vectorized_median),
            "duckdb": duckdb.sql(MEDIAN_SQL),
            **polars.frames(lazy_median),
            "numpy floor": python.floor(floor_of_medians),
            "streamdsl tuples": streamdsl.tuples(plain_median),
            "dict loop": python.loop(lambda rows: list(medians(rows))),
            "bytewax": bytewax.fold(
                lambda row: ("", row[2]),
                list,
                gather,
                lambda key, le, state: (le, statistics.median(state)),
                SIZE,
                HOP,
                10_000,
            ),
            "pathway": pathway.tables(table_of_medians, 10_000),
        },
        notes=(
            "streamdsl and the floor call `np.median` on an array; the tuples' ways call `statistics.median` on a list; "
            "DuckDB and Polars have medians of their own",
            "the slower ones are given fewer events",
        ),
    ),
    Workload(
        name="incremental",
        title="an incremental mean in Python, tumbling 10 s, 1,000 keys",
        events=200_000,
        data=lambda n: {"bids": bids(n, keys=1_000)},
        columns=MEAN,
        reference=python.reference(means, MEAN),
        ways={
            "streamdsl": streamdsl.columns(incremental_mean),
            "streamdsl tuples": streamdsl.tuples(incremental_mean_of_tuples),
            "dict loop": python.loop(lambda rows: list(means(rows))),
            "bytewax": bytewax.fold(
                lambda row: (str(row[1]), row[2]),
                lambda: (0, 0),
                add,
                lambda key, le, state: (le, int(key), state[1] / state[0]),
                TUMBLE,
            ),
        },
        notes=("each calls the same function per event, the loop and Bytewax without a method around it",),
    ),
]
