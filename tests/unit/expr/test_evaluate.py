"""Columns in, columns out: types, errors with their row, choices, keys, projections."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from streamdsl.errors import QueryError
from streamdsl.expr.evaluate import Inputs, RowError, evaluate, key_row, key_values, project, truth
from streamdsl.expr.expression_functions import col, is_none, lit, not_, udf, when
from streamdsl.expr.facade import node_of
from streamdsl.expr.nodes import Constant, Field, Key, Whole
from streamdsl.expr.row_evaluator import evaluate_row, project_row, to_plain_value
from streamdsl.expr.schema import Schema, Shape, row_view
from streamdsl.expr.table import Table, column_of
from streamdsl.expr.tracing import trace
from streamdsl.temporal import Record


@dataclass
class Trip:
    zone: str
    fare: float
    n: int


TRIPS = [Trip("A", 10.0, 0), Trip("B", 4.0, 2), Trip("A", 1.0, 4)]


def inputs(payloads: list[Any], **rest: Any) -> Inputs:
    return Inputs((Table.from_payloads(payloads),), len(payloads), **rest)


def column(function: Callable[[Any], Any], payloads: list[Any]) -> Any:
    return evaluate(trace(function, (None,)), inputs(payloads))


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (lambda e: e.fare * 2, "float64"),
        (lambda e: e.n + 1, "int64"),
        (lambda e: e.n / 2, "float64"),
        (lambda e: (e.n > 1) & (e.fare > 2), "bool"),
        (lambda e: e.zone == "A", "bool"),
        (lambda e: not_(e.n), "bool"),
        (lambda e: 7, "int64"),
        (lambda e: e.n if e.zone == "A" else -1, "int64"),
        (lambda e: when(e.n > 1).then(e.n).otherwise(0), "int64"),
        (lambda e: when(e.n > 1).then(e.n).otherwise(0.5), "object"),
        (lambda e: e.n * 2**62, "object"),
    ],
)
def test_columns_are_typed_where_every_value_is_of_one_type(function: Callable[[Any], Any], dtype: str) -> None:
    assert column(function, TRIPS).dtype == dtype


def test_typed_columns_are_never_turned_into_python_values(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> Any:
        raise AssertionError("this ran in Python")

    module = import_module("streamdsl.expr.evaluate")
    monkeypatch.setattr(module._ColumnEvaluator, "each", never)
    monkeypatch.setattr(module, "evaluate_row", never)
    functions: list[Callable[[Any], Any]] = [
        lambda e: (e.fare > 2) & (e.n < 3),
        lambda e: e.fare * 2 + e.n / 7 - e.n // 2,
        lambda e: -e.n % 3 == 0,
        lambda e: e.zone == "A",
        lambda e: when(e.n > 0).then(e.fare / e.n).otherwise(0.0),
    ]
    assert all(len(column(f, TRIPS)) == 3 for f in functions)


def test_integers_stay_exact_beyond_int64() -> None:
    assert column(lambda e: e * e, [2**40, 3]).tolist() == [2**80, 9]
    assert column(lambda e: -e, [-(2**63)]).tolist() == [2**63]
    assert column(lambda e: e / 3, [2**62 + 1]).tolist() == [(2**62 + 1) / 3]
    assert column(lambda e: e == 2.0**53, [2**53 + 1, 2**53]).tolist() == [False, True]
    assert column(lambda e: e + 1, [2**63 - 1, 2**70]).tolist() == [2**63, 2**70 + 1]


def test_values_are_plain_python() -> None:
    found = column(lambda e: np.float64(e) if e else np.int64(3), [1, 0]).tolist()
    assert [type(value) for value in found] == [float, int]
    assert type(column(lambda e: (np.int64(e), 1), [1]).tolist()[0][0]) is int
    assert column_of([np.float64(1.5), np.float64(2)]).dtype == np.float64


def test_the_first_row_that_fails_is_named() -> None:
    for function in (lambda e: 1 / e.n, lambda e: 1 / e.n if e.zone else 0, lambda e: (e.zone, 1 / e.n)):
        with pytest.raises(RowError) as caught:
            column(function, [Trip("A", 1.0, 2), Trip("B", 1.0, 0), Trip("C", 1.0, 0)])
        assert (caught.value.row, type(caught.value.cause)) == (1, ZeroDivisionError)
    with pytest.raises(RowError) as caught:
        project(trace(lambda e: {"a": 6 / e.a, "b": 6 / e.b}, (None,)), inputs([{"a": 1, "b": 0}, {"a": 0, "b": 1}]))
    assert caught.value.row == 0


def test_the_row_is_named_where_an_expression_that_an_opaque_function_gives_fails() -> None:
    choice = when(col("a")).then(1).otherwise(2)
    payloads = [{"a": 1}, {"a": np.array([1, 2])}]
    for function in (lambda e: choice if True and e else 0, lambda e: (choice, 1) if True and e else 0):
        with pytest.raises(RowError) as caught:
            evaluate(trace(function, (None,)), inputs(payloads))
        assert (caught.value.row, type(caught.value.cause)) == (1, ValueError)


def test_an_opaque_function_is_called_once_for_every_row_up_to_the_error() -> None:
    calls: list[int] = []

    def noted(e: Any) -> Any:
        calls.append(e)
        return 1 / e

    with pytest.raises(RowError):
        evaluate(trace(noted, (None,)), inputs([3, 0, 1]))
    assert calls == [3, 0]


def test_nothing_fails_without_rows() -> None:
    for function in (lambda e: 1 / e.n, lambda e: e.missing, lambda e: lit(1) / 0, lambda e: len(e.n), lambda e: (e.a, 1)):
        assert evaluate(trace(function, (None,)), inputs([])).tolist() == []
        assert project(trace(function, (None,)), inputs([])).payloads() == []


def test_only_the_chosen_branch_is_evaluated() -> None:
    seen: list[int] = []

    @udf
    def noted(x: int) -> int:
        seen.append(x)
        return -x

    choice = when(col("n") == 0).then(None).when(col("n") > 3).then(noted(col("n"))).otherwise(8 // col("n"))
    assert evaluate(node_of(choice), inputs(TRIPS)).tolist() == [None, 4, -4]
    assert [evaluate_row(node_of(choice), (trip,)) for trip in TRIPS] == [None, 4, -4]
    assert seen == [4, 4]
    nested = when(col("n") > 0).then(when(8 / col("n") > 3).then("big").otherwise("small")).otherwise("none")
    assert evaluate(node_of(nested), inputs(TRIPS)).tolist() == ["none", "big", "small"]


def test_when_of_plain_values_is_a_plain_value() -> None:
    assert when(True).then(1).otherwise(2) == 1
    assert when(0).then(1).when([]).then(2).otherwise(3) == 3
    with pytest.raises(QueryError, match="otherwise"):
        bool(when(True).then(1))


def test_lifetimes_and_keys() -> None:
    given = inputs([1, 2], le=np.array([0, 5]), re=np.array([4, 9]), keys=Table.of_objects(["a", None]))
    assert evaluate(trace(lambda e, life: life.re - life.le + e, (None,), life=True), given).tolist() == [5, 6]
    assert evaluate(trace(lambda e, life: life.le if e else 0, (None,), life=True), given).tolist() == [0, 5]
    assert evaluate(Key(), given).tolist() == ["a", None]
    with pytest.raises(RowError, match="no lifetime here"):
        evaluate(trace(lambda e, life: life.re, (None,), life=True), inputs([1]))
    with pytest.raises(QueryError, match="Hint: where, select"):
        evaluate_row(trace(lambda e, life: life.re or 1, (None,), life=True), (1,))


def test_a_missing_field_fails_in_python_words() -> None:
    with pytest.raises(RowError) as caught:
        evaluate(Field("nope"), inputs(TRIPS))
    assert type(caught.value.cause) is AttributeError


@pytest.mark.parametrize(
    ("function", "shape", "payload"),
    [
        (lambda e: Trip(e.zone, 1.0, 1), Shape.CLASS, Trip("A", 1.0, 1)),
        (lambda e: {"z": e.zone}, Shape.RECORD, Record(z="A")),
        (lambda e: (e.zone, 1), Shape.TUPLE, ("A", 1)),
        (lambda e: e, Shape.CLASS, TRIPS[0]),
        (lambda e: e.fare, Shape.SCALAR, 10.0),
        (lambda e: e.zone, Shape.SCALAR, "A"),
        (lambda e: None, Shape.SCALAR, None),
        (lambda e: {"z": e.zone} if e.zone else None, Shape.RECORD, Record(z="A")),
        (lambda e: e if e.zone else None, Shape.CLASS, TRIPS[0]),
        (lambda e: [e.zone], Shape.SCALAR, ["A"]),
        (lambda e: when(e.zone == "A").then({"z": 1}).otherwise(None), Shape.OBJECT, Record(z=1)),
    ],
)
def test_projections(function: Callable[[Any], Any], shape: Shape, payload: Any) -> None:
    expr = trace(function, (Schema.of_type(Trip),))
    table = project(expr, inputs(TRIPS))
    assert table.schema.shape is shape
    assert table.payloads()[0] == payload
    assert type(table.payloads()[0]) is type(payload)
    assert project_row(expr, (TRIPS[0],)) == payload


def test_rows_become_payloads_wherever_they_are_values() -> None:
    assert to_plain_value([np.int64(1), {"a": row_view((1, 2))}, Trip("A", np.float64(1), np.int64(2))]) == [  # type: ignore[arg-type]
        1,
        {"a": (1, 2)},
        Trip("A", 1.0, 2),
    ]
    trip = Trip("A", 1.0, 1)
    assert to_plain_value(trip) is trip
    assert project(trace(lambda e: {"it": e}, (None,)), inputs([5])).payloads() == [Record(it=5)]


def test_keys_are_equal_where_payloads_are() -> None:
    payloads = [1, 1.0, True, math.nan, float("nan"), None, "a"]
    keys = key_values(Field("value"), inputs(payloads))
    assert keys == [key_row(Field("value"), (payload,)) for payload in payloads]
    assert len(set(keys)) == 4
    pair = trace(lambda e: (e.a, e.b), (None,))
    assert len(set(key_values(pair, inputs([{"a": 1, "b": math.nan}, {"a": 1.0, "b": math.nan}])))) == 1
    record = trace(lambda e: {"a": e.a}, (None,))
    assert len(set(key_values(record, inputs([{"a": 1}, {"a": 1.0}])))) == 1
    assert len({key_row(trace(f, (None,)), (3,)) for f in (lambda e: e, lambda e: e if e else 0, lambda e: e)}) == 1


@pytest.mark.parametrize("value", [np.array([1, 2]), None, len, date(2026, 3, 29), object(), iter("ab"), Trip("A", 1.0, 1)])
def test_truth_names_the_row_that_has_none(value: Any) -> None:
    with pytest.raises(RowError) as caught:
        truth(Field("v"), inputs([{"v": 1}, {"v": value}]))
    assert (caught.value.row, caught.value.payloads) == (1, (Record(v=value),))


def test_none_and_not() -> None:
    assert is_none(row_view(None)) is True
    assert is_none(row_view(0)) is False
    assert not_(row_view(0)) is True
    assert evaluate(trace(lambda e: is_none(e), (None,)), inputs([None, 0])).tolist() == [True, False]


def test_objects_kept_whole_are_read_by_attribute() -> None:
    table = Table.of_objects([Trip("A", 1.0, 1), {"n": 5}, Record(n=7)])
    assert evaluate(Field("n"), Inputs((table,), 3)).tolist() == [1, 5, 7]
    assert project(Whole(), Inputs((table,), 3)) is table
    assert evaluate(Constant((1, 2)), Inputs((table,), 3)).tolist() == [(1, 2)] * 3
