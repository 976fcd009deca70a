"""What expressions mean, row by row, in Python's own words. `evaluate.py` is a faster way to the same values."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from streamdsl.errors import QueryError
from streamdsl.expr.facade import E
from streamdsl.expr.functions import Udf
from streamdsl.expr.nodes import (
    Attribute,
    Binary,
    Call,
    Choose,
    Constant,
    Expr,
    Field,
    Key,
    Life,
    Make,
    Method,
    Opaque,
    Unary,
    Whole,
)
from streamdsl.expr.schema import ScalarRow, TupleRow, as_payload, row_view
from streamdsl.expr.vocabulary import IMMUTABLE
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.payload import Record, plain

BINARY: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def is_none(value: Any) -> bool:
    """Say whether a value is None."""
    return value is None


UNARY: Final[Mapping[str, Callable[[Any], Any]]] = {
    "-": operator.neg,
    "+": operator.pos,
    "abs": operator.abs,
    "not": operator.not_,
    "is_none": is_none,
}


def evaluate_row(expr: Expr, payloads: tuple[Any, ...], life: Lifetime | None = None, key: Any = None) -> Any:
    """Return the value of an expression on one row (or pair of rows): the definition that all faster ways must meet.

    >>> evaluate_row(Binary("*", Field("x"), Constant(2)), ({"x": 21},))
    42
    """
    value = _Row(payloads, life, key).value(expr)
    return as_payload(value) if isinstance(expr, Call) else value


def project_row(expr: Expr, payloads: tuple[Any, ...], life: Lifetime | None = None, key: Any = None) -> Any:
    """Return the payload that a projection makes of one row.

    >>> project_row(Opaque(lambda e: {"double": e.value * 2}), (21,))
    Record(double=42)
    """
    return as_payload(settle(_Row(payloads, life, key).value(expr)))


class _Row:
    """One row while an expression is evaluated; a shared node is evaluated once."""

    __slots__ = ("done", "key", "life", "payloads")

    def __init__(self, payloads: tuple[Any, ...], life: Lifetime | None, key: Any) -> None:
        self.payloads = payloads
        self.life = life
        self.key = key
        self.done: dict[int, Any] = {}

    def value(self, expr: Expr) -> Any:
        if id(expr) not in self.done:
            self.done[id(expr)] = _MEANINGS[type(expr)](self, expr)
        return self.done[id(expr)]

    def values(self, exprs: Sequence[Expr]) -> list[Any]:
        return [self.value(expr) for expr in exprs]

    def field(self, expr: Field) -> Any:
        return field_of(self.payloads[expr.side], expr.name)

    def whole(self, expr: Whole) -> Any:
        return as_payload(self.payloads[expr.side])

    def end(self, expr: Life) -> int:
        if self.life is None:
            raise no_lifetime()
        return self.life.le if expr.end == "le" else self.life.re

    def choose(self, expr: Choose) -> Any:
        for condition, value in expr.branches:
            if self.value(condition):
                return self.value(value)
        return self.value(expr.otherwise)

    def call(self, expr: Call) -> Any:
        arguments = [row_view(self.payloads[a.side]) if isinstance(a, Whole) else self.value(a) for a in expr.arguments]
        return settle(plain_function(expr.function)(*arguments))

    def opaque(self, expr: Opaque) -> Any:
        rows = map(row_view, self.payloads[: expr.sides])
        if expr.life and self.life is None:
            raise no_lifetime()
        found = expr.function(*rows, self.life) if expr.life else expr.function(*rows)
        return self.value(found.node) if isinstance(found, E) else as_payload(settle(found))


_MEANINGS: Final[Mapping[type[Expr], Callable[[_Row, Any], Any]]] = {
    Field: _Row.field,
    Whole: _Row.whole,
    Life: _Row.end,
    Key: lambda row, _: row.key,
    Constant: lambda _, expr: expr.value,
    Binary: lambda row, expr: BINARY[expr.op](row.value(expr.left), row.value(expr.right)),
    Unary: lambda row, expr: UNARY[expr.op](row.value(expr.operand)),
    Attribute: lambda row, expr: getattr(row.value(expr.operand), expr.name),
    Method: lambda row, expr: getattr(row.value(expr.operand), expr.name)(*row.values(expr.arguments)),
    Call: _Row.call,
    Choose: _Row.choose,
    Make: lambda row, expr: expr.schema.build(row.values(expr.values)),
    Opaque: _Row.opaque,
}


def field_of(payload: Any, name: str) -> Any:
    """Return a field of a payload, or what else its row has by that name."""
    row = row_view(payload)
    return row[name] if isinstance(row, Record) and name in row else getattr(row, name)


def plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that a registered one runs on values."""
    return function.function if isinstance(function, Udf) else function


def no_lifetime() -> QueryError:
    """Return the error for a lifetime where a row has none."""
    return QueryError("there is no lifetime here", hint="where, select and alter_lifetime take lambda e, life: ...")


def settle(value: Any) -> Any:
    """Return what user code gave, with every row in it replaced by its payload and every numpy scalar by its value.

    >>> settle((ScalarRow(1), [np.int64(2)]))
    (1, [2])
    """
    kind = type(value)
    if kind in IMMUTABLE:
        return value
    if isinstance(value, np.generic):
        return plain(value)
    if kind is ScalarRow:
        return value.value
    if kind is TupleRow:
        return tuple(value)
    if kind is tuple or kind is list:
        return _settled(value, list(value), kind)
    if kind is dict or kind is Record:
        return _settled(value, list(value.values()), lambda items: kind(zip(value, items, strict=True)))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _settled(value, list(value), value._make)  # type: ignore[attr-defined]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        items = [getattr(value, f.name, None) for f in dataclasses.fields(value)]
        return _settled(value, items, lambda settled: _refilled(value, settled))
    return value


def _settled(value: Any, items: list[Any], rebuild: Callable[[list[Any]], Any]) -> Any:
    settled = list(map(settle, items))
    return value if all(map(operator.is_, items, settled)) else rebuild(settled)


def _refilled(value: Any, items: list[Any]) -> Any:
    copy = object.__new__(type(value))
    names = [f.name for f in dataclasses.fields(value)]
    for name, item in {**getattr(value, "__dict__", {}), **dict(zip(names, items, strict=True))}.items():
        object.__setattr__(copy, name, item)
    return copy
