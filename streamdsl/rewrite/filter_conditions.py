"""Conditions of filters that move: conjuncts, whether one can fail, and rewriting one for the rows below an operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from streamdsl.expr.describe import describe
from streamdsl.expr.nodes import (
    Binary,
    Call,
    Constant,
    Expr,
    Field,
    Key,
    Life,
    Make,
    Opaque,
    Unary,
    Whole,
    is_boolean,
    reads,
    rebuilt,
    schema_of,
)
from streamdsl.expr.row_evaluator import field_of, holds_row
from streamdsl.expr.schema import Schema, Shape
from streamdsl.temporal import Record

_EQUALITIES = ("==", "!=")
_LOGICAL = ("&", "|", "^")


def conjuncts(condition: Expr) -> list[Expr]:
    """Return the conjuncts of a condition. An `&` whose sides may not be booleans is bitwise, and is not split.

    >>> [describe(part) for part in conjuncts(Binary("&", Binary(">", Field("x"), Constant(1)), Unary("not", Field("y"))))]
    ['e.x > 1', 'not_(e.y)']
    """
    if isinstance(condition, Binary) and condition.op == "&" and is_boolean(condition):
        return conjuncts(condition.left) + conjuncts(condition.right)
    return [condition]


def conjunction(conditions: Sequence[Expr]) -> Expr:
    """Return the conjunction of conditions.

    >>> describe(conjunction([Unary("not", Field("x")), Unary("not", Field("y"))]))
    'not_(e.x) & not_(e.y)'
    """
    return reduce(lambda left, right: Binary("&", left, right), conditions)


def cannot_fail(condition: Expr) -> bool:
    """Say whether a condition is a boolean for all values of the fields; comparisons by order can fail, as None has no order.

    >>> cannot_fail(Binary("==", Field("x"), Constant(1))), cannot_fail(Binary("<", Field("x"), Constant(1)))
    (True, False)
    """
    if isinstance(condition, Binary):
        parts = (condition.left, condition.right)
        if condition.op in _EQUALITIES:
            return all(map(_is_value, parts))
        return condition.op in _LOGICAL and all(is_boolean(part) and cannot_fail(part) for part in parts)
    if isinstance(condition, Unary) and condition.op in ("not", "is_none"):
        return _is_value(condition.operand) or cannot_fail(condition.operand)
    return isinstance(condition, Constant) and type(condition.value) is bool


def _is_value(expr: Expr) -> bool:
    return isinstance(expr, (Field, Constant))


def is_plain(expr: Expr) -> bool:
    """Say whether an expression reads only fields and constants: no lifetime, key, whole row or user function.

    >>> is_plain(Binary("<", Field("x"), Constant(1))), is_plain(Life("le"))
    (True, False)
    """
    return not any(isinstance(part, (Call, Key, Life, Opaque, Whole)) for part in expr.walk())


def of_members(condition: Expr, argument: Expr | None) -> Expr | None:
    """Return a condition on a module's argument as one on the rows of its window; None if the argument is not plain.

    >>> quote = Make(Schema.record(["name"]), (Field("symbol"),))
    >>> describe(of_members(Binary("==", Field("name"), Constant("A")), quote))
    "e.symbol == 'A'"
    """
    if argument is None:
        return condition
    names = reads(condition) or frozenset()
    parts = {name: part for name in names if (part := _part(argument, name)) is not None}
    return substituted(condition, parts) if len(parts) == len(names) else None


def _part(argument: Expr, name: str) -> Expr | None:
    """Return a field of an expression's value as an expression of rows, None if it is not plain."""
    if isinstance(argument, Make):
        found = dict(zip(argument.schema.names, argument.values, strict=True)).get(name)
        return found if found is not None and is_plain(found) else None
    return Call(FieldOf(name), (argument,), name) if is_plain(argument) else None


@dataclass(frozen=True, slots=True)
class FieldOf:
    """A function that returns a field of a payload, for payloads that are the value of an expression.

    >>> FieldOf("value")(7), FieldOf("x")({"x": 3})
    (7, 3)
    """

    name: str

    def __call__(self, payload: Any) -> Any:
        """Return the field."""
        return field_of(payload, self.name)


@dataclass(frozen=True, slots=True)
class TrueOnError:
    """A condition as a function of the fields that it reads; it is true for rows on which the condition fails.

    >>> atleast_2 = TrueOnError(Binary(">=", Field("x"), Constant(2)), ("x",))
    >>> atleast_2(1), atleast_2(3), atleast_2(None)
    (False, True, True)
    """

    condition: Expr
    names: tuple[str, ...]

    def __call__(self, *values: Any) -> bool:
        """Return the value of the condition for these fields, True if it raises."""
        try:
            return holds_row(self.condition, (Record(zip(self.names, values, strict=True)),))
        except Exception:
            return True


def true_on_error(condition: Expr) -> Expr:
    """Return a condition that keeps the rows on which the given one holds or fails. (The original, above, then raises the error.)

    >>> describe(true_on_error(Binary("<", Field("x"), Constant(1))))
    'holds_or_fails[e.x < 1](e.x)'
    """
    names = tuple(sorted(reads(condition) or ()))
    return Call(TrueOnError(condition, names), tuple(map(Field, names)), f"holds_or_fails[{describe(condition)}]")


HEAVIEST: Final = 100
"""The most parts of an expression after substitution, which could grow exponentially as shared parts are written out."""


def weight(expr: Expr) -> int:
    """Return the number of parts of an expression as a tree, in which a shared part counts once per use. O(distinct parts).

    >>> double = Binary("+", Field("x"), Field("x"))
    >>> weight(double), weight(Binary("*", double, double))
    (3, 7)
    """
    weights: dict[int, int] = {}
    for part in expr.evaluated():
        weights[id(part)] = 1 + sum(weights[id(child)] for child in part.children())
    return weights[id(expr)]


def is_true_on_error(condition: Expr) -> bool:
    """Say whether a condition comes from `true_on_error`; such a condition does not move any further.

    >>> is_true_on_error(true_on_error(Binary("<", Field("x"), Constant(1)))), is_true_on_error(Field("x"))
    (True, False)
    """
    return isinstance(condition, Call) and isinstance(condition.function, TrueOnError)


def before(expr: Expr, projection: Expr) -> Expr | None:
    """Return an expression over a projection's output as one over its input.

    None if it reads fields that are not plain expressions of the input, or would become too large.

    >>> quote = Make(Schema.record(["name", "cents"]), (Field("symbol"), Binary("*", Field("price"), Constant(100))))
    >>> describe(before(Binary("<", Field("cents"), Constant(500)), quote))
    '(e.price * 100) < 500'
    """
    names, parts = reads(expr), made_of(projection)
    if names is None or not names <= parts.keys():
        return None
    found = substituted(expr, parts)
    return found if weight(found) <= HEAVIEST else None


def fields_of(made: Expr) -> Mapping[str, Expr]:
    """Return the fields of payloads that an expression builds, as expressions; none for any other, and for objects."""
    if not isinstance(made, Make) or made.schema.shape is Shape.OBJECT:
        return {}
    return dict(zip(made.schema.names, made.values, strict=True))


def made_of(projection: Expr) -> dict[str, Expr]:
    """Return the output fields of a projection that are plain expressions of its input.

    >>> made_of(Binary(">", Field("x"), Constant(1)))
    {'value': Binary(op='>', left=Field(name='x', side=0), right=Constant(value=1))}
    """
    if isinstance(projection, Make):
        return {name: part for name, part in fields_of(projection).items() if is_plain(part)}
    is_scalar = schema_of(projection, (None, None)) == Schema.scalar()
    return {"value": projection} if is_scalar and is_plain(projection) else {}


def substituted(expr: Expr, parts: Mapping[str, Expr]) -> Expr:
    """Return an expression with its fields replaced by other expressions; shared parts stay shared.

    >>> describe(substituted(Binary("+", Field("x"), Field("x")), {"x": Unary("-", Field("y"))}))
    '(-e.y) + (-e.y)'
    """
    return rebuilt(expr, lambda part: parts[part.name] if isinstance(part, Field) else None)
