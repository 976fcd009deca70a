"""What type checkers infer for runs, sessions and modules as functions, and what they refuse."""

# ruff: noqa: F841 (an assignment is a test of its type)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_type

import streamdsl as sd
from streamdsl.engine.query_session import Session
from streamdsl.plan.node import Node
from streamdsl.result import Result
from tests.typing.payloads import Stats, Trip, extremes, spread, trips

stats = trips.tumbling_window("1h").aggregate(lambda w: Stats(w.count(), w.avg(lambda e: e.fare)))


def running() -> None:
    assert_type(stats.run({"trips": []}), Result[Stats])
    assert_type(stats.run({"trips": []}, engine="reference", until="2013-02-08").cht(), sd.CHT[Stats])
    assert_type([row.payload.mean for row in stats.run().cht()], list[float])
    assert_type([payload.n for le, re, payload in stats.run()], list[int])
    assert_type(stats.open("final"), Session[Stats])
    assert_type(stats.open().push([sd.Insert("a", 1, 5, Trip(1, 2.0, "x", 3.0)), sd.Cti(8)]), list[sd.Event[Stats]])
    assert_type(stats.restore("stats", trust=True), Session[Stats])
    assert_type(stats.open().checkpoint("stats"), None)
    assert_type(stats.open().snapshot(), bytes)
    assert_type(stats.explain(), str)
    assert_type(stats.explain(rules=True), str)
    assert_type(stats.plan(), Node)
    stats.run(engine="flink")  # type: ignore[arg-type]
    stats.open("sometimes")  # type: ignore[arg-type]
    no_field = stats.run().cht().rows[0].payload.median  # type: ignore[attr-defined]


def physical_events() -> None:
    event = sd.point("a", 1, Stats(1, 2.0))
    assert_type(event, sd.Insert[Stats])
    assert_type(sd.correct(event, Stats(1, 3.0), "b"), tuple[sd.Retract, sd.Insert[Stats]])
    assert_type(sd.CHT.from_events([event, sd.Retract("a", 1, 2, 1), sd.Cti(9)]), sd.CHT[Stats])
    events: list[sd.Event[Stats]] = [event, sd.Cti(9)]
    assert_type(sd.from_events(events), sd.Stream[Stats])


def functions() -> None:
    median: sd.UDA[float, float] = spread
    assert_type(spread([1.0, 2.0]), float)
    spread(["a"])  # type: ignore[list-item]
    assert_type(list(extremes([1.0, 2.0])), list[float])

    @sd.uda  # type: ignore[arg-type]
    def no_payloads(count: int) -> int:
        return count


def free_aggregates() -> None:
    mean: sd.Agg[Trip, float] = sd.avg(lambda e: e.fare)
    wrong: sd.Agg[Trip, float] = sd.avg(lambda e: e.faer)  # type: ignore[attr-defined]
    anything: sd.Agg[Any, int] = sd.count()

    class Total(sd.UDA[int, int]):
        def compute_result(self, payloads: Sequence[str]) -> int:  # type: ignore[override]
            return len(payloads)
