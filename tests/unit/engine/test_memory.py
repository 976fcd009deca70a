"""`stats()` says what a session holds in memory: what Python itself counts, within a factor of two, for every operator."""

from __future__ import annotations

import gc
import tracemalloc
from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from sortedcontainers import SortedList

import streamdsl as sd
from streamdsl.engine.query_session import Session
from streamdsl.udm import UDSO

Query = sd.Stream[Any]
S = sd.source("s")
STATE = 2000
"""The values in a large state."""


class Large(sd.IncrementalUDA[int, list[Any], int]):
    """Keeps much for each window."""

    def create_state(self) -> list[Any]:
        return [float(n) for n in range(STATE)]

    def add_event_to_state(self, state: list[Any], payload: int) -> list[Any]:
        return [*state, payload]

    def compute_result(self, state: list[Any]) -> int:
        return len(state)


class LargeScan(UDSO[Any, list[Any], int]):
    """Keeps much for each group."""

    def create_state(self) -> list[Any]:
        return [str(n) for n in range(STATE)]

    def process(self, state: list[Any], payload: Any, le: int) -> tuple[list[Any], list[int]]:
        return state, [le]


QUERIES: dict[str, Callable[[Query], Query]] = {
    "filter": lambda s: s.where(lambda e: e.v >= 0),
    "columns": lambda s: s.group_by("k").tumbling_window(50).aggregate(n=sd.count(), v=sd.sum(lambda e: e.v)),
    "holistic": lambda s: s.group_by("k").hopping_window(40, 20).aggregate(m=sd.max(lambda e: e.v)),
    "states": lambda s: s.group_by(lambda e: e.k % 9).hopping_window(40, 20).aggregate(m=Large().of(lambda e: e.v)),
    "states of snapshots": lambda s: s.where(lambda e: e.v < 300).snapshot_window().aggregate(m=Large().of(lambda e: e.v)),
    "scan": lambda s: s.group_by(lambda e: e.k % 50).apply(lambda g: g.scan(LargeScan)),
    "snapshots": lambda s: s.snapshot_window().aggregate(n=sd.count()),
    "sessions": lambda s: s.group_by("k").session_window(4).aggregate(n=sd.count()),
    "count windows": lambda s: s.count_window(4).aggregate(n=sd.collect(lambda e: e.v)),
    "join": lambda s: s.join(s.shift(1), on="k"),
    "asof": lambda s: s.asof_join(s.shift(1), on="k"),
    "anti": lambda s: s.anti_join(s.shift(3), on="k"),
    "distinct": lambda s: s.distinct(lambda e: e.k),
    "stitch": lambda s: s.stitch(),
    "edges": lambda s: s.to_edges(key="k"),
    "chop": lambda s: s.chop(30),
    "match": lambda s: s.where(lambda e: e.v < 300).match(lambda p: p.a.then(p.b).within(7)),
}


LARGE = {"states": 9, "states of snapshots": 20, "scan": 50}
"""Queries that keep at least so many large states."""


def held(query: Query, emit: Any = "speculative", n: int = 2400) -> tuple[Session[Any], int]:
    """Return a session after some pushes, and the bytes that Python has given it."""
    gc.collect()
    tracemalloc.start()
    try:
        session = query.open(emit=emit)
        before = tracemalloc.get_traced_memory()[0]
        for at in range(0, n, 300):
            session.feed([sd.interval(f"id{i}", i // 6, i // 6 + 20, {"k": i % 700, "v": i}) for i in range(at, at + 300)])
        gc.collect()
        return session, tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", QUERIES)
def test_the_bytes_of_a_session_are_those_that_it_holds(name: str) -> None:
    session, real = held(QUERIES[name](S))
    told = sum(figures["state_bytes"] for figures in session.stats().values())
    assert real / 2 < told < 2 * real
    if name in LARGE:
        others = {label: figures for label, figures in session.stats().items() if not label.startswith("source:")}
        most = max(others.items(), key=lambda item: item[1]["state_bytes"])
        assert most[0].startswith(("window_aggregate", "scan"))
        assert most[1]["state_bytes"] > 24 * STATE * LARGE[name]


@dataclass
class Items:
    kept: list[int] = field(default_factory=list)

    def append(self, item: int) -> None:
        self.kept.append(item)


KEEPERS: dict[str, tuple[Callable[[], Any], Callable[[Any, int], object]]] = {
    "a list": (list, list.append),
    "a deque": (deque, deque.append),
    "a set": (set, set.add),
    "a dict": (dict, lambda state, item: state.update({item: [item]})),
    "an array": (lambda: array("q"), array.append),
    "a sorted list": (SortedList, SortedList.add),
    "an object": (Items, Items.append),
}


@pytest.mark.parametrize("kind", KEEPERS)
def test_what_a_scan_keeps_of_many_items_is_counted(kind: str) -> None:
    make, add = KEEPERS[kind]

    class Keeps(UDSO[Any, Any, int]):
        def create_state(self) -> Any:
            return make()

        def process(self, state: Any, payload: Any, le: int) -> tuple[Any, list[int]]:
            add(state, 10**6 + payload.v)
            return state, [le]

    gc.collect()
    tracemalloc.start()
    try:
        session = S.scan(Keeps).open()
        before = tracemalloc.get_traced_memory()[0]
        for at in range(0, 1000, 250):
            session.feed([*(sd.point(n, n, {"v": n}) for n in range(at, at + 250)), sd.Cti(at + 250)])
        gc.collect()
        real = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    (scan,) = (each for each in session.status(sizes=True).operators if each.name == "scan_1")
    assert scan.state_bytes is not None
    assert real / 2 < scan.state_bytes < 2 * real


@pytest.mark.parametrize("emit", ["final", sd.emit.Emit(hold=10**9), sd.emit.Emit(every=50, max_delay=10**9)])
def test_what_waits_to_be_sent_is_counted_as_the_outputs(emit: Any) -> None:
    session, real = held(S.select(v=lambda e: e.v), emit)
    figures = session.stats()["(output)"]
    assert real / 8 < figures["state_bytes"] < real  # the ids are the source's, and the rest may be in columns
    assert figures["events"] == 2400
    assert real / 2 < sum(each["state_bytes"] for each in session.stats().values()) < 2 * real


def test_rejected_events_and_known_ids_are_counted_with_their_source() -> None:
    query = sd.source("s", on_violation="drop").tumbling_window(10).aggregate(n=sd.count())
    session = query.open()
    session.push([sd.Cti(1000)])
    empty = session.stats()["source:s"]["state_bytes"]
    session.push([sd.point(f"late{n}", n, {"v": "x" * 100}) for n in range(900)])
    late = session.stats()["source:s"]["state_bytes"]
    assert late - empty > 900 * 300
    session.rejected(forget=True)
    session.push([sd.point(f"known{n}", 1000 + n, {"v": "x" * 100}) for n in range(900)])
    assert session.stats()["source:s"]["state_bytes"] > empty + 900 * 300


def test_keys_that_wait_as_values_of_arrow_are_counted() -> None:
    pa = pytest.importorskip("pyarrow")
    session = S.group_by("k").tumbling_window(10**9).aggregate(n=sd.count()).open(emit="final")
    texts = [f"{number:040}" for number in range(20_000)]
    for part in (texts[:10_000], texts[10_000:]):  # a first table alone is not looked up
        session.feed(pa.table({"le": [1] * 10_000, "k": part}))
    assert session.stats()["group_apply_1"]["state_bytes"] > 20_000 * 40


def test_columns_of_a_join_that_wait_as_values_of_arrow_are_counted() -> None:
    pa = pytest.importorskip("pyarrow")
    session = S.join(sd.source("t"), on="v", select=lambda a, b: {"v": a.v}).open()
    session.feed(pa.table({"le": [1] * 10_000, "v": range(10_000), "k": [f"{number:040}" for number in range(10_000)]}), "s")
    assert session.stats()["join_1"]["state_bytes"] > 10_000 * 40
