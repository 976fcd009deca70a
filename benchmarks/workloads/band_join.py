"""Pair the rows of two streams that have the same key and begin within half a second of each other."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.answer import Answer
from benchmarks.data import Columns, Rows, pair_of_streams
from benchmarks.peers import duckdb, pathway, polars, python, streamdsl
from benchmarks.workload import Workload

BAND = 500
COLUMNS = ("ask", "offer")


def query(asks: Any, offers: Any) -> Any:
    return asks.band_join(offers, on="key", before=BAND, after=BAND, select=pair)


def pair(a: Any, o: Any) -> Any:
    return {"ask": a.number, "offer": o.number}


def query_of_tuples(asks: Any, offers: Any) -> Any:
    return query(*(side.select(key=lambda e: e._0, number=lambda e: e._1) for side in (asks, offers)))


SQL = f"""
    SELECT asks.number AS ask, offers.number AS offer FROM asks JOIN offers
    ON asks.key = offers.key AND offers.le BETWEEN asks.le - {BAND} AND asks.le + {BAND}
"""


def lazy(asks: Any, offers: Any) -> Any:
    import polars as pl

    near = (pl.col("le") - pl.col("le_right")).abs() <= BAND
    return asks.join(offers, on="key").filter(near).select(ask="number", offer="number_right")


def table(asks: Any, offers: Any) -> Any:
    import pathway as pw

    band = pw.temporal.interval(-BAND, BAND)
    pairs = asks.interval_join_inner(offers, asks.le, offers.le, band, asks.key == offers.key)
    return pairs.select(ask=asks.number, offer=offers.number)


def loop(asks: Rows, offers: Rows) -> Iterator[tuple[int, int]]:
    times, ids = defaultdict(list), defaultdict(list)
    for le, key, number in offers:
        times[key].append(le)
        ids[key].append(number)
    for le, key, number in asks:
        if key in times:
            start, stop = bisect_left(times[key], le - BAND), bisect_right(times[key], le + BAND)
            for other in ids[key][start:stop]:
                yield number, other


def floor(asks: Columns, offers: Columns) -> Answer:
    order = np.argsort(offers["key"] << 40 | offers["le"])
    places = (offers["key"] << 40 | offers["le"]).take(order)
    probes = np.argsort(asks["key"] << 40 | asks["le"])
    wanted = (asks["key"] << 40 | asks["le"]).take(probes) + BAND
    start = np.searchsorted(places, np.maximum(wanted - 2 * BAND, wanted >> 40 << 40))
    count = np.searchsorted(places, wanted, side="right") - start
    row = np.repeat(np.arange(len(probes)), count)
    within = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    found = order.take(start.take(row) + within)
    return {"ask": asks["number"].take(probes.take(row)), "offer": offers["number"].take(found)}


WORKLOADS = [
    Workload(
        name="band_join",
        title="band join of two streams, one key in common, half a second either way",
        events=1_000_000,
        data=pair_of_streams,
        columns=COLUMNS,
        reference=python.reference(loop, COLUMNS),
        ways={
            "streamdsl": streamdsl.columns(query),
            "duckdb": duckdb.sql(SQL),
            **polars.frames(lazy),
            "numpy floor": python.floor(floor),
            "streamdsl tuples": streamdsl.tuples(query_of_tuples),
            "dict loop": python.loop(lambda asks, offers: list(loop(asks, offers))),
            "pathway": pathway.tables(table),
        },
        notes=(
            "Bytewax has no such join",
            "Polars joins on the key first and has the band as a filter",
        ),
    )
]
