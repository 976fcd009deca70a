"""Random input for the laws: a physical stream for each source, cut into pushes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from streamdsl.temporal import CHT, Event
from streamdsl.testing import arrival_order
from streamdsl.testing.strategies import chts, records


@dataclass(frozen=True)
class Scenario:
    """Pushes in order: a source's name and a batch of its events."""

    pushes: tuple[tuple[str, tuple[Event[Any], ...]], ...]


def histories(unending: bool, max_size: int = 8) -> st.SearchStrategy[CHT[Any]]:
    """Return CHTs of records `k`, `v`: spread out, or crowded so that times are often equal."""
    crowded = chts(records(), max_size, min_time=-3, max_time=6, unending=unending)
    return st.one_of(chts(records(), max_size, unending=unending), crowded)


@st.composite
def scenarios(draw: st.DrawFn, inputs: int = 1, unending: bool = True, max_size: int = 8) -> Scenario:
    """Return random streams for sources `s0`, `s1`, ..., each pushed whole, event by event, or in random batches."""
    rng = draw(st.randoms(use_true_random=False))
    drawn = [draw(histories(unending, max_size)) for _ in range(inputs)]
    largest = draw(st.sampled_from([1, 1, 4, 1000]))
    pieces: list[tuple[float, str, tuple[Event[Any], ...]]] = []
    for number, history in enumerate(drawn):
        stream, due = arrival_order(history, rng), 0.0
        while stream:
            size = len(stream) if largest == 1000 else rng.randint(1, largest)
            due += rng.random()
            pieces.append((due, f"s{number}", tuple(stream[:size])))
            del stream[:size]
    return Scenario(tuple((source, events) for _, source, events in sorted(pieces, key=lambda piece: piece[:2])))
