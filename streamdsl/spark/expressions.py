"""Expressions as Spark SQL, where it certainly means what Python means; `NotNative` says why elsewhere.

Python's rules are written out, so that neither ANSI mode nor any other setting of the session changes an answer: what raises in
Python fails the task with the name of Python's error, NaN is equal to nothing, None is equal to None only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from streamdsl.expr.nodes import (
    Attribute,
    Binary,
    Choose,
    Constant,
    Expr,
    Field,
    Function,
    Key,
    Life,
    Make,
    Method,
    Unary,
    Whole,
    application,
)
from streamdsl.expr.scalar_functions import SCALAR_FUNCTIONS
from streamdsl.expr.schema import Schema, Shape
from streamdsl.spark.faults import At, fault, placed, told
from streamdsl.spark.operations import apply, holds, truth
from streamdsl.spark.shown import shown
from streamdsl.spark.sql import NotNative, Sql, double, integer, quote, struct
from streamdsl.spark.types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    Pickled,
    Row,
    Scalar,
    Type,
    as_nullable,
    hints_of,
    type_of_hint,
    unify,
)
from streamdsl.temporal import INFINITY, MIN_TIME
from streamdsl.temporal.payload import is_taken

_LONGEST: Final = 20_000


@dataclass(frozen=True, slots=True)
class RowAt:
    """Where a row's payload is: in one column, or with each field in a column of its own (`parts`)."""

    type: Type
    text: str = "p"
    parts: tuple[str, ...] | None = None

    def whole(self) -> Sql:
        """Return the payload."""
        if self.parts is None:
            return Sql(self.text, self.type)
        return Sql(struct(self.parts), self.type)

    def field(self, name: str) -> Sql:
        """Return one field of the payload, as a lambda reads it."""
        if self.type == ANY:
            return Sql("null", ANY)
        if not isinstance(self.type, Row):
            if name == "value" and isinstance(self.type, Scalar):
                return Sql(self.text, self.type)
            raise NotNative("the payloads are Python objects")
        if self.type.nullable or name not in self.type.schema.names:
            raise NotNative(f"not every payload has the field {name}")
        index = self.type.schema.names.index(name)
        text = f"{self.text}.f{index}" if self.parts is None else self.parts[index]
        return Sql(text, self.type.fields[index])


@dataclass(frozen=True, slots=True)
class Env:
    """What an expression can read: the rows, the lifetime or the LEs of a pair, the key of the group; and whose expression it is.

    `window`: the lifetime is that of the window whose result the row is.
    """

    rows: tuple[RowAt, ...]
    le: str = "le"
    re: str = "re"
    key: Sql | None = None
    starts: tuple[str, ...] = ()
    operator: str = ""
    window: bool = False

    def at(self, expr: Expr) -> At:
        """Return where an expression is that fails."""
        written = next((part.written for part in expr.walk() if part.written is not None), None)
        window = ("[", Sql(self.le, INT), ", ", Sql(self.re, INT), ")") if self.window else ()
        return At(self.operator, written, window, shown(expr, self.rows))


def to_sql(expr: Expr, env: Env) -> Sql:
    """Return an expression as SQL, or raise `NotNative`.

    >>> to_sql(Binary("<", Field("value"), Constant(1)), Env((RowAt(INT),))).text
    '(p < 1L)'
    """
    return said(_translated(expr, env), expr, env)


def to_test(predicate: Expr, env: Env) -> Sql:
    """Return what a predicate says as SQL, or raise `NotNative`; None fails the task."""
    return said(holds(_translated(predicate, env)), predicate, env)


def said(found: Sql, expr: Expr, env: Env) -> Sql:
    """Return what was made of an expression with its faults told."""
    return replace(found, text=told(placed(found.text, expr), expr, env.at))


def _translated(expr: Expr, env: Env) -> Sql:
    """Return an expression as SQL in which faults are marks."""
    found = _TRANSLATIONS.get(type(expr))
    if found is None:
        raise NotNative(f"{_said(expr)} runs in Python")
    result = found(expr, env)
    if len(result.text) > _LONGEST:
        raise NotNative("as SQL it would be too long")
    return replace(result, text=placed(result.text, expr))


def infer(expr: Expr, env: Env) -> Type:
    """Return the type of an expression's values, whether it runs natively or in Python."""
    try:
        return _translated(expr, env).type
    except NotNative:
        if isinstance(expr, Make) and is_struct(expr.schema):
            return Row(expr.schema, tuple(infer(value, env) for value in expr.values))
        return _certain(expr, env) or Pickled(declared(expr))


def _certain(expr: Expr, env: Env) -> Type | None:
    """Return the type of what Python computes, where the table of words says it."""
    applied = application(expr)
    if applied is None:
        return None
    word, parts = applied
    types = [infer(part, env) for part in parts]
    kind = word.result([part.kind if isinstance(part, Scalar) else "" for part in types])
    return None if kind is None else Scalar(kind, word.name == "coalesce" and all(part.nullable for part in types))


def declared(expr: Expr) -> Type | None:
    """Return the type that a function's annotation declares for its results."""
    function = getattr(expr, "function", None)
    return None if function is None else type_of_hint(hints_of(function).get("return", Any))


def converted(text: str, have: Type, want: Type) -> str:
    """Return the SQL that holds a value as another type, or raise `NotNative` where it must be pickled."""
    if as_nullable(have) == as_nullable(want):
        return text
    if isinstance(have, Scalar) and have.kind == "none":
        return f"cast(null as {want.ddl})"
    if not isinstance(have, Row) or not isinstance(want, Row):
        raise NotNative("values of different types come together")
    fields = zip(have.fields, want.fields, strict=True)
    made = struct(tuple(converted(f"{text}.f{i}", a, b) for i, (a, b) in enumerate(fields)))
    return f"if({text} IS NULL, cast(null as {want.ddl}), {made})" if have.nullable else made


def is_struct(schema: Schema) -> bool:
    """Say whether payloads of the schema are structs on Spark."""
    return schema.shape in (Shape.RECORD, Shape.TUPLE, Shape.CLASS) and bool(schema.names)


def _said(expr: Expr) -> str:
    name = getattr(expr, "name", None)
    return f"the opaque function {name}" if type(expr).__name__ == "Opaque" else f"{name or type(expr).__name__}"


def _field(expr: Any, env: Env) -> Sql:
    row: RowAt = env.rows[expr.side]
    return row.field(expr.name)


def _whole(expr: Any, env: Env) -> Sql:
    row: RowAt = env.rows[expr.side]
    return row.whole()


def _life(expr: Any, env: Env) -> Sql:
    if env.starts and expr.end == "le":
        return Sql(env.starts[expr.side], INT)
    return Sql(env.le if expr.end == "le" else env.re, INT)


def _key(expr: Any, env: Env) -> Sql:
    if env.key is None:
        raise NotNative("the key of the group is known in Python only")
    return env.key


def _constant(expr: Any, env: Env) -> Sql:
    value = expr.value
    if value is None:
        return Sql("cast(null as boolean)", NONE)
    if type(value) is bool:
        return Sql("true" if value else "false", BOOL)
    if type(value) is int and MIN_TIME <= value <= INFINITY:
        return Sql(integer(value), INT)
    if type(value) is float:
        return Sql(double(value), FLOAT)
    if type(value) is str:
        return Sql(quote(value), STR, literal=True)
    raise NotNative(f"the constant {value!r} has no exact counterpart on Spark")


def _make(expr: Any, env: Env) -> Sql:
    if not is_struct(expr.schema):
        raise NotNative("it builds a Python object")
    values = [_translated(value, env) for value in expr.values]
    kind = Row(expr.schema, tuple(value.type for value in values))
    return Sql(struct(tuple(value.text for value in values)), kind, any(value.raises for value in values))


def _attribute(expr: Any, env: Env) -> Sql:
    operand = _translated(expr.operand, env)
    if operand.type == ANY:
        return operand
    plain = isinstance(operand.type, Row) and operand.type.schema.shape in (Shape.RECORD, Shape.CLASS)
    if not plain or is_taken(expr.name):
        raise NotNative(f"the attribute {expr.name} is read in Python")
    found = RowAt(as_nullable(operand.type, False), operand.text).field(expr.name)
    if not operand.type.nullable:
        return Sql(found.text, found.type, operand.raises)
    error = AttributeError(f"'NoneType' object has no attribute {expr.name!r}")
    return Sql(f"if({operand.text} IS NULL, {fault(error)}, {found.text})", found.type, True)


def _choose(expr: Any, env: Env) -> Sql:
    conditions = [truth(_translated(condition, env)) for condition, _ in expr.branches]
    values = [_translated(value, env) for value in (*(value for _, value in expr.branches), expr.otherwise)]
    kind = unify([value.type for value in values])
    if isinstance(kind, Pickled):
        raise NotNative("its branches give values of different types")
    texts = [converted(value.text, value.type, kind) for value in values]
    branches = " ".join(f"WHEN {c.text} THEN {text}" for c, text in zip(conditions, texts, strict=False))
    return Sql(f"CASE {branches} ELSE {texts[-1]} END", kind, any(value.raises for value in (*conditions, *values)))


def _applied(expr: Any, env: Env) -> Sql:
    applied = application(expr)
    assert applied is not None
    word, parts = applied
    if not word.native:
        raise NotNative(f"{word.name} runs in Python")
    if word.name == "contains" and isinstance(parts[0], Constant) and type(parts[0].value) is tuple:
        return _is_some(parts[0].value, parts[1], env)
    return apply(word, [_translated(part, env) for part in parts])


def _is_some(values: tuple[Any, ...], expr: Expr, env: Env) -> Sql:
    """Return whether an expression equals some value of a tuple."""
    value = _translated(expr, env)
    tests = [apply(SCALAR_FUNCTIONS["=="], [value, _translated(Constant(item), env)]).text for item in values]
    if value.raises and not tests:
        raise NotNative("Spark would not compute what is in no tuple")
    return Sql(f"({' OR '.join(tests) or 'false'})", BOOL, value.raises)


_TRANSLATIONS: Final[Mapping[type[Expr], Callable[[Any, Env], Sql]]] = {
    Field: _field,
    Whole: _whole,
    Life: _life,
    Key: _key,
    Constant: _constant,
    **dict.fromkeys((Binary, Unary, Method, Function), _applied),
    Attribute: _attribute,
    Choose: _choose,
    Make: _make,
}
