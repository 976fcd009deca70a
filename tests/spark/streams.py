"""Queries that are streamed, and the files and frames that they are streamed from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import streamdsl as sd
from streamdsl.testing import arrival_orders
from streamdsl.udm import UDSO
from tests.laws.modules import Above, Alone
from tests.spark.helpers import stream
from tests.spark.test_incremental import Copies, Odd, Total
from udm_examples.time_weighted_average import IncrementalTimeWeightedAverage

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
FIELDS = "k string, v long, f double, m long"
PHYSICAL = f"kind string, id string, le long, re long, re_new long, {FIELDS}"


class Spread(sd.UDA[int, int]):
    def compute_result(self, payloads: Sequence[int]) -> int:
        return max(payloads) - min(payloads)


class Numbered(UDSO[Any, int, int]):
    def create_state(self) -> int:
        return 0

    def process(self, state: int, payload: Any, le: int) -> tuple[int, list[int]]:
        return state + 1, [state]


class Lived(sd.TimeSensitiveUDA[int, int]):
    def compute_result(self, events: Sequence[sd.IntervalEvent[int]], window: sd.WindowDescriptor) -> int:
        return sum(event.end_time - event.start_time for event in events)


class Ends(sd.UDO[Any, int]):
    def compute_result(self, payloads: Sequence[Any]) -> list[int]:
        values = [payload["v"] for payload in payloads]
        return [min(values), max(values)]


def NAMED(event: Any, table: Any) -> Any:
    return {"name": table.name, "v": event.v}


def by_key(name: str = "s") -> Any:
    return stream(name).where(lambda e: e.v > -3).group_by("k")


def by_value() -> sd.Stream[Any]:
    return stream().where(lambda e: e.v > 0)


def SIDES(a: Any, b: Any) -> Any:
    return {"k": a.k, "v": a.v, "w": b.v}


def union_of(streams: Iterable[Any]) -> Any:
    first, *others = streams
    return first.union(*others)


def windows_of_every_kind() -> list[sd.Stream[Any]]:
    windows = (by_key().snapshot_window(), by_key().session_window(3), by_key().count_window(2))
    return [windowed.aggregate(n=sd.count(), most=sd.max(lambda e: e.v)) for windowed in windows]


NAMES = [{"k": "a", "name": "A"}, {"k": "b", "name": "B"}]
QUERIES: dict[str, sd.Stream[Any]] = {
    "rows": by_value().select(k=lambda e: e.k, w=lambda e: e.v * 2).alter_duration(5),
    "tumbling": by_key().tumbling_window(5).aggregate(n=sd.count(), total=sd.sum(lambda e: e.v)),
    "operators, aggregates and windows of every kind, rows in pieces, a pattern": union_of(
        [
            by_key()
            .hopping_window(8, 4)
            .aggregate(
                spread=Spread().of(lambda e: e.v),
                lived=Lived().of(lambda e: e.v),
                total=Total().of(lambda e: e.v),
                mean=IncrementalTimeWeightedAverage().of(lambda e: e.v),
            )
            .select(k=lambda e: e.k, v=lambda e: str((e.spread, e.lived, e.total, e.mean))),
            *(
                by_key().tumbling_window(6).apply(module, lambda e: e.v).select(k=lambda e: e[0], v=lambda e: e[1])
                for module in (Above(), Alone(), Odd(), Copies())
            ),
            *(windowed.select(k=lambda e: e.k, v=lambda e: 9 * e.n + e.most) for windowed in windows_of_every_kind()),
            stream()
            .select_many(lambda e: [e.k, "z"])
            .select(k=lambda word: word)
            .stitch()
            .select(k=lambda e: e.k, v=lambda e: 0),
            stream().to_edges("k").clip_duration(9).select(k=lambda e: e.k, v=lambda e: e.v),
            by_key()
            .apply(lambda g: g.match(lambda p: p.a.then(p.b).within(4), select=lambda m: m.b.v))
            .select(k=lambda e: e[0], v=lambda e: e[1]),
        ]
    ),
    "joins of every kind": union_of(
        [
            stream().join(stream("t"), on="k", select=SIDES),
            stream().left_join(stream("t"), on="k", select=lambda a, b: {"k": a.k, "v": a.v, "w": a.m}),
            stream().band_join(stream("t"), before=3, after=2, on="k", select=SIDES),
            stream().asof_join(stream("t"), on="k", select=SIDES).select(k=lambda e: e.k, v=lambda e: e.v, w=lambda e: e.w),
            stream().semi_join(stream("t"), on="k").select(k=lambda e: e.k, v=lambda e: e.v, w=lambda e: e.m),
            stream().clip_by(stream("t"), on="k").select(k=lambda e: e.k, v=lambda e: e.v, w=lambda e: e.m),
        ]
    ),
    "groups, then all, then other groups": by_key()
    .hopping_window(8, 4)
    .aggregate(v=sd.count())
    .tumbling_window(8)
    .apply(Ends())
    .select(v=lambda v: v)
    .distinct(),
    "reference data, rows in order, a module that sees times": stream()
    .join(sd.sources.from_table(NAMES), on="k", select=NAMED)
    .group_by("name")
    .apply(lambda g: g.scan(Numbered()).tumbling_window(6).aggregate(lived=Lived().of(lambda n: n)))
    .select(name=lambda e: e[0], lived=lambda e: e[1].lived),
}


def row_of(event: Any) -> dict[str, Any]:
    if isinstance(event, sd.Cti):
        return {"kind": "cti", "le": None if event.time == sd.INFINITY else event.time}
    times = {"le": event.le, "re": None if event.re == sd.INFINITY else event.re}
    if isinstance(event, sd.Insert):
        return {"kind": "insert", "id": str(event.id), **times, **event.payload}
    return {"kind": "retract", "id": str(event.id), **times, "re_new": event.re_new, **event.payload}


def told_in_files(rows: sd.CHT[Any], n: int, folder: Path, seed: int) -> None:
    """Write files of events in a random order that mean these rows, with ids that are used again; it ends with the last CTI."""
    (events,) = arrival_orders(rows, 1, seed)
    files_of([*events, sd.Cti(sd.INFINITY)], n, folder)


def files_of(events: Sequence[Any], n: int, folder: Path) -> None:
    """Write events to files, each of which is a micro-batch."""
    names = [part.split(" ")[0] for part in PHYSICAL.split(", ")]
    types = [
        {"string": pa.string(), "long": pa.int64(), "double": pa.float64()}[part.split(" ")[1]] for part in PHYSICAL.split(", ")
    ]
    size = -(-len(events) // n)
    folder.mkdir(parents=True)
    for part in range(n):
        rows = [row_of(event) for event in events[part * size : (part + 1) * size]]
        columns = [pa.array([row.get(name) for row in rows], kind) for name, kind in zip(names, types, strict=True)]
        pq.write_table(pa.table(dict(zip(names, columns, strict=True))), folder / f"{part}.parquet")
        os.utime(folder / f"{part}.parquet", (10**9 + part, 10**9 + part))  # Spark reads files in the order of their times


def frame_of(spark: Any, folder: Path) -> Any:
    """Return a streaming frame that takes a file for each micro-batch."""
    return spark.readStream.schema(PHYSICAL).option("maxFilesPerTrigger", 1).parquet(str(folder))
