"""Every kind of windows beside its oracle (tests/operators), which shares no code with it and goes from tick to tick."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdsl.temporal import CHTRow, Lifetime
from tests.laws.choices import SHRINKING
from tests.laws.profiles import examples
from tests.operators import kinds
from tests.operators.entry import Life

LIGHT = settings(examples(120), phases=SHRINKING)
KINDS = {name: each for entry in kinds().values() for name, each in entry.instances.items() if each[1] is not None}
LIVES = st.lists(st.builds(lambda le, length: (le, le + length), st.integers(-8, 20), st.integers(0, 9)), max_size=6)


@pytest.mark.parametrize("kind", KINDS)
@LIGHT
@given(lives=LIVES)
def test_windows_and_members_are_what_the_definition_says_tick_by_tick(kind: str, lives: list[Life]) -> None:
    windows, oracle = KINDS[kind]
    assert oracle is not None
    rows: list[CHTRow[Any]] = [CHTRow(le, re, number) for number, (le, re) in enumerate(lives)]
    expected = oracle(lives)
    assert [(tuple(window), [row.payload for row in members]) for window, members in windows.divide(rows)] == expected
    assert windows.over([Lifetime(*life) for life in lives]) == [window for window, _ in expected]


@pytest.mark.parametrize("kind", KINDS)
@LIGHT
@given(lives=LIVES, until=st.integers(-8, 30))
def test_until_leaves_the_windows_that_end_by_then(kind: str, lives: list[Life], until: int) -> None:
    windows, oracle = KINDS[kind]
    assert oracle is not None
    expected = [window for window, _ in oracle(lives) if window[1] <= until]
    assert windows.over([Lifetime(*life) for life in lives], until) == expected
