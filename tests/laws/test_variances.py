"""Variances from sums of values and of squares are those of the definition, whatever came and went, and rounded once."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdsl.engine.columnar import accumulator_columns as columns_module
from streamdsl.engine.columnar.accumulator_columns import AccumulatorColumns
from streamdsl.engine.columnar.accumulators import StddevAccumulator, VarianceAccumulator
from streamdsl.engine.columnar.digits import integer_square_parts
from streamdsl.udm.builtin import Stddev, Variance
from tests.laws.profiles import examples
from tests.laws.totals import numbers, result, totals_of

squared = st.one_of(
    numbers, st.sampled_from([1e-200, 1.5e200, -1e150, 2.0**-450, 2.0**450, 2**31, -(2**31) - 1, 2**70, 1e16, 1e16 + 2])
)


@pytest.mark.parametrize("room", [2**62, 2**34])
@examples(300)
@given(st.lists(squared, max_size=8), st.lists(squared, max_size=8))
def test_variances_are_those_of_the_built_ins_whatever_came_and_went(room: int, values: list[Any], others: list[Any]) -> None:
    with patch.object(columns_module, "_ROOM", room):
        for accumulator, definition in ((VarianceAccumulator(0), Variance()), (StddevAccumulator(0), Stddev())):
            expected = definition.compute_result(values)
            assert repr(result(accumulator, totals_of(accumulator, values, others))) == repr(expected)
            found = one_by_one(accumulator, values, others)
            assert found is None or repr(found[0]) == repr(expected)


def one_by_one(accumulator: VarianceAccumulator, values: Sequence[Any], others: Sequence[Any]) -> list[Any] | None:
    """Return, in a list, the result of rows that are added and subtracted one by one; None if they take the columnar path."""
    totals = AccumulatorColumns(1)
    for sign, each in [*((1, value) for value in [*others, *values]), *((-1, value) for value in others)]:
        parts = accumulator.parts_of(each)
        if parts is None:
            return None
        totals.add_row(parts, 0, sign)
    try:
        return [accumulator.result(totals, 0, len(values))]
    except ArithmeticError:
        return None


@examples(300)
@given(st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**33), 2**33)), min_size=1, max_size=4))
def test_the_digits_of_squares_of_integers_add_up_to_them(values: list[int]) -> None:
    totals = [0] * len(values)
    for part in integer_square_parts(-2, None, np.array(values, dtype=np.int64)):
        assert part.amounts is not None
        for place, amount in enumerate(part.amounts.tolist()):
            assert abs(amount) <= part.largest
            totals[place] += amount << (32 * int(part.column[1]))
    assert totals == [value * value for value in values]


@examples(300)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30), st.sampled_from([0.0, 1.0, 1e3, 1e9, 1e15, 1e17]))
def test_variances_of_values_far_from_zero_are_rounded_once(values: list[float], centre: float) -> None:
    moved = [centre + value for value in values]
    accumulator = VarianceAccumulator(0)
    assert result(accumulator, totals_of(accumulator, moved)) == statistics.variance(map(Fraction, moved)).__float__()


@pytest.mark.parametrize(
    "values",
    [
        [Decimal("0.1"), 2, 0.5],
        [Fraction(1, 3), None, 1],
        [Decimal(1), math.nan],
        [np.float32(0.1), 2.5],
        [Decimal("NaN"), 1],
        [Decimal(7)],
    ],
)
def test_variances_of_numbers_of_other_kinds_are_exact_too(values: list[Any]) -> None:
    variance, deviation = VarianceAccumulator(0), StddevAccumulator(0)
    assert repr(result(variance, totals_of(variance, values, [Decimal(9), "x", 7]))) == repr(Variance().compute_result(values))
    assert repr(result(deviation, totals_of(deviation, values, [7.25]))) == repr(Stddev().compute_result(values))
