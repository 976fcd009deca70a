"""The k largest rows of a window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

import streamdsl as sd
from streamdsl.errors import FieldNotFound, QueryError, UserCodeError

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


@dataclass(frozen=True)
class Trip:
    """A plain payload."""

    zone: str
    fare: int


@dataclass(frozen=True)
class Checked(Trip):
    """One whose making runs code, so that it is kept whole."""

    def __post_init__(self) -> None:
        assert self.fare >= 0


class Row(NamedTuple):
    """A named tuple."""

    zone: str
    fare: int


MAKERS: list[Callable[[str, int], Any]] = [Trip, Checked, Row, lambda zone, fare: {"zone": zone, "fare": fare}]
ROWS = [("A", 5), ("B", 9), ("A", 7), ("B", 1), ("A", 7)]
FARE: Callable[[Any], Any] = lambda e: e.fare  # noqa: E731


def bound(make: Callable[[str, int], Any], declared: bool) -> sd.Stream[Any]:
    rows = [(n, n + 1, make(*row)) for n, row in enumerate(ROWS)]
    return sd.from_rows(rows) if declared else sd.source("s").bind(s=rows)


@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("make", MAKERS, ids=["dataclass", "checked", "named tuple", "mapping"])
def test_a_named_rank_is_a_field_beside_those_of_the_row(make: Callable[[str, int], Any], declared: bool, engine: Any) -> None:
    rows = bound(make, declared)
    found = rows.tumbling_window(100).top_k(2, by=FARE, rank="place").run(engine=engine)
    assert [dict(row.payload) for row in found.cht()] == [
        {"place": 1, "zone": "B", "fare": 9},
        {"place": 2, "zone": "A", "fare": 7},
        {"place": 2, "zone": "A", "fare": 7},
    ]
    assert found.to_pandas().columns.tolist() == ["le", "re", "place", "zone", "fare"]


@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("make", MAKERS, ids=["dataclass", "checked", "named tuple", "mapping"])
def test_in_groups_the_key_comes_first_and_once(make: Callable[[str, int], Any], declared: bool, engine: Any) -> None:
    rows = bound(make, declared)
    keys: list[tuple[Any, dict[str, Any]]] = [
        ("zone", {}),
        (["zone"], {}),
        (lambda e: e.zone, {}),
        (lambda e: e.fare > 5, {"key": True}),
        (lambda e: {"dear": e.fare > 5}, {"dear": True}),
    ]
    for key, first in keys:
        found = rows.group_by(key).tumbling_window(100).top_k(1, by=FARE, rank="place").run(engine=engine)
        expected = {**first, "place": 1, "zone": "B", "fare": 9}
        if not first:
            expected = {"zone": "B", "place": 1, "fare": 9}
        row = next(row.payload for row in found.cht() if row.payload.fare == 9)
        assert dict(row) == expected
        assert list(row) == list(expected)


def test_the_fields_of_tuples_and_scalars_have_their_names() -> None:
    pairs = sd.from_rows([(1, 2, ("A", 5))]).tumbling_window(10).top_k(1, by=lambda e: e[1], rank="place")
    bare = sd.from_rows([(1, 2, 5)]).tumbling_window(10).top_k(1, by=lambda e: e, rank="place")
    kept = sd.from_rows([(1, 2, {"items": 3, "v": 1})]).tumbling_window(10).top_k(1, by="v", rank="place")
    found = [dict(row.payload) for query in (pairs, bare, kept) for row in query.run().cht()]
    assert found == [{"place": 1, "_0": "A", "_1": 5}, {"place": 1, "value": 5}, {"place": 1, "items": 3, "v": 1}]


def test_a_name_is_given_once() -> None:
    rows = sd.from_rows([(1, 2, Trip("A", 3))])
    with pytest.raises(
        QueryError, match=r"cannot name two fields 'fare': there is a field of the row of this name\nHint: choose"
    ):
        rows.tumbling_window(5).top_k(1, by="fare", rank="fare")
    with pytest.raises(QueryError, match=r"two fields 'zone': there is a part of the key"):
        rows.group_by("zone").tumbling_window(5).top_k(1, by="fare", rank="zone")
    with pytest.raises(QueryError, match=r"two fields 'zone': there is a field of the row"):
        rows.group_by(lambda e: {"zone": e.fare}).tumbling_window(5).top_k(1, by="fare", rank="place")
    late = sd.source("s").tumbling_window(5).top_k(1, by="fare", rank="fare")
    with pytest.raises(UserCodeError, match=r"two fields 'fare'"):
        late.run({"s": [(1, 2, Trip("A", 3))]})


@pytest.mark.parametrize("rank", [1, None, "", ["place"]])
def test_a_rank_is_asked_for_or_named(rank: Any) -> None:
    with pytest.raises(QueryError, match="rank is True, False or a field's name, not"):
        sd.source("s").tumbling_window(5).top_k(1, by="v", rank=rank)
