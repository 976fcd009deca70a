"""The law for one lambda: called on the rows, evaluated row by row, and evaluated over columns it gives the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from streamdsl.expr.describe import describe
from streamdsl.expr.evaluate import Inputs, RowError, evaluate, project
from streamdsl.expr.nodes import Expr
from streamdsl.expr.row_evaluator import evaluate_row, project_row, to_plain_value
from streamdsl.expr.schema import Schema, as_payload, row_view
from streamdsl.expr.table import Table
from streamdsl.expr.tracing import trace
from streamdsl.expr.user_calls import call_function as call
from tests.laws.tracing.names import Lambda


def traced(function: Lambda, schema: Schema | None) -> Expr:
    return _traced(function, schema, None if schema is None else schema.kind)


@cache
def _traced(function: Lambda, schema: Schema | None, _kind: type | None) -> Expr:
    # Schemas of bare values are equal whatever class is declared, but the class decides which attributes there are.
    return trace(function, (schema,))


def canon(value: Any) -> Any:
    """What must be the same of two values: the type too, and the sign of zero; NaN is NaN."""
    if isinstance(value, Mapping):
        return ("record", [(name, canon(item)) for name, item in value.items()])
    if isinstance(value, (tuple, list)):
        return (type(value).__name__, [canon(item) for item in value])
    if is_dataclass(value) and not isinstance(value, type):
        return (type(value).__name__, [canon(getattr(value, f.name)) for f in fields(value)])
    return (type(value).__name__, repr(value))


def outcome(compute: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return ("value", canon(compute(*arguments)))
    except Exception as error:
        return ("error", type(error).__name__)


def called(function: Lambda, payload: Any) -> Any:
    return as_payload(to_plain_value(call(function, [row_view(payload)]), lambda expr: evaluate_row(expr, (payload,))))


def over_columns(compute: Callable[[], list[Any]]) -> Any:
    try:
        return [("value", canon(as_payload(value))) for value in compute()]
    except RowError as error:
        return (error.row, type(error.cause).__name__)


def expected_columns(outcomes: list[Any]) -> Any:
    for row, (kind, what) in enumerate(outcomes):
        if kind == "error":
            return (row, what)
    return outcomes


def check(function: Lambda, schema: Schema | None, payloads: list[Any]) -> None:
    expr = traced(function, schema)
    direct = [outcome(called, function, p) for p in payloads]
    by_row = [outcome(evaluate_row, expr, (p,)) for p in payloads]
    assert by_row == direct, describe(expr)
    assert [outcome(project_row, expr, (p,)) for p in payloads] == direct, describe(expr)
    table = Table.from_payloads(payloads)
    inputs = Inputs((table,), len(payloads))
    wanted = expected_columns(direct)
    assert over_columns(lambda: evaluate(expr, inputs).tolist()) == wanted, describe(expr)
    assert over_columns(lambda: project(expr, inputs).payloads()) == wanted, describe(expr)
