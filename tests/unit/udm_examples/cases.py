"""Every statistical module of the gallery with rows that suit it: what the laws of modules are checked on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

import streamdsl as sd
from streamdsl.testing import arrival_orders
from udm_examples.distinct_sketch import DistinctSketch
from udm_examples.ewma import Ewma
from udm_examples.linear_trend import LinearTrend
from udm_examples.median import Median, SlidingMedian
from udm_examples.quantile import SlidingQuantile
from udm_examples.quantile_sketch import KllQuantile, LogQuantile
from udm_examples.robust_z_score import RobustZScore
from udm_examples.time_weighted_average import IncrementalTimeWeightedAverage, TimeWeightedAverage
from udm_examples.top_k import SlidingTopK, TopK
from udm_examples.vwap import Trade, Vwap

Row = tuple[int, int, Any]


@dataclass(frozen=True)
class Reading:
    """A row with a measured value."""

    sensor: str
    value: float


@dataclass(frozen=True)
class Case:
    """A module, and what its payloads are."""

    module: Any
    payload: Callable[[Random], Any]

    def __str__(self) -> str:
        return type(self.module).__name__

    def rows(self, seed: int, size: int = 12) -> list[Row]:
        """Return random rows, crowded so that endpoints and payloads are often equal."""
        rng = Random(seed)
        starts = [rng.randint(-6, 25) for _ in range(rng.randint(1, size))]
        return [(le, le + rng.randint(1, 12), self.payload(rng)) for le in starts]


def small(rng: Random) -> float:
    return rng.choice([rng.randint(-4, 9), rng.randint(-8, 18) / 2])


def wild(rng: Random) -> float:
    """Return a float whose sums round or overflow; seldom one that is no number, as a sum that holds it shows nothing else."""
    if rng.random() < 0.03:
        return rng.choice([math.nan, math.inf, -math.inf])
    return rng.choice([small(rng), 0.1, -0.3, 1 / 3, 1e16, -1e16, 1e300, 1.7e308, 5e-324])


def trade(rng: Random) -> Trade:
    return Trade(rng.choice([10.1, 10.2, 1e16, 0.0, wild(rng)]), rng.choice([0, 1, 100, 0.1]))


def reading(rng: Random) -> Reading:
    return Reading(rng.choice("ab"), rng.choice([small(rng), small(rng), 40.0, math.nan]))


def user(rng: Random) -> Any:
    return rng.choice(["a", "b", "1", 1, 1.0, 2.5, Decimal("2.50"), None])


def value(row: Reading) -> float:
    return row.value


CASES = [
    Case(TimeWeightedAverage(), wild),
    Case(IncrementalTimeWeightedAverage(), wild),
    Case(Median(), wild),
    Case(SlidingMedian(), wild),
    Case(SlidingQuantile(0.9), wild),
    Case(SlidingQuantile(0.25, "inverted_cdf"), wild),
    Case(Vwap(), trade),
    Case(Ewma(half_life=4), wild),
    Case(TopK(2, by=value), reading),
    Case(SlidingTopK(2, by=value), reading),
    Case(LinearTrend(), wild),
    Case(RobustZScore(of=value, threshold=0.7), reading),
    Case(DistinctSketch(), user),
    Case(KllQuantile(0.5), wild),
    Case(LogQuantile(0.5), wild),
]


WINDOWS: dict[str, Callable[[sd.Stream[Any]], sd.WindowedStream[Any]]] = {
    "tumbling": lambda s: s.tumbling_window(10, clip=sd.Clip.FULL),
    "hopping": lambda s: s.hopping_window(10, 4, clip=sd.Clip.RIGHT),
    "snapshot": lambda s: s.snapshot_window(),
}


def query(module: Any, windows: str) -> sd.Stream[Any]:
    """Return the query that runs a module over one kind of window."""
    windowed = WINDOWS[windows](sd.source("s"))
    return windowed.apply(module) if module.returns_many else windowed.aggregate(module)


def reference(module: Any, windows: str, rows: Iterable[Row]) -> sd.CHT[Any]:
    """Return what the query means."""
    return query(module, windows).run({"s": sd.from_rows(list(rows))}, engine="reference").cht()


def answers(module: Any, windows: str, rows: Iterable[Row], n: int, seed: int) -> Iterable[sd.CHT[Any]]:
    """Yield what the query answers to random arrival orders, pushed event by event, each with the corrections that it brings."""
    for stream in arrival_orders(list(rows), n, seed):
        session = query(module, windows).open()
        output = [event for pushed in stream for event in session.push([pushed])]
        yield sd.CHT.from_events([*output, *session.close()])
