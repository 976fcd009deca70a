"""What a micro-batch writes of a shard's state: the chunks at fixed places that have changed, or what it has changed.

A million groups of tumbling or hopping windows with a count and a sum of floats, and a join of
as many rows on each side, by a key that is an integer or a text. A micro-batch brings a point to so many groups at random, and a
CTI. The mean of three micro-batches, in percent of the state: before, and now, without new bases, which a shard writes once in
128 to 255 micro-batches. Then the seconds of a micro-batch with its snapshot, and of comparing that with the one before it.

Needs no Java.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import mean
from typing import Any

import numpy as np
import pyarrow as pa

import streamdsl as sd
from benchmarks.command import Study
from streamdsl.spark.streaming.state_delta import delta

GROUPS = 1_000_000
TOUCHED = (1, 100, 1_000, 10_000)
WINDOW = 10_000
CHUNK = 2**18


def windows(s: Any) -> dict[str, Any]:
    groups = s.group_by("key")
    kinds = {"tumbling": groups.tumbling_window(WINDOW), "hopping": groups.hopping_window(WINDOW, WINDOW // 2)}
    return {name: kind.aggregate(n=sd.count(), total=sd.sum(lambda e: e.price)) for name, kind in kinds.items()}


def join(s: Any, t: Any) -> Any:
    left, right = s.alter_duration(WINDOW), t.alter_duration(WINDOW)
    return left.join(right, on="key", select=lambda a, b: {"a": a.price, "b": b.price})


def queries() -> dict[str, tuple[Any, bool]]:
    """Return queries by name, and whether their keys are texts."""
    s, t = (sd.source(name, unit="tick") for name in "st")
    found = {**windows(s), "join": join(s, t)}
    return {f"{name}, by {kind}": (query, kind == "text") for name, query in found.items() for kind in ("integer", "text")}


class Batches:
    """A session that a million groups have come to, and micro-batches of it."""

    def __init__(self, query: Any, is_text: bool, groups: int) -> None:
        self._rng = np.random.default_rng(0)
        self._is_text = is_text
        self._groups = groups
        self._cti = 0
        self.session = query.open(emit="final")
        self.sources = sorted(self.session.ctis)
        for source in self.sources:
            self._feed(self._rng.permutation(groups), source)

    def _feed(self, keys: Any, source: str) -> None:
        le = np.sort(self._rng.integers(WINDOW // 2, WINDOW, len(keys)))
        key = [f"user {key:09}" for key in keys.tolist()] if self._is_text else keys
        self.session.feed(pa.table({"le": le, "key": key, "price": self._rng.random(len(keys)) * 100}), source).to_arrow()

    def next(self, touched: int) -> bytes:
        """Return the state after a micro-batch that touches so many groups."""
        self._feed(self._rng.choice(self._groups, touched, replace=False), self.sources[0])
        self._cti += 1
        for source in self.sources:
            self.session.feed([sd.Cti(self._cti)], source).to_arrow()
        return bytes(self.session.snapshot(trust=True))


def at_fixed_places(before: bytes, after: bytes) -> int:
    """Return the bytes of all chunks of the second state that are not those of the first one."""
    places = (slice(start, start + CHUNK) for start in range(0, len(after), CHUNK))
    return sum(len(after[place]) for place in places if before[place] != after[place])


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def row(name: str, query: Any, is_text: bool, groups: int) -> tuple[str, dict[str, float]]:
    """Return a row of the table, and its figures."""
    batches = Batches(query, is_text, groups)
    for _ in range(2):  # columns that grow have room then
        state = batches.next(1_000)
    cells, seconds, figures = [], [], dict[str, float]()
    for touched in (*TOUCHED, groups):
        written = []
        for _ in range(1 if touched == groups else 3):
            snapshot, after = timed(partial(batches.next, touched))
            compared, change = timed(partial(delta, state, after))
            written.append((at_fixed_places(state, after) / len(after), min(1, len(change) / len(after))))
            seconds.append((snapshot, compared))
            state = after
        once, now = (100 * mean(each) for each in zip(*written, strict=True))
        cells.append(f"{once:.3g} / {now:.2g}")
        figures |= {f"before, {touched}": once, f"now, {touched}": now}
    text = f"| {name} | {len(state) / 1e6:.0f} | {' | '.join(cells)} | {seconds[0][0]:.2f} | {seconds[0][1]:.2f} |"
    return text, {"state": len(state), **figures, "micro-batch": seconds[0][0], "compared": seconds[0][1]}


def main() -> None:
    """Print the table."""
    study = Study(__doc__, queries(), groups=GROUPS)
    groups = study.groups
    print(f"| {groups:,} groups | state, MB |", *(f"{n:,} |" for n in TOUCHED), "all | micro-batch of 1, s | compared, s |")
    print("|---" * (len(TOUCHED) + 5) + "|")
    for name in study.parts:
        study.row(name, *row(name, *queries()[name], groups))


if __name__ == "__main__":
    main()
