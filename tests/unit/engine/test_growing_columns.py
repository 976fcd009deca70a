"""Columns that grow: what one takes over from another stays apart from it."""

from __future__ import annotations

import numpy as np

from streamdsl.engine.sorted.columns import GrowingColumn


def test_columns_that_share_values_grow_and_change_apart() -> None:
    given = np.array([1])
    one, other = GrowingColumn(given), GrowingColumn(np.array([0]))
    one.append(np.array([2]))
    other.append(np.array([0]))
    other.follow(one, 0)
    one.append(np.array([7]))
    other.append(np.array([9]))
    other.put(np.array([0]), 5)
    assert (one.values.tolist(), other.values.tolist()) == ([1, 2, 7], [5, 2, 9])
    assert given.tolist() == [1]


def test_the_first_values_are_others_as_long_as_nobody_writes() -> None:
    given = np.array([1, 2])
    column = GrowingColumn(np.empty(0, dtype=np.int64))
    column.append(given)
    assert column.values.base is given
    column.put(slice(0, 1), 9)
    assert (given.tolist(), column.values.tolist()) == ([1, 2], [9, 2])
