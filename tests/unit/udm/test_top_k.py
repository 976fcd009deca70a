"""The k largest rows of a window."""

from __future__ import annotations

from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import FieldNotFound, QueryError

NAN = float("nan")


def top(k: int, values: list[Any]) -> list[tuple[int, Any]]:
    rows = sd.from_rows([(n, n + 1, {"v": value}) for n, value in enumerate(values)])
    found = rows.tumbling_window(100).top_k(k, by="v", rank=True).run().cht()
    return sorted((row.payload[0], row.payload[1].v) for row in found)


def test_ties_share_a_rank_and_are_all_kept() -> None:
    assert top(1, [3, 7, 7, 2]) == [(1, 7), (1, 7)]
    assert top(2, [3, 7, 7, 2]) == [(1, 7), (1, 7)]
    assert top(3, [3, 7, 7, 3, 2]) == [(1, 7), (1, 7), (3, 3), (3, 3)]
    assert top(9, [3, 1]) == [(1, 3), (2, 1)]


def test_nan_is_the_largest_and_none_takes_no_part() -> None:
    assert [(rank, str(value)) for rank, value in top(2, [None, 5.0, NAN, 4.0])] == [(1, "nan"), (2, "5.0")]
    assert [rank for rank, _ in top(1, [NAN, NAN, 5.0])] == [1, 1]
    assert top(3, [None, None]) == []


def test_rows_are_ranked_by_dates_text_and_tuples() -> None:
    assert top(1, ["b", "c", "a"]) == [(1, "c")]
    assert top(1, [(1, "b"), (2, "a")]) == [(1, (2, "a"))]


@pytest.mark.parametrize("k", [0, -1, 1.5, "2"])
def test_k_is_a_number_of_rows(k: Any) -> None:
    with pytest.raises(QueryError, match="at least one row"):
        sd.source("s").tumbling_window(5).top_k(k, by="v")


def test_the_field_is_looked_up_where_the_query_is_written() -> None:
    with pytest.raises(FieldNotFound, match=r"'fair'.*zone, fare"):
        sd.from_rows([(1, 2, {"zone": "A", "fare": 3})]).tumbling_window(5).top_k(1, by="fair")
