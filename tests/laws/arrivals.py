"""Random input for the models of paper 004: tuples of some inputs in any order that their punctuation allows."""

from __future__ import annotations

from random import Random
from typing import Any, TypeAlias

from streamdsl.progress import Punctuation, Tuple, low_water_marks
from streamdsl.temporal import INFINITY

Arrival: TypeAlias = tuple[int, Tuple | Punctuation]


def payload(rng: Random, place: int) -> dict[str, Any]:
    return {"n": place, "k": rng.choice("ab"), "v": rng.choice([None, 0, 1, 2, 2.5, 10**20, -1e16])}


def stream(rng: Random, place: int, ordered: bool = False) -> list[Tuple | Punctuation]:
    """Return tuples, and punctuation that none of the later ones breaks: tight, loose, repeated, or less than before."""
    spread = rng.choice([3, 12, 40])
    times = [rng.randint(-spread, spread) for _ in range(rng.randint(0, 12))]
    times = sorted(times, key=lambda t: t + (0 if ordered else rng.choice([0, 2, 30]) * rng.random()))
    often = rng.random()
    found: list[Tuple | Punctuation] = []
    for at, mark in enumerate(low_water_marks(times)):
        if rng.random() < often and mark < INFINITY:
            found.append(Punctuation(mark - rng.choice([0, 0, 0, 1, 5])))
        found += [Tuple(ts, payload(rng, place + at)) for ts in times[at : at + 1]]
    return found


def arrivals(rng: Random, inputs: int = 1, ordered: bool = False) -> list[Arrival]:
    """Return the streams of some inputs, as they arrive: one may be far ahead of another."""
    waiting = [stream(rng, 100 * input, ordered) for input in range(inputs)]
    weights, found = [rng.choice([1, 5, 50]) for _ in waiting], []
    while any(waiting):
        input = rng.choices(range(inputs), [w if items else 0 for w, items in zip(weights, waiting, strict=True)])[0]
        found.append((input, waiting[input].pop(0)))
    return found


def tuples(given: list[Arrival], input: int = 0) -> list[Tuple]:
    """Return an input's tuples."""
    return [item for each, item in given if each == input and isinstance(item, Tuple)]


def bound(given: list[Arrival], input: int = 0) -> float:
    """Return the bound on an input's low-water mark: its largest punctuation."""
    return max((item.value for each, item in given if each == input and isinstance(item, Punctuation)), default=float("-inf"))
