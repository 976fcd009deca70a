"""`where=` of an aggregate comes first: on rows that it leaves out the argument is not evaluated."""

from __future__ import annotations

from typing import Any

import streamdsl as sd
from udm_examples import Median

ROWS: list[tuple[int, int, dict[str, Any]]] = [(1, 2, {"m": None}), (2, 3, {"m": 4}), (12, 13, {"m": None})]


def test_the_argument_is_evaluated_on_chosen_rows_alone() -> None:
    windowed = sd.from_rows(ROWS).tumbling_window(10)
    query = windowed.aggregate(n=sd.count(), total=sd.sum(lambda e: e.m + 1, where=lambda e: e.m == 4))
    expected = query.run(engine="reference").cht()
    assert query.run().cht() == expected
    assert [row.payload.total for row in expected] == [5, None]


def test_so_it_is_for_modules() -> None:
    query = sd.from_rows(ROWS).tumbling_window(10).aggregate(mid=sd.Agg(Median(), lambda e: e.m + 1, lambda e: e.m == 4))
    assert query.run().cht() == query.run(engine="reference").cht()
