"""Random input for the laws: a physical stream for each source, cut into pushes.

A law is tried on *seeds*, and everything about an example follows from its seed. Hypothesis draws the seeds; if it drew the
events too, most of its examples would be variations of one another. It makes the choices of a failing example small
(`tests/laws/choices.py`), and `smallest` leaves out what the generators cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

from hypothesis import strategies as st

from streamdsl.temporal import CHT, INFINITY, Cti, Event, Record, problems
from streamdsl.testing import arrival_order
from tests.laws.choices import shown

Push: TypeAlias = tuple[str, tuple[Event[Any], ...]]

SEEDS = st.integers(0, 2**24 - 1)
WHOLE = 10**6


@dataclass(frozen=True)
class Scenario:
    """Pushes in order: a source's name and a batch of its events."""

    pushes: tuple[Push, ...]

    def __str__(self) -> str:
        return "\n".join(f"  {source}> {', '.join(map(str, events))}" for source, events in self.pushes)


def history(rng: Random, unending: bool, max_size: int) -> CHT[Any]:
    """Return a random CHT of records `k`, `v`: spread out, or crowded so that times are often equal."""
    low, high = rng.choice([(-12, 25), (-3, 6)])
    rows = []
    for _ in range(rng.randint(0, max_size)):
        le = rng.randint(low, high - 1)
        end = INFINITY if unending and rng.random() < 0.2 else min(le + rng.randint(1, high - low), high)
        rows.append((le, end, Record(k=rng.choice("abc"), v=rng.randint(-3, 3))))
    return CHT.from_rows(rows)


def scenario(rng: Random, inputs: int = 1, unending: bool = True, max_size: int = 8) -> Scenario:
    """Return random streams for sources `s0`, `s1`, ..., each pushed whole, event by event, or in random batches."""
    largest = rng.choice([1, 1, 4, WHOLE])
    due: list[tuple[float, Push]] = []
    for number in range(inputs):
        stream, time = arrival_order(history(rng, unending, max_size), rng), 0.0
        while stream:
            size = len(stream) if largest == WHOLE else rng.randint(1, largest)
            time += rng.random()
            due.append((time, (f"s{number}", tuple(stream[:size]))))
            del stream[:size]
    return shown(Scenario(tuple(push for _, push in sorted(due, key=lambda item: item[0]))))


def smallest(failing: Scenario, fails: Callable[[Scenario], bool]) -> Scenario:
    """Return a part of a failing scenario that fails too, and of which no smaller part does."""
    while True:
        smaller = (Scenario(pushes) for pushes in _smaller(failing.pushes) if _is_legal(pushes))
        found = next((candidate for candidate in smaller if fails(candidate)), None)
        if found is None:
            return failing
        failing = found


def _smaller(pushes: tuple[Push, ...]) -> Iterator[tuple[Push, ...]]:
    """Yield scenarios without one event's whole story, without one push, without one event."""
    for id in {event.id for _, events in pushes for event in events if not isinstance(event, Cti)}:
        kept = [(source, tuple(e for e in events if isinstance(e, Cti) or e.id != id)) for source, events in pushes]
        yield tuple(push for push in kept if push[1])
    for i, (source, events) in enumerate(pushes):
        yield pushes[:i] + pushes[i + 1 :]
        if len(events) > 1:
            yield from ((*pushes[:i], (source, events[:j] + events[j + 1 :]), *pushes[i + 1 :]) for j in range(len(events)))


def _is_legal(pushes: tuple[Push, ...]) -> bool:
    sources = {source for source, _ in pushes}
    return not any(problems([e for name, events in pushes if name == source for e in events]) for source in sources)
