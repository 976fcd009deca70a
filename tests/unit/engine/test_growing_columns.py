"""Columns that grow: what one takes over from another stays apart from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from streamdsl.engine.growing import GrowingColumn, LazyColumn
from streamdsl.expr.deferred import DeferredColumn
from streamdsl.expr.table import column_of
from streamdsl.io.arrow_held import ArrowSource
from tests.laws.profiles import examples


def test_columns_that_share_values_grow_and_change_apart() -> None:
    numbers = np.array([1])
    one, other = GrowingColumn(numbers), GrowingColumn(np.array([0]))
    one.append(np.array([2]))
    other.append(np.array([0]))
    other.follow(one, 0)
    one.append(np.array([7]))
    other.append(np.array([9]))
    other.put(np.array([0]), 5)
    assert (one.values.tolist(), other.values.tolist()) == ([1, 2, 7], [5, 2, 9])
    assert numbers.tolist() == [1]


def test_the_first_values_are_others_as_long_as_nobody_writes() -> None:
    numbers = np.array([1, 2])
    column = GrowingColumn(np.empty(0, dtype=np.int64))
    column.append(numbers)
    assert column.values.base is numbers
    column.put(slice(0, 1), 9)
    assert (numbers.tolist(), column.values.tolist()) == ([1, 2], [9, 2])


texts = st.lists(st.one_of(st.none(), st.sampled_from(["a", "b", "x" * 30])), min_size=1, max_size=5)
numbers = st.lists(st.one_of(st.none(), st.integers(-3, 3)), min_size=1, max_size=5)
steps = st.lists(st.tuples(st.sampled_from(["append", "append", "keep", "keep", "read"]), st.one_of(texts, numbers)), max_size=8)


@examples(150)
@given(st.one_of(texts, numbers), steps, st.data())
def test_values_that_wait_are_those_that_were_put_in(
    first: list[Any], steps: list[tuple[str, list[Any]]], data: st.DataObject
) -> None:
    column, model = LazyColumn(held(first)), list(first)
    for what, values in steps:
        rows = np.array(data.draw(st.lists(st.integers(0, len(model) - 1), min_size=1, max_size=4)), dtype=np.intp)
        if what == "append":
            column.append(held(values) if data.draw(st.booleans()) else column_of(values))
            model += values
        elif what == "keep":
            column.clear(np.setdiff1d(np.arange(len(model)), rows))
            column.keep(rows)
            model = [model[row] for row in rows.tolist()]
        else:
            assert column.take(rows).tolist() == [model[row] for row in rows.tolist()]
            assert column.one(int(rows[0])) == model[rows[0]]
    assert column.take(np.arange(len(model))).tolist() == model


def held(values: list[Any]) -> DeferredColumn:
    """Return values as all but the first rows of an Arrow column."""
    return DeferredColumn(ArrowSource(pa.chunked_array([[values[0], *values]])), slice(1, None))
