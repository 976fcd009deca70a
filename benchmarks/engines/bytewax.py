"""Bytewax: windows of one key by event time; the input comes tuple by tuple."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.engines.engine import Engine

EPOCH = datetime.fromtimestamp(0, UTC)
WAIT = timedelta(seconds=10)
"""Its watermark moves with the clock on the wall too: without waiting a tuple is late if another has come with the same time."""


def collected(size: int, slide: int, tuples: list[Any]) -> list[list[int]]:
    """The windows in the order in which they close; the flow closes those that are left when its input ends."""
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.operators import windowing
    from bytewax.testing import TestingSink, TestingSource, run_main

    out: list[Any] = []
    flow = Dataflow("asked")
    keyed = op.map("keyed", op.input("in", flow, TestingSource(tuples, 1)), lambda each: ("all", each))
    clock = windowing.EventClock(lambda each: EPOCH + timedelta(days=each[1]), WAIT)
    windower = windowing.SlidingWindower(timedelta(days=size), timedelta(days=slide), EPOCH)
    op.output("out", windowing.collect_window("windows", keyed, clock, windower).down, TestingSink(out))
    run_main(flow)
    return [[each[0] for each in values] for _, (_, values) in out]


ENGINES = [
    Engine("bytewax", "Bytewax, `collect_window`", collected, profile="BYTEWAX", late="as its profile", gaps=False),
]
