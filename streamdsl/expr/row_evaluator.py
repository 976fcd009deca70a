"""Evaluates expressions row by row with Python's own operators, which defines what they mean; `evaluate.py` is a faster equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime  # noqa: F401 - an example makes one
from typing import Any, Final

import numpy as np

from streamdsl.errors import QueryError
from streamdsl.expr.describe import failed_part
from streamdsl.expr.expression_functions import Then, When, plain_function, refuse_incomplete
from streamdsl.expr.facade import E, node_of
from streamdsl.expr.immutable import IMMUTABLE
from streamdsl.expr.nodes import (
    Attribute,
    Binary,
    Call,
    Choose,
    Constant,
    Expr,
    Field,
    Function,
    Key,
    Life,
    Make,
    Method,
    Opaque,
    Unary,
    Whole,
    application,
    reads,
)
from streamdsl.expr.predicates import holds
from streamdsl.expr.schema import TupleRow, as_payload, row_view
from streamdsl.expr.user_calls import call_function, payload_of_view
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.payload import Record, RecordMethod, map_parts, plain


def evaluate_row(
    expr: Expr, payloads: tuple[Any, ...], life: Lifetime | None = None, key: Any = None, starts: tuple[int, ...] = ()
) -> Any:
    """Return the value of an expression on one row, or on a pair of rows with their `starts`. Every faster path gives the same.

    >>> evaluate_row(Binary("*", Field("x"), Constant(2)), ({"x": 21},))
    42
    """
    value = _RowEvaluator(payloads, life, key, starts).value(expr)
    return as_payload(value) if isinstance(expr, Call) else value


def project_row(
    expr: Expr, payloads: tuple[Any, ...], life: Lifetime | None = None, key: Any = None, starts: tuple[int, ...] = ()
) -> Any:
    """Return the payload that a projection makes of one row.

    >>> project_row(Opaque(lambda e: {"double": e * 2}), (21,))
    Record(double=42)
    """
    return as_payload(to_plain_value(_RowEvaluator(payloads, life, key, starts).value(expr)))


def holds_row(
    expr: Expr, payloads: tuple[Any, ...], life: Lifetime | None = None, key: Any = None, starts: tuple[int, ...] = ()
) -> bool:
    """Say whether a predicate is true of one row, or of a pair.

    >>> holds_row(Binary(">", Field("x"), Constant(2)), ({"x": 21},))
    True
    """
    return predicate_value(expr, evaluate_row(expr, payloads, life, key, starts))


def predicate_value(expr: Expr, value: Any) -> bool:
    """Return whether a predicate holds, given its value; an error has the line where the predicate is written."""
    try:
        return holds(value)
    except Exception as error:
        raise with_location(error, expr) from None


def with_location(error: Exception, expr: Expr) -> Exception:
    """Return an error with the innermost expression that raised it: its line, its text, and the fields that it reads."""
    known: Any = error
    if not hasattr(error, "written"):
        known.written = next((part.written for part in expr.walk() if part.written is not None), None)
        known.expression = failed_part(expr)
        known.fields_read = reads(expr)
    return error


class _RowEvaluator:
    """Evaluates the nodes of an expression on one row, or on a pair; a shared node is evaluated once."""

    __slots__ = ("done", "key", "life", "payloads", "starts")

    def __init__(self, payloads: tuple[Any, ...], life: Lifetime | None, key: Any, starts: tuple[int, ...]) -> None:
        self.payloads = payloads
        self.starts = starts
        self.life = life
        self.key = key
        self.done: dict[int, Any] = {}

    def value(self, expr: Expr) -> Any:
        if id(expr) not in self.done:
            try:
                self.done[id(expr)] = _EVALUATORS[type(expr)](self, expr)
            except Exception as error:
                with_location(error, expr)
                raise
        return self.done[id(expr)]

    def values(self, exprs: Sequence[Expr]) -> list[Any]:
        return [self.value(expr) for expr in exprs]

    def field(self, expr: Field) -> Any:
        return field_of(self.payloads[expr.side], expr.name)

    def whole(self, expr: Whole) -> Any:
        return as_payload(self.payloads[expr.side])

    def end(self, expr: Life) -> int:
        if self.starts and expr.end == "le":
            return self.starts[expr.side]
        if self.life is None:
            raise no_lifetime_error()
        return self.life.le if expr.end == "le" else self.life.re

    def apply(self, expr: Expr) -> Any:
        applied = application(expr)
        assert applied is not None
        word, parts = applied
        return word.python(*self.values(parts))

    def choose(self, expr: Choose) -> Any:
        for condition, value in expr.branches:
            if self.value(condition):
                return self.value(value)
        return self.value(expr.otherwise)

    def call(self, expr: Call) -> Any:
        arguments = [row_view(self.payloads[a.side]) if isinstance(a, Whole) else self.value(a) for a in expr.arguments]
        return to_plain_value(call_function(plain_function(expr.function), arguments))

    def opaque(self, expr: Opaque) -> Any:
        if expr.life and self.life is None:
            raise no_lifetime_error()
        rows = [*map(row_view, self.payloads[: expr.sides]), *([self.life] if expr.life else [])]
        return as_payload(to_plain_value(call_function(expr.function, rows), self.value))


_EVALUATORS: Final[Mapping[type[Expr], Callable[[_RowEvaluator, Any], Any]]] = {
    Field: _RowEvaluator.field,
    Whole: _RowEvaluator.whole,
    Life: _RowEvaluator.end,
    Key: lambda row, _: row.key,
    Constant: lambda _, expr: expr.value,
    **dict.fromkeys((Binary, Unary, Method, Function), _RowEvaluator.apply),
    Attribute: lambda row, expr: attribute_of(row.value(expr.operand), expr.name),
    Call: _RowEvaluator.call,
    Choose: _RowEvaluator.choose,
    Make: lambda row, expr: expr.schema.build(row.values(expr.values)),
    Opaque: _RowEvaluator.opaque,
}


def field_of(payload: Any, name: str) -> Any:
    """Return a field of a payload, or the attribute of that name that its row has.

    >>> field_of({"items": 3}, "items"), field_of(7, "value"), field_of(datetime(2026, 3, 29), "year")
    (3, 7, 2026)
    """
    row = row_view(payload)
    return row[name] if isinstance(row, Record) and name in row else attribute_of(row, name)


def attribute_of(value: Any, name: str) -> Any:
    """Return an attribute of a value; a record's methods are refused. The `value` of a builtin type's value is itself."""
    if name == "value" and type(value) in IMMUTABLE:
        return value
    found = getattr(value, name)
    return found.refuse() if type(found) is RecordMethod else found


def no_lifetime_error() -> QueryError:
    """Return the error for reading a lifetime where rows have none."""
    return QueryError("there is no lifetime here", hint="where, select and alter_lifetime take lambda e, life: ...")


def _refuse_expression(expr: Expr) -> Any:
    raise QueryError("a function gave an expression where only values are known", hint="compute with the values that it is given")


_CONTAINERS: Final = frozenset({dict, list, tuple, Record})


def is_plain_value(value: Any) -> bool:
    """Say whether a value is of an immutable builtin type, or a collection of such values; most results of user code are."""
    kind = type(value)
    if kind in IMMUTABLE:
        return True
    parts = value.values() if kind is dict else value.__items__.values() if kind is Record else value
    return kind in _CONTAINERS and IMMUTABLE.issuperset(map(type, parts))


def to_plain_value(value: Any, evaluate: Callable[[Expr], Any] = _refuse_expression) -> Any:
    """Return a result of user code as plain Python: rows become payloads, numpy scalars and expressions become their values.

    >>> to_plain_value((TupleRow((1, 2)), [np.int64(2)]))
    ((1, 2), [2])
    """
    kind = type(value)
    if is_plain_value(value):
        return value
    if isinstance(value, np.generic):
        return plain(value)
    if isinstance(value, E):
        return evaluate(node_of(value))
    if kind is When or kind is Then:
        refuse_incomplete(value)
    if kind is TupleRow:
        return tuple(value)
    if kind is RecordMethod:
        value.refuse()
    value = payload_of_view(value)
    return map_parts(lambda part: to_plain_value(part, evaluate), value)
