"""Bytewax: windows of keyed streams, one worker, tuples in batches of 10,000 (the best of four sizes tried), to tuples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.answer import from_rows
from benchmarks.data import Data, rows
from benchmarks.workload import Way

BATCH = 10_000
EPOCH = datetime.fromtimestamp(0, UTC)
WAIT = timedelta(seconds=60)
"""How long windows wait for late events: its watermark also moves with the clock on the wall."""

Read = Callable[[str, int, Any], Sequence[Any]]


def fold(
    rekey: Callable[[tuple[int, ...]], tuple[str, Any] | None],
    begin: Callable[[], Any],
    add: Callable[[Any, Any], Any],
    row: Read,
    size: int,
    hop: int | None = None,
    at_most: int = 100_000,
    against: str = "streamdsl tuples",
) -> Way:
    """Fold each key's windows: `rekey` gives the key and what is folded of a tuple (None: left out), `row` the row of a result.

    The times of the tuples are made datetimes before the clock starts, as Bytewax needs them.
    """

    def prepare(data: Data) -> Callable[[], Any]:
        (columns,) = data.values()
        given = [(EPOCH + timedelta(milliseconds=each[0]), each) for each in rows(columns)]
        return lambda: _run(given, rekey, begin, add, size, hop)

    def read(results: Iterable[Any], names: Sequence[str]) -> Any:
        return from_rows((row(key, number * (hop or size), state) for key, (number, state) in results), names)

    return Way(prepare, read, at_most, against)


def _run(given: list[Any], rekey: Any, begin: Any, add: Any, size: int, hop: int | None) -> list[Any]:
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.operators import windowing
    from bytewax.testing import TestingSink, TestingSource, run_main

    def keyed(item: tuple[datetime, tuple[int, ...]]) -> tuple[str, Any] | None:
        pair = rekey(item[1])
        return pair and (pair[0], (item[0], pair[1]))

    length = timedelta(milliseconds=size)
    offset = timedelta(milliseconds=hop or size)
    windower = windowing.TumblingWindower(length, EPOCH) if hop is None else windowing.SlidingWindower(length, offset, EPOCH)
    out: list[Any] = []
    flow = Dataflow("benchmark")
    stream = op.filter_map("keyed", op.input("in", flow, TestingSource(given, BATCH)), keyed)
    clock = windowing.EventClock(lambda item: item[0], WAIT)
    folded = windowing.fold_window(
        "fold", stream, clock, windower, begin, lambda state, item: add(state, item[1]), lambda a, b: a, ordered=False
    )
    op.output("out", folded.down, TestingSink(out))
    run_main(flow)
    return out
