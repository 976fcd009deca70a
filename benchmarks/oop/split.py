"""Figure 3: a stream split through a cheap and an expensive predicate, and counted: out of order, merged, or with slack."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import streamdsl as sd
from benchmarks.oop.arrivals import SECOND, Stream, arrive
from benchmarks.oop.measure import held, in_order
from streamdsl.progress import Chain, Input, Operator, Punctuated, Tuple, Union, WindowAggregate, WindowResult

SECONDS = 60
DELAY = 8
SLACKS = [0, 2, 4, 8, 12]
SHAPE = (10 * SECOND, 10 * SECOND)
STREAMS = [Stream(0, 160, 0, 256, 1), Stream(1, 40, DELAY, 256, 2)]
"""What passes the cheap predicate at once, and what waits for the expensive one."""


class Arm(NamedTuple):
    """The most bytes held, the mean latency in seconds of stream time, and the share of tuples that are lost."""

    bytes: int
    latency: float
    dropped: float


def out_of_order() -> Operator:
    return Chain(Union(2), WindowAggregate(*SHAPE, sd.count()))


def merged() -> Operator:
    return Chain(Union(2, "in"), *in_order(SHAPE[1]), WindowAggregate(*SHAPE, sd.count()))


class Slack(Punctuated):
    """A count that infers progress from what arrives, without punctuation."""

    inputs = 2

    def __init__(self, seconds: int) -> None:
        super().__init__()
        self.input = Input(sd.Progress.slack(seconds * SECOND))
        self._rest = Chain(self.input, WindowAggregate(*SHAPE, sd.count()))

    @property
    def buffered(self) -> int:
        return self._rest.buffered

    def close(self) -> list[object]:
        return self._rest.close()

    def _on_tuple(self, item: Tuple, input: int) -> list[object]:
        return self._rest.push(item)


def arm(query: Operator) -> tuple[float, int, int]:
    """Return the mean time from the end of a window to its result, the tuples, and those that are counted."""
    late, tuples, counted = [], 0, 0
    for now, input, item in arrive(STREAMS, SECONDS):
        tuples += isinstance(item, Tuple)
        for out in query.push(item, input):
            if isinstance(out, WindowResult):
                late.append((now - (out.wid + 1) * SHAPE[1]) / SECOND)
                counted += out.value
    counted += sum(out.value for out in query.close() if isinstance(out, WindowResult))
    return sum(late) / len(late), tuples, counted


PAPER = "out of order no tuple is lost, and the delay is the least"


def measure() -> dict[str, Arm]:
    """Return the three arms, the last one for some slacks."""
    ways: dict[str, Callable[[], Operator]] = {"out of order": out_of_order, "merged in order": merged}
    found: dict[str, Arm] = {}
    for s in SLACKS:
        ways[f"slack of {s} s"] = partial(Slack, s)
    for name, make in ways.items():
        query = make()
        latency, tuples, _ = arm(query)
        lost = query.input.dropped if isinstance(query, Slack) else 0
        found[name] = Arm(held(make, partial(arrive, STREAMS, SECONDS)).bytes, latency, lost / tuples)
        print(f"Figure 3 {name}: {found[name]}", flush=True)
    return found
