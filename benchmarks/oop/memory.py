"""The experiments on memory, at a small part of the paper's rates: Figures 1 (G2), 10 (G3), 12 (N2) and 13 (N3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamdsl as sd
from benchmarks.oop.arrivals import SECOND, Stream, arrive
from benchmarks.oop.measure import Held, Plan, held, in_order
from streamdsl.progress import Chain, EqualityJoin, Operator, Union, WindowAggregate

MINUTE = 60 * SECOND


@dataclass(frozen=True)
class Experiment:
    """A query in and out of order, over streams of which one is late by each of some delays."""

    name: str
    title: str
    paper: str
    delays: Sequence[float]
    seconds: int
    streams: Callable[[float], list[Stream]]
    query: Callable[[bool], Any]

    def measure(self) -> dict[str, list[Held]]:
        """Return what both hold at each delay; they must have the same results."""
        found: dict[str, list[Held]] = {"in order": [], "out of order": []}
        for delay in self.delays:
            for name, ordered in (("in order", True), ("out of order", False)):
                make = partial(self.query, ordered)
                found[name].append(held(make, partial(arrive, self.streams(delay), self.seconds)))
                if len({each[-1].results for each in found.values() if len(each) == len(found["in order"])}) > 1:
                    raise AssertionError(f"{self.name}: both must have the same results")
                print(f"{self.name} {name}, {delay:g} s late: {found[name][-1]}", flush=True)
        return found


def union_count(size: int, slide: int, inputs: int, buffered: bool, key: Any = None) -> Callable[[bool], Any]:
    """Return a count of windows over a union; `buffered`: in order by the buffered implementation, else by partial aggregates."""

    def make(ordered: bool) -> Chain:
        last = WindowAggregate(size, slide, sd.count(), key, "in" if ordered and buffered else "any")
        return Chain(Union(inputs, "in"), *in_order(slide), last) if ordered else Chain(Union(inputs), last)

    return make


def union_join(width: int, left: int, right: int) -> Callable[[bool], Plan]:
    """Return an equality join of two unions."""

    def side(n: int, ordered: bool) -> Operator:
        if n == 1:
            return Union(1)
        return Chain(Union(n, "in"), *in_order()) if ordered else Union(n)

    def make(ordered: bool) -> Plan:
        join = EqualityJoin(width, on=lambda p: p[0], order="in" if ordered else "any")
        return Plan([side(left, ordered), side(right, ordered)], join)

    return make


FIGURE_1 = Experiment(
    "G2",
    "count per group and minute over two streams, one of them late (Figure 1)",
    "in order grows with the skew, out of order stays flat: at 40 s it has 30 % of the memory",
    [1, 10, 20, 40],
    150,
    lambda delay: [Stream(0, 108, 0, 64, 1), Stream(1, 108, delay, 64, 2)],
    union_count(MINUTE, MINUTE, 2, buffered=False, key=lambda p: p),
)
G3 = Experiment(
    "G3",
    "join of 10 s windows over two unions, one stream of each late (Figure 10)",
    "both hold the same tuples; out of order has at most 20 % more bytes, in its tables",
    [1, 10, 20, 40],
    80,
    lambda delay: [Stream(at, 40, delay if at % 2 else 0, 2**20, at) for at in range(4)],
    union_join(10 * SECOND, 2, 2),
)
N2 = Experiment(
    "N2",
    "equality join with a union of which a slow stream is late (Figure 12)",
    "out of order grows more slowly: the join forgets M2's tuples sooner",
    [1, 10, 20, 40],
    80,
    lambda delay: [Stream(0, 80, 0, 16, 1), Stream(1, 80, 0, 16, 2), Stream(2, 2, delay, 16, 3)],
    union_join(1, 1, 2),
)
N3 = Experiment(
    "N3",
    "count of 5 minutes every minute over three streams, a slow one late (Figure 13)",
    "in order grows with the delay, out of order stays flat",
    [1, 40, 120],
    480,
    lambda delay: [Stream(0, 16, 0, 256, 1), Stream(1, 16, 0, 256, 2), Stream(2, 1, delay, 256, 3)],
    union_count(5 * MINUTE, MINUTE, 3, buffered=True),
)
EXPERIMENTS = [FIGURE_1, G3, N2, N3]
