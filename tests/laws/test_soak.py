"""State over millions of events: what `stats()` counts goes up and down with the CTIs, and no further."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import streamdsl as sd
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Table
from streamdsl.io.binding import Inserts
from streamdsl.temporal import Cti
from tests.laws.incremental import Calls, IncrementalSpans

Query = Callable[["sd.Stream[Any]"], "sd.Stream[Any]"]
PERIODS = 20

SOAKS: dict[str, tuple[int, Query]] = {
    "columnar": (100_000, lambda s: s.group_by("v").tumbling_window(1000).aggregate(n=sd.count(), mean=sd.avg(lambda e: e.v))),
    "buffered": (20_000, lambda s: s.hopping_window(100, 50).aggregate(low=sd.min(lambda e: e.v), mid=sd.median(lambda e: e.v))),
    "buffered, by key": (5_000, lambda s: s.group_by("v").tumbling_window(50).top_k(2, by="v")),
    "incremental": (4_000, lambda s: s.hopping_window(100, 50).aggregate(Calls(), lambda e: e.v)),
    "time-sensitive, unclipped": (1_000, lambda s: s.tumbling_window(50).apply(IncrementalSpans(), lambda e: e.v)),
    "snapshot": (1_000, lambda s: s.snapshot_window().aggregate(Calls(), lambda e: e.v)),
    "count": (1_000, lambda s: s.count_window(5).aggregate(Calls(), lambda e: e.v)),
    "sessions by key": (1_000, lambda s: s.group_by("v").session_window(2, 30).aggregate(Calls(), lambda e: e.v)),
}


def points(first: int, size: int) -> Inserts:
    le = np.arange(first, first + size, dtype=np.int64)
    return Inserts(None, le, le + 3, Table(Schema.record(["v"]), {"v": le % 5}, size))


@pytest.mark.parametrize("name", SOAKS)
def test_what_is_kept_follows_the_ctis(name: str) -> None:
    size, query = SOAKS[name]
    session = query(sd.source("s")).open()
    kept = []
    for period in range(PERIODS):
        session.push(points(period * size, size))
        session.push([Cti((period + 1) * size)])
        kept.append({label: (figures["windows"], figures["events"]) for label, figures in session.stats().items()})
    assert sum(figures["in"] for label, figures in session.stats().items() if "source" in label) >= PERIODS * size
    assert kept[1:] == kept[1:2] * (PERIODS - 1), kept[-1]
