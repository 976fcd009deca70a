"""Ordered streams of packets, each late by some time, as they arrive together: deterministic, and made while they are fed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from streamdsl.progress import Punctuation, Tuple

SECOND = 1_000
Arrival: TypeAlias = tuple[int, int, Tuple | Punctuation]
"""When it comes, at which input, and what."""


@dataclass(frozen=True)
class Stream:
    """So many packets a second at an input, `delay` seconds late; their addresses are one of `groups` pairs."""

    input: int
    rate: int
    delay: float = 0
    groups: int = 256
    seed: int = 0

    def columns(self, seconds: int) -> tuple[Any, Any]:
        """Return times in milliseconds, in order, and groups."""
        rng = np.random.default_rng(self.seed)
        n = self.rate * seconds
        return np.sort(rng.integers(0, seconds * SECOND, n)), rng.integers(0, self.groups, n)


def arrive(
    streams: Sequence[Stream], seconds: int, payload: Callable[[int], Any] = lambda group: (group, -group)
) -> Iterator[Arrival]:
    """Yield packets as they arrive, and from each stream punctuation every second, as a timer gives it to an ordered stream."""
    marks = np.arange(1, seconds + 1) * SECOND
    parts = []
    for number, stream in enumerate(streams):
        ts, groups = stream.columns(seconds)
        late = int(stream.delay * SECOND)
        parts.append((np.concatenate([ts, marks]) + late, ts, groups, np.full(len(ts) + len(marks), number)))
    clock = np.concatenate([part[0] for part in parts])
    places = np.concatenate([np.arange(len(part[0])) for part in parts])
    order = np.lexsort((places, clock))
    numbers = np.concatenate([part[3] for part in parts])
    for now, number, place in zip(clock[order].tolist(), numbers[order].tolist(), places[order].tolist(), strict=True):
        _, ts, groups, _ = parts[number]
        is_tuple = place < len(ts)
        item = Tuple(int(ts[place]), payload(int(groups[place]))) if is_tuple else Punctuation(int(marks[place - len(ts)]))
        yield now, streams[number].input, item
