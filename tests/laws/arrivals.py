"""Random input for the models of paper 004, in any order that its punctuation allows, and what laws look at in their output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, TypeAlias

from streamdsl.progress import JointPunctuation, Operator, Punctuation, Tuple, low_water_marks
from streamdsl.temporal import INFINITY
from tests.laws.choices import shown

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
    return shown(found)


def tuples(given: list[Arrival], input: int = 0) -> list[Tuple]:
    """Return an input's tuples."""
    return [item for each, item in given if each == input and isinstance(item, Tuple)]


def bound(given: list[Arrival], input: int = 0) -> float:
    """Return the bound on an input's low-water mark: its largest punctuation."""
    return max((item.value for each, item in given if each == input and isinstance(item, Punctuation)), default=float("-inf"))


NOTHING = float("-inf")


def steps(operator: Operator, given: list[Arrival]) -> Iterator[tuple[list[Arrival], list[Any]]]:
    """Feed an operator and yield after each push what has come so far, and all that has gone out; the last is its close."""
    out: list[Any] = []
    for at, (input, item) in enumerate(given):
        out += operator.push(item, input)
        yield given[: at + 1], out
    for input in range(operator.inputs):
        given = [*given, (input, Punctuation(INFINITY))]
        out += operator.push(Punctuation(INFINITY), input)
        yield given, out
    assert operator.buffered == 0


def bag(items: Any) -> Counter[str]:
    return Counter(map(repr, items))


def sent(out: list[Any], on: str) -> list[float]:
    return [item.value for item in out if isinstance(item, Punctuation) and item.on == on]


def last(out: list[Any], on: str) -> float:
    """The last punctuation on an attribute; each must be more than the one before it."""
    values = sent(out, on)
    assert values == sorted(set(values))
    return values[-1] if values else NOTHING


def less(value: float, by: float) -> float:
    return value if value >= INFINITY else value - by


def assert_sound(out: list[Any], of: Callable[[Any], dict[str, float]]) -> None:
    """No result breaks punctuation that has gone out before it."""
    reached: dict[str, float] = {}
    joint: tuple[float, float] = (NOTHING, NOTHING)
    for item in out:
        if isinstance(item, Punctuation):
            reached[item.on] = item.value
        elif isinstance(item, JointPunctuation):
            joint = item.left, item.right
        else:
            values = of(item)
            assert all(values[on] >= value for on, value in reached.items() if on in values), (item, reached)
            assert "left" not in values or values["left"] >= joint[0] or values["right"] >= joint[1]
