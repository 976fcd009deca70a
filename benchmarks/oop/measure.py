"""What a query holds, in bytes that are really held, how late its results are, and what it costs."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from benchmarks.oop.arrivals import SECOND, Arrival
from streamdsl.progress import Describe, Input, Joined, Operator, Punctuation, WindowResult, extent


@dataclass
class Plan:
    """Operators in a tree: each leaf takes some of the query's inputs, and feeds one input of the root."""

    leaves: Sequence[Operator]
    root: Operator

    def push(self, item: Any, input: int) -> list[Any]:
        """Return what the root sends."""
        for number, leaf in enumerate(self.leaves):
            if input < leaf.inputs:
                return [out for each in leaf.push(item, input) for out in self.root.push(each, number)]
            input -= leaf.inputs
        raise AssertionError("there is no such input")

    def close(self) -> list[Any]:
        """Return what the end of all inputs causes."""
        ends = [(number, each) for number, leaf in enumerate(self.leaves) for each in leaf.close()]
        return [out for number, each in ends for out in self.root.push(each, number)] + self.root.close()

    @property
    def buffered(self) -> int:
        return self.root.buffered + sum(leaf.buffered for leaf in self.leaves)


def in_order(slide: int = 0) -> list[Operator]:
    """Return what tells the next operator the progress that a system in order reads from its tuples."""
    return [Input(), *([Describe(slide)] if slide else [])]


class Held(NamedTuple):
    """The most that a query held: bytes and tuples (or partial aggregates); and its results."""

    bytes: int
    items: int
    results: int


def held(make: Callable[[], Any], arrivals: Callable[[], Iterator[Arrival]], every: int = 50) -> Held:
    """Return the most that a query holds, looked at after every few arrivals; the results are let go."""
    gc.collect()
    tracemalloc.start()
    feed = arrivals()
    first = next(feed)
    query = make()
    gc.collect()
    base, most, items, results = tracemalloc.get_traced_memory()[0], 0, 0, 0
    for at, (_, input, item) in enumerate(_again(first, feed)):
        results += sum(map(_is_result, query.push(item, input)))
        if at % every == 0 or isinstance(item, Punctuation):
            most, items = max(most, tracemalloc.get_traced_memory()[0] - base), max(items, query.buffered)
    tracemalloc.stop()
    results += sum(map(_is_result, query.close()))
    return Held(most, items, results)


class Ran(NamedTuple):
    """CPU seconds, and the mean time in seconds by which a window's result came after it could be known."""

    cpu: float
    latency: float


def ran(make: Callable[[], Any], arrivals: Iterable[Arrival], shape: tuple[int, int], needs: int = 0) -> Ran:
    """Return the cost of a run at full speed, and the latency: stream time plus the time that the query worked on the result.

    A result can be known when both inputs are punctuated at the window's end, one of them at `needs` after it.
    """
    items, query, late = list(arrivals), make(), []
    spent = 0.0
    covered: dict[int, int] = {}
    for now, input, item in items:
        if isinstance(item, Punctuation) and item.value not in covered:
            covered[int(item.value)] = now
        start = time.process_time()
        found = query.push(item, input)
        took = time.process_time() - start
        spent += took
        for out in found:
            if isinstance(out, WindowResult):
                known = covered.get(-(-(int(extent(out.wid, *shape)[1]) + needs) // SECOND) * SECOND)
                late += [] if known is None else [(now - known) / SECOND + took]
    return Ran(spent, sum(late) / len(late) if late else float("nan"))


def _is_result(item: Any) -> bool:
    return isinstance(item, (WindowResult, Joined))


def _again(first: Arrival, rest: Iterator[Arrival]) -> Iterator[Arrival]:
    yield first
    yield from rest
