"""Tuples that are laid out alike, against their items asked for one by one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdsl.expr.table import column_of
from streamdsl.io.uniform import Fields, UniformRows

SHORT = st.integers(-(2**31), 2**31 - 1)
OF_ONE_LENGTH = {
    "short": SHORT,
    "three digits": st.integers(2**31 + 1, 2**45 - 1).flatmap(lambda size: st.sampled_from([size, -size])),
    "four digits": st.integers(2**45, 2**60 - 1).flatmap(lambda size: st.sampled_from([size, -size])),
    "real": st.floats(),
    "truth": st.booleans(),
}
ANYTHING = st.one_of(*OF_ONE_LENGTH.values(), st.integers(), st.text(max_size=2), st.none(), st.just(np.float64(1)))
LAYOUTS = st.recursive(
    st.sampled_from(sorted(OF_ONE_LENGTH)), lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6
).filter(lambda layout: isinstance(layout, tuple))


def values_of(layout: Any) -> st.SearchStrategy[Any]:
    return st.tuples(*map(values_of, layout)) if isinstance(layout, tuple) else OF_ONE_LENGTH[layout]


def fields_of(rows: list[Any]) -> Fields | None:
    uniform = UniformRows.of(rows)
    return None if uniform is None else uniform.fields(0, len(rows))


def by_one(layout: Any, rows: list[Any]) -> Any:
    """Return the columns as they are defined."""
    if isinstance(layout, tuple):
        return [by_one(field, [row[place] for row in rows]) for place, field in enumerate(layout)]
    return column_of(rows)


def shown(fields: Fields | Any) -> Any:
    """Return columns so that they compare: with their types, and each bit of a float."""
    if isinstance(fields, list):
        return [shown(field) for field in fields]
    return fields.dtype, fields.tobytes() if fields.dtype != object else fields.tolist()


@given(LAYOUTS.flatmap(lambda layout: st.tuples(st.just(layout), st.lists(values_of(layout), min_size=1, max_size=9))))
def test_columns_are_those_of_items_one_by_one(case: tuple[Any, list[Any]]) -> None:
    layout, rows = case
    fields = fields_of(rows)
    assert fields is not None
    assert shown(fields) == shown(by_one(layout, rows))


@given(LAYOUTS.flatmap(lambda layout: st.tuples(st.just(layout), st.lists(values_of(layout), min_size=1, max_size=5))), st.data())
def test_what_one_row_has_otherwise_is_seen(case: tuple[Any, list[Any]], data: st.DataObject) -> None:
    rows = case[1]
    other = data.draw(st.lists(ANYTHING, max_size=4).map(tuple))
    rows.insert(data.draw(st.integers(0, len(rows))), other)
    fields = fields_of(rows)
    assert fields is None or shown(fields) == shown(by_one(tuple("x" for _ in other), rows))


@given(LAYOUTS.flatmap(lambda layout: st.tuples(st.just(layout), st.lists(values_of(layout), min_size=1, max_size=9))), st.data())
def test_rows_are_read_in_parts_up_to_one_that_is_other(case: tuple[Any, list[Any]], data: st.DataObject) -> None:
    layout, rows = case
    uniform = UniformRows.of([*rows, data.draw(ANYTHING)])
    assert uniform is not None
    first = data.draw(st.integers(0, len(rows) - 1))
    stop = data.draw(st.integers(first + 1, len(rows)))
    fields = uniform.fields(first, stop)
    assert fields is not None
    assert shown(fields) == shown(by_one(layout, rows[first:stop]))
    assert uniform.fields(first, len(rows) + 1) is None


class Place(NamedTuple):
    x: int
    y: int


class Number(int):
    pass


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [(2**60,)],
        [(1,), (2**31,)],
        [(True,), (1,)],
        [(1,), (1.0,)],
        [("a",)],
        [(None,)],
        [(1, [2])],
        [Place(1, 2)],
        [(Number(1),)],
        [(np.int64(1),)],
        [(b"1234",)],
        [(1,), 1],
        [1, 2],
    ],
    ids=repr,
)
def test_others_are_left(rows: list[Any]) -> None:
    assert fields_of(rows) is None
