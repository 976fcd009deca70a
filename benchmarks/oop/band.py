"""N1 (Figure 11): a band join that feeds a window count, against the size of the band: memory, latency and execution time."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamdsl as sd
from benchmarks.oop.arrivals import SECOND, Stream, arrive
from benchmarks.oop.measure import Held, Plan, Ran, held, in_order, ran
from streamdsl.progress import BandJoin, Chain, OfPairs, Union, WindowAggregate

BANDS = [1, 5, 10, 20]
SECONDS = 80
SHAPE = (10 * SECOND, 10 * SECOND)
STREAMS = [Stream(0, 80, 0, 64, 1), Stream(1, 80, 0, 64, 2)]


class Query:
    """Q7: the band join, then what it feeds."""

    def __init__(self, band: int, ordered: bool) -> None:
        on = lambda p: p[0]  # noqa: E731
        join = BandJoin(band * SECOND, band * SECOND, on, order="in" if ordered else "any")
        self._join = Plan([Union(1), Union(1)], join)
        count = WindowAggregate(*SHAPE, sd.count())
        by_left = OfPairs("left")
        self._rest = Chain(by_left, *in_order(SHAPE[1]), count) if ordered else Chain(by_left, count)

    def push(self, item: Any, input: int) -> list[Any]:
        return [out for each in self._join.push(item, input) for out in self._rest.push(each)]

    def close(self) -> list[Any]:
        return [out for each in self._join.close() for out in self._rest.push(each)] + self._rest.close()

    @property
    def buffered(self) -> int:
        return self._join.buffered + self._rest.buffered


PAPER = "much less memory and latency out of order, less time, at every band"


def measure() -> dict[str, list[tuple[Held, Ran]]]:
    """Return what both ways hold and cost at each band."""
    found: dict[str, list[tuple[Held, Ran]]] = {"in order": [], "out of order": []}
    for band in BANDS:
        for name, each in found.items():
            make = partial(Query, band, name == "in order")
            cost = ran(make, arrive(STREAMS, SECONDS), SHAPE, band * SECOND)
            each.append((held(make, partial(arrive, STREAMS, SECONDS)), cost))
            if found["in order"][-1][0].results != each[-1][0].results:
                raise AssertionError("N1: both must have the same results")
            print(f"N1 {name}, band {band} s: {each[-1]}", flush=True)
    return found
