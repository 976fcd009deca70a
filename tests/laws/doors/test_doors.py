"""The law from door to door, for rows of a covering array, and that no pair of choices is left out."""

from __future__ import annotations

import os

import pytest

from tests.laws.doors.case import DIMENSIONS, ROWS, SOME, legal, often
from tests.laws.doors.covering import legal_pairs, pairs_of
from tests.laws.doors.law import law
from tests.laws.profiles import MANY

NUMBERS = range(len(ROWS)) if MANY else SOME
PARTS = 24
EXAMPLES = max(1, MANY // len(ROWS))
"""For each row; where there are few, as many rows of each part."""
CHANCE = 0 if MANY < 100 else int.from_bytes(os.urandom(3))


@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_in_the_sink_is_what_the_input_means(part: int) -> None:
    for number in NUMBERS[part::PARTS][: MANY or None]:
        law(number, EXAMPLES, CHANCE)


def test_no_pair_of_choices_that_may_go_together_is_left_out() -> None:
    covered = {pair for row in ROWS for pair in pairs_of(row)}
    assert covered == legal_pairs(DIMENSIONS, legal)


def test_rows_that_are_run_often_leave_out_none_but_pairs_of_which_there_are_very_many() -> None:
    covered = {pair for number in SOME for pair in pairs_of(ROWS[number])}
    left_out = {tuple(sorted(name for name, _ in pair)) for pair in legal_pairs(DIMENSIONS, legal) - covered}
    assert not any(often(*names) for names in left_out)
    assert {choice for number in SOME for choice in ROWS[number].items()} == {
        (name, value) for name, values in DIMENSIONS.items() for value in values
    }


def test_each_choice_may_go_with_most_of_the_others() -> None:
    pairs = legal_pairs(DIMENSIONS, legal)
    for name, values in DIMENSIONS.items():
        for value in values:
            for other in DIMENSIONS:
                assert other == name or any({(name, value), (other, each)} in pairs for each in DIMENSIONS[other]), (name, value)
