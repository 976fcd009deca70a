"""The inputs whose answers are recorded: some chosen by hand, others by chance, always the same (docs/secret-profiles.md)."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

from benchmarks.engines.engine import Engine

Times: TypeAlias = list[tuple[int, int]]
"""Of each tuple in order of arrival its time and its batch."""

WINDOWS: Final = ((5, 2), (4, 2), (3, 3))
GAPS: Final = ((2, 5),)
CHOSEN: Final[dict[str, Times]] = {
    "one tuple": [(7, 1)],
    "simultaneous tuples of one batch": [(6, 1), (6, 1), (6, 1), (13, 2)],
    "simultaneous tuples of several batches": [(5, 1), (5, 2), (5, 2), (13, 3)],
    "a gap in which windows are empty": [(6, 1), (30, 2), (31, 3)],
    "times below zero": [(-7, 1), (-5, 2), (-1, 3), (0, 4), (3, 5)],
    "the edges of windows": [(0, 1), (3, 2), (4, 3), (5, 4), (6, 5), (8, 6), (12, 7)],
    "a batch in which time goes on": [(6, 1), (7, 1), (12, 1), (13, 2), (14, 2)],
    "a batch out of order": [(8, 1), (6, 1), (20, 2), (19, 2), (31, 3)],
}
LATE: Final[dict[str, Times]] = {
    "late for an open window": [(6, 1), (8, 2), (7, 3), (20, 4)],
    "late for a closed window": [(6, 1), (20, 2), (7, 3), (30, 4)],
    "late in a batch with others": [(6, 1), (9, 1), (7, 2), (13, 2), (12, 3), (30, 4)],
    "late by several batches": [(6, 1), (20, 2), (21, 3), (7, 4), (8, 5), (30, 6)],
    "before the first tuple": [(20, 1), (3, 2), (40, 3)],
}
RANDOM: Final = 8
FEW: Final = 1
"""Of so many random inputs of each window a slow engine is asked."""


class Input(NamedTuple):
    """An input: what it is about, a window, and tuples."""

    about: str
    size: int
    slide: int
    tuples: list[Any]
    late: bool
    """A tuple comes after another batch has had a later time."""
    long: bool
    """Time goes on inside of a batch."""


def inputs(engine: Engine) -> Iterator[Input]:
    """Yield the inputs of which an engine is asked; a slow one is asked of those chosen by hand for its first window alone."""
    for number, (size, slide) in enumerate(_windows(engine)):
        chosen = {} if engine.is_slow and number else CHOSEN | LATE
        chance = {f"by chance, {n}": _random(size, slide, n) for n in range(FEW if engine.is_slow else RANDOM)}
        for about, times in (chosen | chance).items():
            found = Input(
                about, size, slide, _tuples(times), _is_late(times), len(set(times)) > len({batch for _, batch in times})
            )
            if engine.late != "refused" or times == sorted(times):
                yield found


def _windows(engine: Engine) -> tuple[tuple[int, int], ...]:
    if all(size == slide for size, slide in engine.windows):
        return engine.windows
    return (*WINDOWS, *(GAPS if engine.gaps else ()))


def _random(size: int, slide: int, number: int) -> Times:
    """Return times by chance: time goes on inside of batches in every second, and in every fourth some are late."""
    rng = Random(f"{size} {slide} {number}")
    time, batch, found = rng.randint(-2 * size, 4 * size), 1, Times()
    for _ in range(rng.randint(4, 9)):
        found.append((time, batch))
        time += rng.choice([0, 0, 1, 1, 2, slide, size, size + slide + 1])
        batch += 1 if number % 2 and time > found[-1][0] else rng.choice([0, 1])
    if number % 4 == 3:
        batches = [batch for _, batch in found]
        moved = sorted(found, key=lambda each: each[0] + rng.choice([0, 0, slide, size]))
        found = [(t, batch) for (t, _), batch in zip(moved, batches, strict=True)]
    return found


def _tuples(times: Times) -> list[Any]:
    return [(number, t, number, batch) for number, (t, batch) in enumerate(times, 1)]


def _is_late(times: Times) -> bool:
    return any(t < before and batch > of for n, (t, batch) in enumerate(times) for before, of in times[:n])
