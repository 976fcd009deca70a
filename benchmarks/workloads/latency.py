"""Few events per push: count per key over tumbling windows, a hundred keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from benchmarks.data import Rows, bids
from benchmarks.peers import python, streamdsl
from benchmarks.workload import Workload

SIZE = 10_000
COLUMNS = ("le", "key", "n")


def query(bids: Any) -> Any:
    import streamdsl as sd

    by_key = bids.select(key=lambda e: e._0).group_by("key")
    return by_key.tumbling_window(SIZE).aggregate(n=sd.count())


def loop(rows: Rows) -> Iterator[tuple[int, int, int]]:
    counts = Counter((le // SIZE * SIZE, key) for le, key, _ in rows)
    return ((le, key, n) for (le, key), n in counts.items())


def pushes(name: str, size: int, events: int) -> Workload:
    """Return the workload with so many events per push."""
    return Workload(
        name=name,
        title=f"pushes of {size} event{'s' if size > 1 else ''}, tumbling count, 100 keys",
        events=events,
        data=lambda n: {"bids": bids(n, keys=100, rate=0.1)},
        columns=COLUMNS,
        reference=python.reference(loop, COLUMNS),
        ways={
            "streamdsl final": streamdsl.events(query, "final", size),
            "streamdsl speculative": streamdsl.events(query, "speculative", size),
            "dict loop": python.loop(lambda rows: list(loop(rows)), against="streamdsl final"),
        },
        notes=("the loop gives its answer once, at the end; a speculative session corrects it at every push",),
    )


WORKLOADS = [pushes("latency", 1, 10_000), pushes("latency10", 10, 50_000), pushes("latency100", 100, 200_000)]
