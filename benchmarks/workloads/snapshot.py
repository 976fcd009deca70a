"""How many interval events live, for each period in which none begins or ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.answer import Answer
from benchmarks.data import Columns, Rows, intervals
from benchmarks.peers import duckdb, polars, python, streamdsl
from benchmarks.workload import Workload

COLUMNS = ("le", "re", "n")


def query(events: Any) -> Any:
    import streamdsl as sd

    return events.snapshot_window().aggregate(n=sd.count())


SQL = """
    WITH changes AS (SELECT le AS t, 1 AS d FROM events UNION ALL SELECT re, -1 FROM events),
         instants AS (SELECT t, sum(d) AS d FROM changes GROUP BY t),
         periods AS (SELECT t AS le, lead(t) OVER (ORDER BY t) AS re, (sum(d) OVER (ORDER BY t))::BIGINT AS n FROM instants)
    SELECT le, re, n FROM periods WHERE n > 0
"""


def lazy(events: Any) -> Any:
    import polars as pl

    changes = pl.concat([events.select(le="le", d=1), events.select(le="re", d=-1)])
    instants = changes.group_by("le").agg(pl.sum("d")).sort("le")
    periods = instants.select(le="le", re=pl.col("le").shift(-1), n=pl.cum_sum("d"))
    return periods.filter(pl.col("n") > 0)


def loop(rows: Rows) -> Iterator[tuple[int, int, int]]:
    changes: Counter[int] = Counter()
    for le, re in rows:
        changes[le] += 1
        changes[re] -= 1
    n = 0
    for le, re in pairwise(sorted(changes)):
        n += changes[le]
        if n:
            yield le, re, n


def floor(events: Columns) -> Answer:
    times = np.concatenate([events["le"], events["re"]])
    order = np.argsort(times)
    times = times.take(order)
    n = np.cumsum(np.where(order < len(events["le"]), 1, -1))
    last = np.flatnonzero(np.diff(times))
    last = last.take(np.flatnonzero(n.take(last)))
    return {"le": times.take(last), "re": times.take(last + 1), "n": n.take(last)}


WORKLOADS = [
    Workload(
        name="snapshot",
        title="snapshot count of interval events",
        events=500_000,
        data=lambda n: {"events": intervals(n)},
        columns=COLUMNS,
        reference=python.reference(loop, COLUMNS),
        ways={
            "streamdsl": streamdsl.columns(query),
            "duckdb": duckdb.sql(SQL),
            **polars.frames(lazy),
            "numpy floor": python.floor(floor),
            "dict loop": python.loop(lambda rows: list(loop(rows)), against="streamdsl"),
        },
        notes=("Bytewax and Pathway have no such window; the loop reads tuples, streamdsl columns",),
    )
]
