"""Every kind of windows beside an oracle that shares no code with it: what the definitions say, tick by tick (paper 001, III.B).

The oracles know lifetimes as sets of ticks, and find windows by looking at every tick in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from streamdsl.temporal import CHTRow, Lifetime
from streamdsl.windows import Count, Hopping, Session, Snapshot, Windows
from tests.laws.profiles import examples

Life: TypeAlias = tuple[int, int]
Divided: TypeAlias = list[tuple[Life, list[int]]]
"""Windows, each with the numbers of its members."""

FIRST, LAST = -40, 80
LIGHT = settings(examples(120), phases=[Phase.explicit, Phase.generate, Phase.shrink])


def overlapping(windows: Iterable[Life], lives: Sequence[Life]) -> Divided:
    """Return the windows that share a tick with some life, with the numbers of those lives."""
    found = []
    for start, end in windows:
        members = [number for number, (le, re) in enumerate(lives) if set(range(le, re)) & set(range(start, end))]
        if members:
            found.append(((start, end), members))
    return found


def grid(size: int, hop: int, offset: int) -> Callable[[Sequence[Life]], Divided]:
    """A window starts at every tick that is a multiple of the hop away from the offset."""
    starts = [tick for tick in range(FIRST, LAST) if (tick - offset) % hop == 0]
    return lambda lives: overlapping([(start, start + size) for start in starts], lives)


def snapshots(lives: Sequence[Life]) -> Divided:
    """A window goes on from tick to tick until some life starts or ends."""
    found: list[Life] = []
    start = FIRST
    for tick in range(FIRST + 1, LAST + 1):
        if any(tick in life for life in lives if life[0] < life[1]) or tick == LAST:
            found.append((start, tick))
            start = tick
    return overlapping(found, lives)


def sessions(gap: int, longest: int | None = None) -> Callable[[Sequence[Life]], Divided]:
    """Two ticks next to each other are of one session if some life, with the gap after it, has both."""

    def divided(lives: Sequence[Life]) -> Divided:
        covered = [set(range(le, re + gap)) for le, re in lives if le < re]
        windows: list[Life] = []
        for tick in range(FIRST, LAST):
            if not any(tick in ticks for ticks in covered):
                continue
            goes_on = any({tick - 1, tick} <= ticks for ticks in covered)
            if goes_on and windows:
                windows[-1] = windows[-1][0], tick + 1
            else:
                windows.append((tick, tick + 1))
        return overlapping([piece for window in windows for piece in cut(window, longest)], lives)

    return divided


def cut(window: Life, longest: int | None) -> list[Life]:
    pieces = [window]
    while longest is not None and pieces[-1][1] - pieces[-1][0] > longest:
        start, end = pieces.pop()
        pieces += [(start, start + longest), (start + longest, end)]
    return pieces


def counted(n: int, by_end: bool) -> Callable[[Sequence[Life]], Divided]:
    """A window starts at every tick at which some life starts, if n - 1 later ones follow, and ends after the last of these."""

    def divided(lives: Sequence[Life]) -> Divided:
        points = [life[by_end] if life[0] < life[1] else None for life in lives]
        ticks = [tick for tick in range(FIRST, LAST) if tick in points]
        found: Divided = []
        for place, start in enumerate(ticks):
            if place + n <= len(ticks):
                inside = ticks[place : place + n]
                found.append(((start, inside[-1] + 1), [number for number, point in enumerate(points) if point in inside]))
        return found

    return divided


KINDS: dict[str, tuple[Windows, Callable[[Sequence[Life]], Divided]]] = {
    "tumbling": (Hopping(6, 6, 1), grid(6, 6, 1)),
    "hopping": (Hopping(9, 4, 3), grid(9, 4, 3)),
    "hopping with gaps": (Hopping(3, 7), grid(3, 7, 0)),
    "snapshot": (Snapshot(), snapshots),
    "session": (Session(3), sessions(3)),
    "session, cut": (Session(4, 6), sessions(4, 6)),
    "session, cut more often than its gap": (Session(6, 2), sessions(6, 2)),
    "count by start": (Count(2), counted(2, by_end=False)),
    "count of one": (Count(1), counted(1, by_end=False)),
    "count by end": (Count(3, "end"), counted(3, by_end=True)),
}
LIVES = st.lists(st.builds(lambda le, length: (le, le + length), st.integers(-8, 20), st.integers(0, 9)), max_size=6)


@pytest.mark.parametrize("kind", KINDS)
@LIGHT
@given(lives=LIVES)
def test_windows_and_members_are_what_the_definition_says_tick_by_tick(kind: str, lives: list[Life]) -> None:
    windows, oracle = KINDS[kind]
    rows: list[CHTRow[Any]] = [CHTRow(le, re, number) for number, (le, re) in enumerate(lives)]
    expected = oracle(lives)
    assert [(tuple(window), [row.payload for row in members]) for window, members in windows.divide(rows)] == expected
    assert windows.over([Lifetime(*life) for life in lives]) == [window for window, _ in expected]


@pytest.mark.parametrize("kind", KINDS)
@LIGHT
@given(lives=LIVES, until=st.integers(-8, 30))
def test_until_leaves_the_windows_that_end_by_then(kind: str, lives: list[Life], until: int) -> None:
    windows, oracle = KINDS[kind]
    expected = [window for window, _ in oracle(lives) if window[1] <= until]
    assert windows.over([Lifetime(*life) for life in lives], until) == expected
