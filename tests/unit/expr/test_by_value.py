"""What words say of held texts, each told once, is what they say row by row."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import streamdsl as sd
from streamdsl.expr.deferred import AnyColumn, DeferredColumn, EncodedSource, object_column, with_parts
from streamdsl.expr.evaluate import Inputs, RowError, evaluate, evaluate_deferred, project
from streamdsl.expr.nodes import Expr, Field, Make
from streamdsl.expr.row_evaluator import evaluate_row
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Table, column_of
from streamdsl.expr.tracing import trace
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS

EXPRESSIONS: list[Callable[[Any], Any]] = [
    lambda e: e.t.split("/")[1],
    lambda e: e.t.split("/"),
    lambda e: e.t.upper() + "x",
    lambda e: e.t == "a/b",
    lambda e: e.t.find("b"),
    lambda e: e.t.split("/")[0].lower() == e.t.lower(),
    lambda e: sd.is_none(e.t),
    lambda e: sd.functions.coalesce(e.t, 5),
    lambda e: sd.when(e.t.startswith("a")).then(e.n).otherwise(e.t.split("/")[1]),
    lambda e: (e.t.upper() == "A") & (e.n > 1),
    lambda e: e.n + 1,
    lambda e: e.m == 1,
]
VALUES = ["a", "a/b", "A/b/c", "", "b/a", "ß/x"]


def _inputs(rng: Random, size: int) -> tuple[Inputs, list[dict[str, Any]]]:
    values: list[Any] = rng.sample(VALUES, rng.randint(1, 4)) + [None] * rng.randint(0, 1)
    mixed: list[Any] = [1, True, 1.0, None]
    texts, others = ([rng.choice(given) for _ in range(size)] for given in (values, mixed))
    numbers = [rng.randint(0, 3) for _ in range(size)]
    columns: dict[str, AnyColumn] = {"t": _held(values, texts, rng), "m": _held(mixed, others, rng), "n": column_of(numbers)}
    table = Table(Schema.record(["t", "m", "n"]), with_parts(columns), size)
    return Inputs((table,), size), [{"t": t, "m": m, "n": n} for t, m, n in zip(texts, others, numbers, strict=True)]


def _held(values: list[Any], rows: list[Any], rng: Random) -> DeferredColumn:
    """Return rows as codes of values, and of one that no row has."""
    places = [next(place for place, value in enumerate(values) if value is row) for row in rows]
    source = EncodedSource(np.array([0, *places]), object_column([*values, 7]))
    return DeferredColumn(source)[1:]


def _shown(value: Any) -> tuple[type, Any]:
    return type(value), value


@pytest.mark.parametrize("number", range(len(EXPRESSIONS)))
def test_it_is_what_the_rows_say(number: int) -> None:
    expr = trace(EXPRESSIONS[number], (None,))

    @examples(60)
    @given(SEEDS)
    def law(seed: int) -> None:
        rng = Random(seed)
        inputs, rows = _inputs(rng, rng.randint(1, 6))
        expected: list[Any] = []
        error: Exception | None = None
        for row in rows:
            try:
                expected.append(_shown(evaluate_row(expr, (sd.Record(row),))))
            except Exception as found:
                error = found
                break
        if error is not None:
            for ask in (evaluate, evaluate_deferred, _projected):
                with pytest.raises(RowError) as raised:
                    ask(expr, inputs)
                assert (raised.value.row, type(raised.value.cause)) == (len(expected), type(error))
            return
        for ask in (evaluate, evaluate_deferred, _projected):
            column = ask(expr, inputs)
            assert list(map(_shown, column.tolist())) == expected
            assert (column.dtype == object) == (column_of([value for _, value in expected]).dtype == object)

    law()


def _projected(expr: Expr, inputs: Inputs) -> Any:
    """Return what a projection makes of an expression twice, and of a field, of which it returns the second."""
    made = project(Make(Schema.record(["a", "t", "b"]), (expr, Field("t"), expr)), inputs)
    assert list(map(_shown, made.columns["a"].tolist())) == list(map(_shown, made.columns["b"].tolist()))
    return made.columns["b"]


def test_results_that_can_be_changed_are_no_two_rows_own() -> None:
    column = evaluate_deferred(trace(lambda e: sd.functions.coalesce(e.t, "").split("/"), (None,)), _inputs(Random(1), 40)[0])
    lists = column.tolist()
    assert len(set(map(id, lists))) == len(lists)
