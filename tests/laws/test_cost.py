"""Cost follows change, and state follows CTIs: counted in calls, rows and bytes, never in seconds."""

from __future__ import annotations

import gc
import statistics
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import streamdsl as sd
from streamdsl.emit import EMIT_MODES, EmitMode
from streamdsl.engine.frames.arrangement import Arrangement
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Table
from streamdsl.io.binding import Inserts
from tests.laws.modules import Since
from tests.laws.profiles import some

Query = Callable[["sd.Stream[Any]"], "sd.Stream[Any]"]


class Spread(sd.UDA[int, int]):
    """A module that the engine cannot see into."""

    def compute_result(self, payloads: Sequence[int]) -> int:
        return max(payloads) - min(payloads)


QUERIES: dict[str, Query] = {
    "tumbling, a module": lambda s: s.tumbling_window(10).aggregate(Spread(), lambda e: e.v),
    "tumbling, built-ins": lambda s: s.tumbling_window(10).aggregate(n=sd.count(), mean=sd.avg(lambda e: e.v)),
    "hopping": lambda s: s.hopping_window(20, 10).aggregate(mid=sd.median(lambda e: e.v)),
    "snapshot": lambda s: s.snapshot_window().aggregate(n=sd.count()),
    "count": lambda s: s.count_window(3).aggregate(n=sd.count()),
    "session": lambda s: s.where(lambda e, life: (life.le % 8 == 0) | (life.le == 451)).session_window(3).aggregate(n=sd.count()),
    "session, cut": lambda s: s.session_window(3, max_duration=12).aggregate(mid=sd.median(lambda e: e.v)),
    "sessions by key": lambda s: s.group_by(lambda e: e.v % 3).session_window(1, 6).aggregate(Spread(), lambda e: e.v),
    "window sequence by time": lambda s: s.windows(sd.astral.range_slide(20, 10), start=0).aggregate(Spread(), lambda e: e.v),
    "grouped": lambda s: s.group_by("v").tumbling_window(10).aggregate(n=sd.count()),
    "join": lambda s: s.join(s.shift(1), on="v"),
    "anti_join": lambda s: s.anti_join(s.where(lambda e: e.v > 3).shift(1), on="v"),
    "semi_join": lambda s: s.semi_join(s.where(lambda e: e.v > 3).shift(1), on="v"),
    "clip_by": lambda s: s.clip_by(s.shift(2), on="v"),
    "asof_join": lambda s: s.asof_join(s.shift(2), on="v"),
    "to_edges": lambda s: s.to_edges(key="v"),
    "distinct": lambda s: s.distinct(lambda e: e.v),
    "chop": lambda s: s.chop(10),
    "match": lambda s: s.match(lambda p: p.a.then(p.b.many().where(lambda e, m: e.v > m.a.v)).then(p.c).within(12), by="v"),
    "match, overlapping": lambda s: s.match(lambda p: p.a.then(p.b.where(lambda e, m: e.v > m.a.v)).within(12), overlapping=True),
    "stitch": lambda s: s.select(lambda e: e.v).stitch(),
}
IN_ORDER: dict[str, Query] = {
    "window sequence by position": lambda s: s.windows(sd.astral.rows_slide(4, 2)).aggregate(Spread(), lambda e: e.v),
    "scan": lambda s: s.select(k=lambda e: e.v, v=lambda e: e.v).scan(Since()),
}
"""Queries in which a late event costs what comes after it."""


def _points(first: int, size: int, step: int = 1) -> Inserts:
    le = np.arange(first, first + size * step, step, dtype=np.int64)
    return Inserts(None, le, le + 4, Table(Schema.record(["v"]), {"v": le % 7}, size))


def _cost_of_a_late_event(query: Query, earlier: int) -> dict[str, tuple[int, int, int]]:
    session = query(sd.source("s")).open()
    session.push(_points(0, earlier))
    before = session.stats()
    session.push([sd.Insert("late", 451, 456, {"v": 3})])
    after = session.stats()
    return {
        label: tuple(after[label][figure] - before[label][figure] for figure in ("in", "out", "udm_calls"))  # type: ignore[misc]
        for label in after
    }


@pytest.mark.parametrize("name", QUERIES)
def test_a_late_event_costs_the_same_after_few_and_many_earlier_ones(name: str) -> None:
    few, many = (_cost_of_a_late_event(QUERIES[name], earlier) for earlier in (500, 3_000))
    assert few == many
    assert sum(cost[0] for cost in few.values()) > 0


def _calls(work: Callable[[], object]) -> int:
    """Return how many functions the interpreter calls in some work, those of C too."""
    events: Counter[str] = Counter()
    before = sys.getprofile()
    gc.disable()
    sys.setprofile(lambda frame, event, argument: events.update([event]))
    try:
        work()
    finally:
        sys.setprofile(before)
        gc.enable()
    return events["call"] + events["c_call"]


def _calls_for_a_late_event(query: Query, earlier: int) -> int:
    session = query(sd.source("s")).open()
    session.push(_points(0, earlier))
    session.push([sd.Insert("warm", 401, 406, {"v": 3})])
    late, gone = sd.Insert("late", 451, 456, {"v": 3}), sd.Retract("late", 451, 456, 451)
    return _calls(lambda: session.push([late])) + _calls(lambda: session.push([gone]))


@pytest.mark.parametrize("name", QUERIES)
def test_a_late_event_and_its_retraction_take_as_many_steps_after_few_and_many_earlier_ones(name: str) -> None:
    few, many = (_calls_for_a_late_event(QUERIES[name], earlier) for earlier in (3_000, 7_000))
    assert few > 200
    assert many <= 1.05 * few


@pytest.mark.parametrize(("emit", "most"), [("final", 300), ("speculative", 450)])
def test_a_push_of_one_event_takes_few_steps(emit: EmitMode, most: int) -> None:
    source = sd.source("s", progress=sd.Progress.ordered())
    session = source.select(k=lambda e: e._0).group_by("k").tumbling_window(1_000).aggregate(n=sd.count()).open(emit)
    pushes = [[sd.point(n, n * 10, (n % 9, 5))] for n in range(90)]
    calls = [_calls(lambda push=push: session.push(push)) for push in pushes]  # type: ignore[misc]
    assert statistics.median(calls) < most


def test_a_late_event_costs_the_same_after_a_million_earlier_ones() -> None:
    query = QUERIES["tumbling, a module"]
    few, many = (_cost_of_a_late_event(query, earlier) for earlier in (1_000, 1_000_000))
    assert few == many
    assert sum(cost[2] for cost in few.values()) == 1, "the one window that it falls into is computed again, once"


@pytest.mark.parametrize("name", some([*QUERIES, *IN_ORDER], 8))
def test_memory_is_flat_over_cti_periods(name: str) -> None:
    session = {**QUERIES, **IN_ORDER}[name](sd.source("s")).open()
    used = []
    gc.collect()
    gc.freeze()  # so that what earlier tests have left is not looked through in every period
    tracemalloc.start()
    try:
        for period in range(54):  # what is not needed is swept when it may be half of all: thrice, before memory is compared
            session.push(_points(period * 200, 100, step=2))
            session.push([sd.Cti((period + 1) * 200)])
            gc.collect()
            sys._clear_type_cache()  # it fills with names of attributes, and is no state
            used.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
        gc.unfreeze()
        gc.freeze()  # as before: what all tests have in common stays
    assert max(used[34:]) <= 1.1 * max(used[5:34]) + 4096, f"bytes after each period: {used}"


@pytest.mark.parametrize("name", [*QUERIES, *IN_ORDER])
def test_state_holds_only_what_a_later_change_can_need(name: str) -> None:
    session = {**QUERIES, **IN_ORDER}[name](sd.source("s")).open()
    session.push(_points(0, 500, step=2))
    full = sum(figures["events"] + figures["windows"] for figures in session.stats().values())
    session.push([sd.Cti(2_000)])
    left = sum(figures["events"] + figures["windows"] for figures in session.stats().values())
    assert full > 100
    assert left <= 14


@pytest.mark.parametrize("emit", EMIT_MODES)
def test_an_id_that_has_ended_leaves_nothing_however_often_it_changed(emit: EmitMode) -> None:
    session = sd.source("s").open(emit)
    sizes = []
    for start in range(0, 2_000, 500):
        for le in range(start, start + 500):
            ends = [(sd.INFINITY, 10**6), (10**6, le + 2)]
            session.push([sd.Insert(le, le, sd.INFINITY, {"v": le}), *(sd.Retract(le, le, *end) for end in ends), sd.Cti(le)])
        sizes.append(len(session.snapshot()))
    assert max(sizes[1:]) < 1.1 * sizes[0], f"bytes after each 500 edges: {sizes}"


@pytest.mark.parametrize("policy", ["drop", "adjust"])
def test_a_policy_for_late_events_takes_frames_no_step_more_for_each_row(policy: Any) -> None:
    def calls(rows: int, **policies: Any) -> int:
        session = sd.source("s", progress=sd.Progress.slack(5), **policies).where(lambda e: e.v > 2).open()
        session.push(_points(0, 100))
        return _calls(lambda: session.push(_points(100, rows)))

    few, many = (calls(rows, on_violation=policy) - calls(rows) for rows in (1_000, 20_000))
    assert many <= few + 20
    assert many < 200


def test_late_events_leave_their_numbers_and_a_sample_that_is_bounded() -> None:
    session = sd.source("s", on_violation="drop").where(lambda e: e.v > 2).open()
    session.push([sd.Cti(10**6)])
    sizes = []
    for _ in range(3):
        session.push(_points(0, 12_000))
        session.push([sd.Insert(f"late {n}", n, n + 1, {"v": 5}) for n in range(12_000)])
        rejected = session.rejected()
        sizes.append((len(list(rejected)), session.stats()["source:s"]["state_bytes"] // 2**20, len(session.snapshot()) // 2**16))
    assert sizes[0] == sizes[1] == sizes[2]
    assert (len(rejected), len(list(rejected))) == (72_000, 10_000)


@pytest.mark.parametrize(
    "windowed", [lambda s: s.tumbling_window(10**6), lambda s: s.session_window(50)], ids=["grid", "session"]
)
def test_a_window_that_grows_is_not_looked_through_again(windowed: Callable[[Any], Any]) -> None:
    looked_at = Counter[int]()
    overlapping = Arrangement.overlapping

    def counted(arrangement: Arrangement, *given: Any) -> Any:
        found = overlapping(arrangement, *given)
        looked_at[number] += len(found)
        return found

    query = windowed(sd.source("s")).aggregate(high=sd.max(lambda e: e.v), low=sd.min(lambda e: e.v), total=sd.sum(lambda e: e.v))
    session = query.open(emit="speculative")
    with patch.object(Arrangement, "overlapping", counted):
        for number in range(60):
            session.push([sd.point(id, id, {"v": id * 7 % 1000}) for id in range(50 * number, 50 * number + 50)])
    assert max(looked_at[number] for number in range(50, 60)) <= 4 * 50
    assert max(looked_at.values()) >= 50
