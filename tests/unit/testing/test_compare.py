from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdsl.temporal import CHT, Record
from streamdsl.testing import assert_cht_equal
from streamdsl.testing.compare import close
from streamdsl.testing.strategies import chts, records


@dataclass(frozen=True)
class Stats:
    n: int
    mean: float


EQUAL = [
    ([(1, 5, "x")], [(1, 5, "x"), (3, 3, "no time at all")]),
    ([(1, 5, 1)], [(1, 5, 1.0)]),
    ([(1, 5, float("nan"))], [(1, 5, float("nan"))]),
    ([(1, 5, {"a": 0.1 + 0.2})], [(1, 5, Record(a=0.3))]),
    ([(1, 5, Stats(1, 0.1 + 0.2))], [(1, 5, Stats(1, 0.3))]),
    ([(1, 5, ("k", [0.1 + 0.2]))], [(1, 5, ("k", [0.3]))]),
    ([(1, 5, 1e-13), (1, 5, 2.0)], [(1, 5, 2.0), (1, 5, 0.0)]),
    ([(1, 5, math.inf)], [(1, 5, math.inf)]),
]

DIFFERENT = [
    ([(1, 5, "x")], []),
    ([(1, 5, "x"), (1, 5, "x")], [(1, 5, "x")]),
    ([(1, 5, "x")], [(1, 6, "x")]),
    ([(1, 5, "x")], [(0, 5, "x")]),
    ([(1, 5, 1.0)], [(1, 5, 1.0 + 1e-8)]),
    ([(1, 5, 1)], [(1, 5, 2)]),
    ([(1, 5, "1")], [(1, 5, 1)]),
    ([(1, 5, None)], [(1, 5, 0)]),
    ([(1, 5, None)], [(1, 5, 0.0)]),
    ([(1, 5, {"a": 1})], [(1, 5, {"b": 1})]),
    ([(1, 5, (1, 2))], [(1, 5, [1, 2])]),
    ([(1, 5, (1, 2))], [(1, 5, (1, 2, 3))]),
    ([(1, 5, Stats(1, 0.5))], [(1, 5, {"n": 1, "mean": 0.5})]),
]


@pytest.mark.parametrize(("a", "b"), EQUAL)
def test_equal(a: list[Any], b: list[Any]) -> None:
    assert_cht_equal(CHT.from_rows(a), CHT.from_rows(b))
    assert_cht_equal(b, a)


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_different(a: list[Any], b: list[Any]) -> None:
    with pytest.raises(AssertionError, match="the CHTs differ"):
        assert_cht_equal(a, b)
    with pytest.raises(AssertionError, match="the CHTs differ"):
        assert_cht_equal(CHT.from_rows(b), CHT.from_rows(a))


def test_close_rows_are_matched_one_to_one_even_where_the_first_choice_is_wrong() -> None:
    assert_cht_equal([(0, 1, (1.0, 9)), (0, 1, (1.4, 8))], [(0, 1, (1.3, 9)), (0, 1, (1.1, 8))], rel=0, abs=0.5)
    assert_cht_equal([(0, 1, 1.0), (0, 1, 1.4)], [(0, 1, 0.7), (0, 1, 1.1)], rel=0, abs=0.35)
    assert_cht_equal([(0, 1, [1.0, 3.0]), (0, 1, [1.2, 0.0])], [(0, 1, [1.1, 0.1]), (0, 1, [1.3, 3.1])], rel=0, abs=0.35)
    with pytest.raises(AssertionError, match=r"only in the first \(1 of 2"):
        assert_cht_equal([(0, 1, 1.0), (0, 1, 1.1)], [(0, 1, 1.0), (0, 1, 2.0)], rel=0.2)


def test_the_difference_lists_rows_of_both_sides_and_says_how_many_more() -> None:
    with pytest.raises(AssertionError) as raised:
        assert_cht_equal([(0, 1, i) for i in range(30)], [(0, 2, "other"), (0, 1, 7)])
    text = str(raised.value)
    assert "only in the first (29 of 30 rows)" in text
    assert "... 9 more" in text
    assert "only in the second (1 of 2 rows):\n    [0, 2) 'other'" in text


@given(chts(records()), st.randoms())
def test_a_cht_equals_itself_in_any_order(cht: CHT[Any], rng: Any) -> None:
    rows = cht.rows
    rng.shuffle(rows)
    assert_cht_equal(CHT(rows), cht)


def test_closeness_is_relative_and_absolute() -> None:
    assert close(1e12, 1e12 + 1)
    assert not close(1e12, 1e12 + 1e6)
    assert close(0.0, 1e-13)
    assert close(True, 1)
