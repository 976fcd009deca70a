"""What is told from the spans of windows that rows are in is what each window's members tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdsl.engine.buffered.holistic import HOLISTIC
from streamdsl.engine.buffered.members import MemberPairs, Members, Values
from streamdsl.engine.columnar.accumulator_columns import AccumulatorColumns
from streamdsl.engine.columnar.accumulators import AvgAccumulator, SumAccumulator
from streamdsl.engine.columnar.terms import ROWS, Part, Terms
from streamdsl.expr.table import column_of, flatnonzero
from streamdsl.temporal.payload import payload_key
from streamdsl.udm.builtin import Avg, Builtin, Collect, CountDistinct, First, Last, Max, Median, Min, Quantile, Sum

FLOATS = st.sampled_from([0.0, -0.0, 1.0, 1.5, -2.25, 0.1, 0.2, 1e300, -1e300, 5e-324, math.inf, -math.inf, math.nan])
INTEGERS = st.integers(-3, 3) | st.sampled_from([2**40, -(2**40), 2**62, -(2**62)])
COLUMNS = [st.lists(FLOATS, min_size=1, max_size=12), st.lists(INTEGERS, min_size=1, max_size=12)]
HOLISTICS: Sequence[Builtin] = [
    Min(),
    Max(),
    Median(),
    Quantile(0.9),
    Quantile(0.3, "inverted_cdf"),
    CountDistinct(),
    First(),
    Last(),
    Collect(),
]


@st.composite
def spans(draw: st.DrawFn, n_rows: int) -> Members:
    """So many rows, each in some windows that stand together, and no window without one."""
    n_windows = draw(st.integers(1, 9))
    first = [draw(st.integers(0, n_windows - 1)) for _ in range(n_rows)]
    last = [draw(st.integers(lo + 1, n_windows)) for lo in first]
    if draw(st.booleans()):
        first, last = sorted(first), sorted(last)
    members = Members(np.arange(n_rows), np.array(first), np.array(last), n_windows)
    return members.at(flatnonzero(members.sizes))


def of_windows(members: Members, values: Sequence[Any]) -> list[list[Any]]:
    """Return the values of each window's members, in the order of the rows."""
    rows = list(zip(members.first.tolist(), members.last.tolist(), values, strict=True))
    return [[value for lo, hi, value in rows if lo <= window < hi] for window in range(members.n_windows)]


def are_alike(found: Sequence[Any], expected: Sequence[Any]) -> bool:
    return list(map(payload_key, found)) == list(map(payload_key, expected))


@pytest.mark.parametrize("function", HOLISTICS, ids=lambda function: function.label)
@given(st.one_of(COLUMNS), st.data())
def test_aggregates_of_spans_are_those_of_the_members(function: Builtin, values: list[Any], data: st.DataObject) -> None:
    members = data.draw(spans(len(values)))
    narrow = patch("streamdsl.engine.buffered.members.NARROW", data.draw(st.sampled_from([0, 2**16])))
    long = patch("streamdsl.engine.buffered.holistic.LONG", data.draw(st.sampled_from([0, 256])))
    with narrow, long:
        found = HOLISTIC[type(function)](function, Values(column_of(values), members))
    if found is not None:
        assert are_alike(found.tolist(), [function.of_values(each) for each in of_windows(members, values)])


@given(st.lists(st.one_of(FLOATS, INTEGERS), min_size=1, max_size=12) | st.one_of(COLUMNS), st.data())
def test_sums_of_spans_are_those_of_the_members(values: list[Any], data: st.DataObject) -> None:
    members = data.draw(spans(len(values)))
    for function, accumulator in ((Sum(), SumAccumulator(0)), (Avg(), AvgAccumulator(0))):
        terms = Terms(len(values), [Part(ROWS, None, None, 1)])
        accumulator.add_terms(column_of(values), None, terms)
        found = accumulator.results(AccumulatorColumns.of_spans(members.first, members.last, members.n_windows, terms))
        assert are_alike(found.tolist(), [function.of_values(each) for each in of_windows(members, values)])


@given(st.integers(1, 8), st.data())
def test_members_are_the_same_as_ranges_pairs_and_some_windows(n_rows: int, data: st.DataObject) -> None:
    members = data.draw(spans(n_rows))
    with patch("streamdsl.engine.buffered.members.NARROW", data.draw(st.sampled_from([0, 2**16]))):
        at, lo, hi = members.ranges
    expected = of_windows(members, list(range(n_rows)))
    assert [at[start:stop].tolist() for start, stop in zip(lo.tolist(), hi.tolist(), strict=True)] == expected
    assert members.sizes.tolist() == list(map(len, expected))
    assert members.n_pairs == sum(map(len, expected))
    windows, rows = members.pairs()
    of_pairs = Members.of_pairs(MemberPairs(windows, rows), members.n_windows)
    assert sorted(zip(windows.tolist(), rows.tolist(), strict=True)) == [
        (w, row) for w, each in enumerate(expected) for row in each
    ]
    assert [sorted(each) for each in of_windows(of_pairs, of_pairs.places.tolist())] == expected
    chosen = np.array(sorted(data.draw(st.sets(st.integers(0, members.n_windows - 1)))), dtype=np.intp)
    some = members.at(chosen)
    assert of_windows(some, some.places.tolist()) == [expected[window] for window in chosen.tolist()]
