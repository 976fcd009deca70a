"""The law for one row of choices, over data that hypothesis draws, and shrinks."""

from __future__ import annotations

from hypothesis import HealthCheck, given, note, seed, settings
from hypothesis import strategies as st

from tests.laws.choices import SHRINKING
from tests.laws.doors.case import ROWS, run


def law(number: int, examples: int, chance: int = 0) -> None:
    """Run a row of the covering array with so many examples; another `chance` gives others.

    What hypothesis tries first is the simplest of all that can be drawn, here nothing at all: it would be much the same history
    in each row, and would take as long as another one.
    """
    row = ROWS[number]

    @seed(number * 1_000_003 + chance)
    @settings(
        max_examples=examples + 1,
        deadline=None,
        database=None,
        derandomize=False,
        phases=SHRINKING,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        draw = data.conjecture_data.draw
        if draw(st.booleans()):
            run(row, draw, note)

    holds()
