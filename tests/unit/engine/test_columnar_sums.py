"""The sums of the columnar window operator: exact whatever comes and goes, rounded once, of the type of what is left."""

from __future__ import annotations

import math
from datetime import timedelta
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
from streamdsl.engine.columnar.accumulators import AvgAccumulator, CountAccumulator, SumAccumulator
from streamdsl.engine.columnar.exact import integers
from streamdsl.engine.columnar.kernels import DIGIT_ADDER, DIGIT_SUMMER, add_digits, sum_digits
from streamdsl.engine.columnar.terms import ROWS, ColumnKey, FloatTerms, Part, Terms
from streamdsl.expr import kernel
from streamdsl.expr.table import column_of
from streamdsl.udm.builtin import Avg, Count, Sum
from tests.laws.totals import numbers, real, result, totals_of


@pytest.mark.parametrize("room", [2**62, 2**34])
@given(st.lists(numbers, max_size=8), st.lists(numbers, max_size=8))
def test_sums_are_those_of_the_built_ins_whatever_came_and_went(room: int, values: list[Any], others: list[Any]) -> None:
    with patch.object(columns_module, "_ROOM", room):
        total, mean, count = (make(0) for make in (SumAccumulator, AvgAccumulator, CountAccumulator))
        assert repr(result(total, totals_of(total, values, others))) == repr(Sum().compute_result(values))
        assert repr(result(mean, totals_of(mean, values, others))) == repr(Avg().compute_result(values))
        assert result(count, totals_of(count, values, others)) == Count().compute_result(values)


@given(st.lists(st.one_of(real, st.floats()), min_size=1, max_size=20), st.data())
def test_compiled_loops_add_what_columns_add(values: list[float], data: st.DataObject) -> None:
    column, signs = np.array(values), np.array(data.draw(st.lists(st.sampled_from([1, -1]), min_size=20, max_size=20)))
    index = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(values), max_size=len(values))))
    terms = Terms(len(values), reals=[FloatTerms(0, None, column)]).times(signs[: len(values)])
    by_columns, by_loop, by_compiled = AccumulatorColumns(3), AccumulatorColumns(3), AccumulatorColumns(3)
    by_columns.add(index, terms)
    DIGIT_ADDER.load()
    with patch.object(kernel, "CALL_FROM", 1):
        by_compiled.add(index, terms)
        with patch.object(DIGIT_ADDER, "over", lambda _: add_digits):
            by_loop.add(index, terms)
    counted: list[ColumnKey] = [(0, "floats"), (0, "nan"), (0, "inf"), (0, "-inf")]
    for key in [*counted, *((0, weight) for weight in range(-40, 40))]:
        expected = by_columns.counts(key).tolist()
        assert by_loop.counts(key).tolist() == expected
        assert by_compiled.counts(key).tolist() == expected


@given(st.lists(real, min_size=1, max_size=40))
def test_float_sums_are_rounded_once(values: list[float]) -> None:
    total = SumAccumulator(0)
    try:
        expected = float(sum(map(Fraction, values)))
    except OverflowError:
        expected = math.inf if sum(map(Fraction, values)) > 0 else -math.inf
    assert result(total, totals_of(total, values)) == expected
    DIGIT_SUMMER.load()
    with patch.object(kernel, "CALL_FROM", 1):
        assert result(total, totals_of(total, values)) == expected
        with patch.object(DIGIT_SUMMER, "over", lambda _: sum_digits):
            assert result(total, totals_of(total, values)) == expected


def test_a_sum_that_lies_on_a_tie_is_rounded_to_even() -> None:
    total = SumAccumulator(0)
    for values in ([2.0**53, 1.0], [2.0**53, 3.0], [2.0**53, 1.0, 2.0**-60], [1e16, 1.0, -1e-30]):
        assert result(total, totals_of(total, values)) == math.fsum(values)


def test_the_type_of_a_sum_is_that_of_what_is_left() -> None:
    total = SumAccumulator(0)
    assert repr(result(total, totals_of(total, [1, 2], [0.5]))) == "3"
    assert repr(result(total, totals_of(total, [1.0], [7]))) == "1.0"
    assert result(total, totals_of(total, [None], [3])) is None


@pytest.mark.parametrize(
    "values",
    [[Decimal("0.1"), 2], [Fraction(1, 3), None, 1], [Decimal(1), Decimal(1)], [timedelta(1), timedelta(hours=1)]],
)
def test_what_is_no_number_of_python_is_kept_as_it_is(values: list[Any]) -> None:
    total, mean = SumAccumulator(0), AvgAccumulator(0)
    assert result(total, totals_of(total, values, [Decimal(9), "x", 7])) == Sum().compute_result(values)
    assert result(mean, totals_of(mean, values, [[1, 2], 7])) == Avg().compute_result(values)


def test_digits_are_carried_before_an_accumulator_overflows() -> None:
    total, totals = SumAccumulator(0), AccumulatorColumns(1)
    for _ in range(80):
        terms = Terms(2**14)
        total.add_terms(np.full(2**14, 2**45), None, terms)
        totals.add(np.zeros(2**14, dtype=np.intp), terms)
    assert integers(totals, 0).tolist() == [80 * 2**59]


def test_slots_that_cancel_are_zero_even_after_a_carry() -> None:
    total, totals = SumAccumulator(0), AccumulatorColumns(2)
    column = column_of([2**44, 2**44, -(2**45)])
    terms = Terms(3, [Part(ROWS, None, np.array([1, 1, -2]), 2)])
    total.add_terms(column, None, terms)
    totals.add(np.array([0, 0, 0]), terms)
    totals.carry()
    totals.add(np.array([1]), Terms(1, [Part(ROWS, None, np.array([1]), 1)]))
    assert totals.are_zero(np.array([0, 1])).tolist() == [True, False]


places = st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True)
amounts = st.sampled_from([1, -1, 2**30, 2**31 - 1, -(2**31), 2**33])


@given(
    st.lists(st.tuples(st.sampled_from(["add", "merge", "copy", "from", "up", "clear"]), places, places, amounts), max_size=12)
)
def test_counts_that_four_bytes_do_not_hold_take_eight(steps: list[tuple[str, list[int], list[int], int]]) -> None:
    totals, plain = AccumulatorColumns(4), [0] * 4
    for step, slots, others, amount in steps:
        at, sources = np.array(slots), np.array((others * 4)[: len(slots)])
        given = AccumulatorColumns(len(slots))
        given.add(np.arange(len(slots)), counted(amount, len(slots)))
        before = list(plain)
        if step == "add":
            totals.add(at, counted(amount, len(slots)))
        elif step == "merge":
            totals.merge(at, given)
        elif step == "copy":
            totals.copy(at, sources)
        elif step == "from" and not set(slots) & set(sources.tolist()):
            totals.add_from(at, sources)
        elif step == "up":
            totals.run_up(at, np.array([0]))
        elif step == "clear":
            totals.clear(at)
        for place, (slot, source) in enumerate(zip(slots, sources.tolist(), strict=True)):
            plain[slot] = {
                "add": before[slot] + amount,
                "merge": before[slot] + amount,
                "copy": before[source],
                "from": before[slot] + (0 if set(slots) & set(sources.tolist()) else before[source]),
                "up": sum(before[each] for each in slots[: place + 1]),
                "clear": 0,
            }[step]
        assert totals.counts(ROWS).tolist() == plain
        assert totals.take(at).counts(ROWS).tolist() == [plain[slot] for slot in slots]


def counted(amount: int, rows: int) -> Terms:
    return Terms(rows, [Part(ROWS, None, np.full(rows, amount), abs(amount))])
