"""Bound parameters and queries on Spark: constants and one plan, so the answer is the definition's."""

from __future__ import annotations

from typing import Any

import pytest

import streamdsl as sd
from tests.spark.helpers import check, history, stream

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

LIMIT = sd.functions.param("limit", int, default=0)


def test_a_bound_parameter_is_a_constant_that_runs_natively() -> None:
    query = stream().where(lambda e: e.v > LIMIT).select(v=lambda e: e.v * LIMIT)
    check(query.bind(limit=1), {"s": history(1)}, native=True)


def test_a_default_counts_on_spark_too() -> None:
    rows = [(row.le, row.re, row.payload) for row in history(2)]
    query = stream().where(lambda e: e.v > LIMIT)
    assert query.run({"s": rows}, engine="spark").cht() == query.run({"s": rows}, engine="reference").cht()


def test_a_parameter_of_a_lambda_that_is_called_row_by_row() -> None:
    query: sd.Stream[Any] = stream().where(lambda e: e.v > LIMIT or e.k == "a")
    check(query.bind(limit=1), {"s": history(3)})


def test_a_query_in_the_place_of_a_source() -> None:
    busy = stream("s").where(lambda e: e.v > LIMIT).shift(3)
    query = stream("t").join(stream("u"), on="k", select=lambda a, b: {"v": a.v - b.v}).bind(t=busy, u=busy.shift(2))
    check(query.bind(limit=-1), {"s": history(4)})


def test_several_outputs_are_what_each_query_gives() -> None:
    rows = [(row.le, row.re, row.payload) for row in history(5, unending=False)]
    busy = stream().where(lambda e: e.v > LIMIT)
    queries: dict[str, sd.Stream[Any]] = {"busy": busy, "n": busy.tumbling_window(5).aggregate(n=sd.count())}
    on_spark = sd.composing.run_all(queries, {"s": rows}, engine="spark")
    for name, result in sd.composing.run_all(queries, {"s": rows}, engine="reference").items():
        assert on_spark[name].cht() == result.cht()
