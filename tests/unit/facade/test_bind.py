"""`bind`: parameters, sources, other queries; and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

import streamdsl as sd
from streamdsl.errors import QueryError, SchemaError, UnitError
from streamdsl.plan.node import Join, Source

ROWS = [(1, 2, {"k": "a", "v": 7}), (3, 4, {"k": "b", "v": 12})]
LIMIT = sd.functions.param("limit", int)
S: sd.Stream[Any] = sd.source("s")
DEAR = S.where(lambda e: e.v > LIMIT)


@dataclass(frozen=True)
class Trip:
    k: str
    v: int


def values(query: sd.Stream[Any], *args: Any, **kwargs: Any) -> list[Any]:
    return [row.payload["v"] for row in query.run(*args, **kwargs).cht()]


def test_a_query_is_bound_again_and_again() -> None:
    assert values(DEAR.bind(limit=5), {"s": ROWS}) == [7, 12]
    assert values(DEAR.bind(limit=10), {"s": ROWS}) == [12]
    assert values(DEAR.bind(s=ROWS).bind(limit=10)) == values(DEAR.bind(limit=10, s=ROWS)) == [12]


def test_explain_shows_parameters_by_name_until_they_have_values() -> None:
    assert "where_1 e.v > $limit" in DEAR.explain()
    assert "where_1 e.v > 10" in DEAR.bind(limit=10).explain()
    few = sd.functions.param("limit", int, default=4)
    assert "where_1 e.v > 4" in S.where(lambda e: e.v > few).explain()


def test_sessions_take_bound_queries() -> None:
    session = DEAR.bind(limit=10).open()
    assert [e.id for e in session.push([sd.point("a", 1, {"v": 7}), sd.point("b", 1, {"v": 11})])] == ["b"]  # type: ignore[union-attr]


def test_a_query_without_a_value_for_its_parameters_lists_them() -> None:
    other = sd.functions.param("city", str | None)
    query = DEAR.where(lambda e: e.k == other)
    expected = r"without a value: limit \(int\), city \(str \| None\)\nHint: query.bind\(limit=..., city=...\)"
    for start in (lambda: query.run({"s": ROWS}), query.open, lambda: query.explain("spark"), lambda: query.on_spark(None)):
        with pytest.raises(QueryError, match=expected):
            start()
    with pytest.raises(QueryError, match=r"without a value: limit \(int\)\n"):
        query.bind(city=None).run({"s": ROWS})
    assert values(query.bind(city=None, limit=1), {"s": ROWS}) == []


def test_a_default_counts_until_another_value_is_bound() -> None:
    query = S.where(sd.col("v") > sd.functions.param("limit", int, default=10))
    assert values(query, {"s": ROWS}) == [12]
    assert values(query.bind(limit=5), {"s": ROWS}) == [7, 12]


@pytest.mark.parametrize(
    ("type", "value", "told"),
    [
        (int, "ten", "the parameter 'limit' is of type int, not str: 'ten'"),
        (int | None, 1.5, r"of type int \| None, not float"),
        (list, [1], "list is not a constant that an expression can hold"),
        (list[int], 1, "says nothing of a single value"),
    ],
)
def test_a_value_of_another_type_is_refused(type: Any, value: object, told: str) -> None:
    query = S.where(sd.col("v") > sd.functions.param("limit", type))
    with pytest.raises(QueryError, match=told):
        query.bind(limit=value)
    with pytest.raises(QueryError, match=told):
        sd.functions.param("limit", type, default=value)


def test_numbers_are_numbers() -> None:
    factor = sd.functions.param("factor", float)
    query = S.select(lambda e: e.v * factor)
    assert query.bind(factor=2).plan() == S.select(lambda e: e.v * 2).plan()
    assert query.bind(factor=np.float64(2.5)).plan() == S.select(lambda e: e.v * 2.5).plan()


def test_a_parameter_may_be_a_duration_in_the_unit_of_the_stream() -> None:
    longest = sd.functions.param("longest", timedelta | int | str)
    query = sd.source("s", unit="s").alter_duration(longest)
    for value in (90, "90s", timedelta(seconds=90)):
        assert query.bind(longest=value).plan() == sd.source("s", unit="s").alter_duration(90).plan()


def test_a_name_that_is_not_open_says_what_is() -> None:
    with pytest.raises(QueryError, match="leaves no 'limits' open; it has the sources: s; the parameters: limit"):
        DEAR.bind(limits=5)
    with pytest.raises(QueryError, match=r"the parameters: \(none\)"):
        DEAR.bind(limit=5).bind(limit=6)
    with pytest.raises(QueryError, match="'s' is both a source and a parameter"):
        S.where(sd.col("v") > sd.functions.param("s")).bind(s=5)
    with pytest.raises(QueryError, match="two different parameters of this query are called 'limit'"):
        DEAR.where(sd.col("v") < sd.functions.param("limit", float)).bind(limit=5)
    with pytest.raises(QueryError, match="has the name that bind"):
        sd.functions.param("my limit")


def test_a_query_is_the_input_of_another() -> None:
    late = sd.source("raw").shift(10)
    joined = sd.source("s").join(sd.source("t"), on="k").bind(s=late)
    assert joined.open().sources == ["raw", "t"]
    rows = joined.run({"raw": ROWS, "t": [(0, 50, {"k": "a"})]}).cht()
    assert [(row.le, row.payload[0].v) for row in rows] == [(11, 7)]


def test_a_bounded_query_brings_its_input_along() -> None:
    assert values(DEAR.bind(limit=10, s=sd.from_rows(ROWS))) == [12]
    once = DEAR.bind(limit=10, s=sd.from_rows(ROWS).where(lambda e: e.v > 0))
    assert values(once.bind()) == [12]


def test_a_source_that_is_read_twice_becomes_one_query_that_is_read_twice() -> None:
    other = sd.source("raw").shift(10)
    plan = S.join(S.shift(1)).bind(s=other).plan()
    assert isinstance(plan, Join)
    assert plan.left is plan.right.inputs[0] is other.plan()


def test_a_query_may_read_a_source_of_the_name_that_it_is_bound_to_and_names_may_be_swapped() -> None:
    inner = S.where(lambda e: e.v > 10)
    assert values(S.where(lambda e: e.v > 0).bind(s=inner), {"s": ROWS}) == [12]
    a, b = sd.source("a"), sd.source("b")
    swapped = a.anti_join(b, on="k").bind(a=b, b=a)
    assert swapped.plan() == b.anti_join(a, on="k").plan()


def test_the_units_of_a_query_and_of_the_source_that_reads_it_agree() -> None:
    seconds: sd.Stream[Any] = sd.source("raw", unit="s")
    assert S.tumbling_window(60).aggregate(n=sd.count()).bind(s=seconds).plan().unit == "s"
    assert sd.source("s", unit="s").shift("1m").bind(s=sd.source("raw")).plan().unit == "s"
    with pytest.raises(UnitError, match="the source 's' counts time in ms, the query that is bound to it in s"):
        sd.source("s", unit="ms").bind(s=seconds)


def test_a_query_gives_what_the_source_declares() -> None:
    trips = sd.source("s", Trip).where(lambda e: e.v > 5)
    raw = sd.source("raw")
    made = trips.bind(s=raw.select(lambda e: Trip(e.k, e.v)))
    assert [row.payload for row in made.run({"raw": ROWS}).cht()] == [Trip("a", 7), Trip("b", 12)]
    with pytest.raises(SchemaError, match=r"the source 's' has payloads of .*Trip.*, the query that is bound to it gives"):
        trips.bind(s=raw.select(k=lambda e: e.k))


def test_a_source_with_a_policy_reads_no_query() -> None:
    ordered = sd.source("s", progress=sd.Progress.ordered())
    with pytest.raises(QueryError, match="has progress= or on_violation="):
        ordered.bind(s=sd.source("raw"))
    assert ordered.bind(s=[(1, 2, "x")]).run().cht().rows[0].payload == "x"


def test_binding_leaves_the_lines_of_operators_as_they_are() -> None:
    before = DEAR.plan().written
    assert DEAR.bind(limit=5).plan().written == DEAR.bind(s=sd.source("raw")).plan().written == before
    assert isinstance(DEAR.bind(s=ROWS).plan().inputs[0], Source)


def test_a_parameter_is_made_outside_of_the_lambda_that_reads_it() -> None:
    for write in (
        lambda: S.where(lambda e: e.v > sd.functions.param("limit", int)),
        lambda: S.select(lambda e: max(sd.functions.param("limit", int) for _ in "a")),
        lambda: S.tumbling_window(5).aggregate(lambda w: w.count() + sd.functions.param("limit", int)),
    ):
        with pytest.raises(QueryError, match=r"a parameter is made outside .*\nHint: limit = sd.functions.param"):
            write()
    assert "opaque" in S.where(lambda e: e.param > 5 or e.v).explain()
