"""Expressions as Spark SQL, where it certainly means what Python means; `NotNative` says why elsewhere.

Python's rules are written out, so that neither ANSI mode nor any other setting of the session changes an answer: what raises in
Python fails the task with the name of Python's error, NaN is equal to nothing, None is equal to None only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from streamdsl.expr.nodes import Attribute, Binary, Choose, Constant, Expr, Field, Key, Life, Make, Method, Unary, Whole
from streamdsl.expr.schema import Schema, Shape
from streamdsl.spark.types import ANY, BOOL, FLOAT, INT, NONE, STR, Pickled, Row, Scalar, Type, as_nullable, unify
from streamdsl.temporal import INFINITY, MIN_TIME, Record

_LONGEST: Final = 20_000
_SAFE: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _.,:;/+-()[]<>=*#@!?|~^&")
_COMPARISONS: Final = {"==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


class NotNative(Exception):  # noqa: N818
    """An expression that runs in Python; the message says why."""


@dataclass(frozen=True, slots=True)
class Sql:
    """An expression as SQL text, the type of its values, and whether it may fail the task."""

    text: str
    type: Type
    raises: bool = False

    @property
    def kind(self) -> str:
        """The kind of a scalar; raises `NotNative` for other types."""
        if not isinstance(self.type, Scalar):
            raise NotNative("it computes with values that only Python knows")
        return self.type.kind


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
    """What an expression can read: the rows, the lifetime, the key of the group."""

    rows: tuple[RowAt, ...]
    le: str = "le"
    re: str = "re"
    key: Sql | None = None


def to_sql(expr: Expr, env: Env) -> Sql:
    """Return an expression as SQL, or raise `NotNative`.

    >>> to_sql(Binary("+", Field("value"), Constant(1)), Env((RowAt(INT),))).text
    "coalesce(try_add(p, 1L), raise_error('OverflowError: an integer leaves int64'))"
    """
    found = _TRANSLATIONS.get(type(expr))
    if found is None:
        raise NotNative(f"{_said(expr)} runs in Python")
    result = found(expr, env)
    if len(result.text) > _LONGEST:
        raise NotNative("as SQL it would be too long")
    return result


def infer(expr: Expr, env: Env) -> Type:
    """Return the type of an expression's values, whether it runs natively or in Python."""
    try:
        return to_sql(expr, env).type
    except NotNative:
        if isinstance(expr, Make) and is_struct(expr.schema):
            return Row(expr.schema, tuple(infer(value, env) for value in expr.values))
        return Pickled(declared(expr))


def declared(expr: Expr) -> Type | None:
    """Return the type that a function's annotation declares for its results."""
    from streamdsl.spark.types import hints_of, type_of_hint

    function = getattr(expr, "function", None)
    return None if function is None else type_of_hint(hints_of(function).get("return", Any))


def truth(condition: Sql) -> Sql:
    """Return `bool(condition)`.

    >>> truth(Sql("x", as_nullable(INT))).text
    'coalesce(x <> 0L, false)'
    """
    kind = condition.kind
    tests = {"bool": "{}", "any": "{}", "int": "{} <> 0L", "float": "{} <> 0D", "str": "{} <> ''"}
    if kind == "none":
        return Sql("false", BOOL)
    text = tests[kind].format(condition.text)
    return Sql(f"coalesce({text}, false)" if condition.type.nullable else f"({text})", BOOL, condition.raises)


def is_struct(schema: Schema) -> bool:
    """Say whether payloads of the schema are structs on Spark."""
    return schema.shape in (Shape.RECORD, Shape.TUPLE, Shape.CLASS) and bool(schema.names)


def struct(parts: tuple[str, ...]) -> str:
    """Return the SQL of a struct of `f0`, `f1`, ..."""
    fields = ", ".join(f"'f{i}', {part}" for i, part in enumerate(parts))
    return f"named_struct({fields})"


def raising(error: str, message: str) -> str:
    """Return the SQL that fails the task with an error's name and message."""
    return f"raise_error({quote(f'{error}: {message}')})"


def quote(text: str) -> str:
    """Return a text as an SQL literal that no setting of the session can read otherwise.

    >>> quote("a b"), quote("it's")
    ("'a b'", "decode(unhex('69742773'), 'UTF-8')")
    """
    if set(text) <= _SAFE:
        return f"'{text}'"
    try:
        return f"decode(unhex('{text.encode().hex().upper()}'), 'UTF-8')"
    except UnicodeEncodeError:
        raise NotNative("a text is not valid Unicode") from None


def integer(value: int) -> str:
    """Return an int of int64 as an SQL literal."""
    return f"{value}L"


def double(value: float) -> str:
    """Return a float as an SQL literal of the same bits.

    >>> double(0.1), double(math.inf)
    ('0.1D', "double('Infinity')")
    """
    if math.isnan(value):
        return "double('NaN')"
    if math.isinf(value):
        return "double('Infinity')" if value > 0 else "double('-Infinity')"
    return f"{value!r}D"


def floor_div(text: str, divisor: int) -> str:
    """Return the SQL of `x // divisor` for a positive constant; never through double, and no overflow.

    >>> floor_div("x", 10)
    '((x) div 10L - if((x) % 10L < 0, 1L, 0L))'
    """
    by = integer(divisor)
    return f"({text})" if divisor == 1 else f"(({text}) div {by} - if(({text}) % {by} < 0, 1L, 0L))"


def plus_time(text: str, duration: int) -> str:
    """Return the SQL of a time moved by a constant: INFINITY absorbs, another overflow fails the task."""
    if duration == 0:
        return text
    return moved_time(text, integer(duration)) if duration != INFINITY else integer(INFINITY)


def moved_time(time: str, duration: str) -> str:
    """Return the SQL of `add_time`."""
    infinity = integer(INFINITY)
    overflow = raising("TimeOverflow", "a time leaves the range of times, int64 ticks")
    total = f"coalesce(nullif(try_add({time}, {duration}), {infinity}), {overflow})"
    return f"CASE WHEN {time} = {infinity} OR {duration} = {infinity} THEN {infinity} ELSE {total} END"


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
        return Sql(quote(value), STR)
    raise NotNative(f"the constant {value!r} has no exact counterpart on Spark")


def _make(expr: Any, env: Env) -> Sql:
    if not is_struct(expr.schema):
        raise NotNative("it builds a Python object")
    values = [to_sql(value, env) for value in expr.values]
    kind = Row(expr.schema, tuple(value.type for value in values))
    return Sql(struct(tuple(value.text for value in values)), kind, any(value.raises for value in values))


def _attribute(expr: Any, env: Env) -> Sql:
    operand = to_sql(expr.operand, env)
    if operand.type == ANY:
        return operand
    plain = isinstance(operand.type, Row) and operand.type.schema.shape in (Shape.RECORD, Shape.CLASS)
    if not plain or hasattr(Record, expr.name):
        raise NotNative(f"the attribute {expr.name} is read in Python")
    found = RowAt(as_nullable(operand.type, False), operand.text).field(expr.name)
    if not operand.type.nullable:
        return Sql(found.text, found.type, operand.raises)
    error = raising("UserCodeError", f"AttributeError in user code: None has no attribute {expr.name}")
    return Sql(f"if({operand.text} IS NULL, {error}, {found.text})", found.type, True)


def _method(expr: Any, env: Env) -> Sql:
    operand, arguments = to_sql(expr.operand, env), [to_sql(argument, env) for argument in expr.arguments]
    strings = all(value.kind in ("str", "any") for value in (operand, *arguments))
    if expr.name not in ("startswith", "endswith") or len(arguments) != 1 or not strings:
        raise NotNative(f"the method {expr.name} runs in Python")
    texts = [_there(value, f"it has no method {expr.name}") for value in (operand, *arguments)]
    return Sql(f"{expr.name}({', '.join(text.text for text in texts)})", BOOL, any(text.raises for text in texts))


def _choose(expr: Any, env: Env) -> Sql:
    conditions = [truth(to_sql(condition, env)) for condition, _ in expr.branches]
    values = [to_sql(value, env) for value in (*(value for _, value in expr.branches), expr.otherwise)]
    kind = unify([value.type for value in values])
    if isinstance(kind, Pickled):
        raise NotNative("its branches give values of different types")
    texts = [_as(value, kind) for value in values]
    branches = " ".join(f"WHEN {c.text} THEN {text}" for c, text in zip(conditions, texts, strict=False))
    return Sql(f"CASE {branches} ELSE {texts[-1]} END", kind, any(value.raises for value in (*conditions, *values)))


def _as(value: Sql, kind: Type) -> str:
    none = isinstance(value.type, Scalar) and value.type.kind == "none"
    return f"cast(null as {kind.ddl})" if none else value.text


def _there(value: Sql, why: str) -> Sql:
    """Return a value that fails the task where it is None, as Python raises."""
    if value.kind == "none":
        raise NotNative("Python raises for None")
    if not value.type.nullable:
        return value
    error = raising("UserCodeError", f"TypeError in user code: a value is None, and {why}")
    return Sql(f"coalesce({value.text}, {error})", as_nullable(value.type, False), True)


def _unary(expr: Any, env: Env) -> Sql:
    operand = to_sql(expr.operand, env)
    if expr.op == "is_none":
        return Sql(f"({operand.text} IS NULL)", BOOL, operand.raises)
    if expr.op == "not":
        held = truth(operand)
        return Sql(f"(NOT {held.text})", BOOL, held.raises)
    value = _number(_there(operand, f"there is no {expr.op} of it"))
    if value.kind == "any" or expr.op == "+":
        return value
    if value.kind == "float":
        return Sql(f"(- {value.text})" if expr.op == "-" else f"abs({value.text})", FLOAT, value.raises)
    negative = _checked(f"try_subtract(0L, {value.text})")
    text = negative if expr.op == "-" else f"CASE WHEN {value.text} < 0L THEN {negative} ELSE {value.text} END"
    return Sql(text, INT, True)


def _number(value: Sql) -> Sql:
    if value.kind == "bool":
        return Sql(f"cast({value.text} as bigint)", INT, value.raises)
    if value.kind not in ("int", "float", "any"):
        raise NotNative(f"{value.kind} is not a number")
    return value


def _checked(text: str) -> str:
    return f"coalesce({text}, {raising('OverflowError', 'an integer leaves int64')})"


def _binary(expr: Any, env: Env) -> Sql:
    left, right = to_sql(expr.left, env), to_sql(expr.right, env)
    if expr.op in ("==", "!="):
        return _equality(expr.op, left, right)
    if expr.op not in _OPERATIONS:
        raise NotNative(f"{expr.op} is computed in Python")
    left, right = (_there(value, f"Python has no {expr.op} of it") for value in (left, right))
    if "any" in (left.kind, right.kind):
        return Sql("null", BOOL if expr.op in _COMPARISONS else ANY)
    return _OPERATIONS[expr.op](expr.op, left, right)


def _equality(op: str, left: Sql, right: Sql) -> Sql:
    kinds, raises = (left.kind, right.kind), left.raises or right.raises
    if "any" in kinds:
        return Sql("null", BOOL)
    if "none" in kinds:
        other = left if kinds[1] == "none" else right
        text = f"({other.text} IS NULL)"
    elif (kinds[0] == "str") != (kinds[1] == "str"):
        text = f"({left.text} IS NULL AND {right.text} IS NULL)"
    else:
        values = [Sql(value.text, as_nullable(value.type, False)) for value in (left, right)]
        compared = _compare("==", values[0], values[1]).text
        nulls = f"{left.text} IS NULL OR {right.text} IS NULL"
        nullable = left.type.nullable or right.type.nullable
        text = f"if({nulls}, {left.text} IS NULL AND {right.text} IS NULL, {compared})" if nullable else compared
    return Sql(text if op == "==" else f"(NOT {text})", BOOL, raises)


def _compare(op: str, left: Sql, right: Sql) -> Sql:
    raises = left.raises or right.raises
    if (left.kind == "str") != (right.kind == "str"):
        raise NotNative("Python raises when a text is compared with a number")
    if left.kind == "str" or (left.kind == "bool" == right.kind):
        return Sql(f"({left.text} {_COMPARISONS[op]} {right.text})", BOOL, raises)
    left, right = _as_float(_number(left), right), _as_float(_number(right), left)
    if left.kind == right.kind == "int":
        return Sql(f"({left.text} {_COMPARISONS[op]} {right.text})", BOOL, raises)
    if left.kind == right.kind == "float":
        return Sql(_compare_floats(op, left.text, right.text), BOOL, raises)
    if left.kind == "float":
        left, right, op = right, left, {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
    return Sql(_compare_mixed(op, left.text, right.text), BOOL, raises)


def _as_float(value: Sql, beside: Sql) -> Sql:
    """Return an int literal beside a float as the float that it equals exactly."""
    digits = value.text[:-1]
    literal = value.text.endswith("L") and digits.removeprefix("-").isdigit()
    exact = literal and beside.kind == "float" and abs(int(digits)) <= 2**53
    return Sql(double(float(digits)), FLOAT) if exact else value


def _compare_floats(op: str, left: str, right: str) -> str:
    """Compare as Python does: nothing holds of NaN (but !=, which is written as not ==)."""
    tests = [f"{left} {_COMPARISONS[op]} {right}"]
    tests += [f"NOT isnan({text})" for text in (left, right) if not _is_literal(text)]
    return f"({' AND '.join(tests)})" if "NaN" not in left + right else "false"


def _is_literal(text: str) -> bool:
    return text.endswith("D") and text[:-1].replace(".", "").replace("e", "").replace("-", "").replace("+", "").isdigit()


def _compare_mixed(op: str, whole: str, real: str) -> str:
    """Compare an int with a float exactly, also beyond 2**53 where the int has no float."""
    symbol = _COMPARISONS[op]
    near = f"cast({whole} as double)"
    beyond = "true" if op in ("<", "<=") else "false"
    cases = f"WHEN isnan({real}) THEN false WHEN {near} <> {real} THEN {near} {symbol} {real}"
    return f"CASE {cases} WHEN {real} >= 9.223372036854775807E18D THEN {beyond} ELSE {whole} {symbol} cast({real} as bigint) END"


def _add(op: str, left: Sql, right: Sql) -> Sql:
    if op == "+" and left.kind == right.kind == "str":
        return Sql(f"concat({left.text}, {right.text})", STR, left.raises or right.raises)
    left, right = _number(left), _number(right)
    if left.kind == right.kind == "int":
        function = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}[op]
        return Sql(_checked(f"{function}({left.text}, {right.text})"), INT, True)
    return Sql(f"({_real(left)} {op} {_real(right)})", FLOAT, left.raises or right.raises)


def _real(value: Sql) -> str:
    return value.text if value.kind == "float" else f"cast({value.text} as double)"


def _divide(op: str, left: Sql, right: Sql) -> Sql:
    left, right = _number(left), _number(right)
    return Sql(f"({_real(left)} / {_nonzero(_real(right), '0D')})", FLOAT, True)


def _nonzero(text: str, zero: str) -> str:
    error = raising("UserCodeError", "ZeroDivisionError in user code: division by zero")
    return text if _is_nonzero(text) else f"CASE WHEN {text} = {zero} THEN {error} ELSE {text} END"


def _is_nonzero(text: str) -> bool:
    return (text[:-1].isdigit() or _is_literal(text)) and float(text[:-1]) != 0


def _modulo(op: str, left: Sql, right: Sql) -> Sql:
    left, right = _number(left), _number(right)
    if left.kind == right.kind == "int":
        return _whole_modulo(op, left, right)
    if op == "//":
        raise NotNative("// of floats is computed in Python")
    a, n = _real(left), _nonzero(_real(right), "0D")
    rest = f"({a} % {n})"
    return Sql(f"CASE WHEN {rest} <> 0D AND ({rest} < 0D) <> ({n} < 0D) THEN {rest} + {n} ELSE {rest} END", FLOAT, True)


def _whole_modulo(op: str, left: Sql, right: Sql) -> Sql:
    a, n = left.text, right.text
    if n[:-1].isdigit() and int(n[:-1]) > 0:
        by = int(n[:-1])
        text = floor_div(a, by) if op == "//" else f"pmod({a}, {n})"
        return Sql(text, INT, left.raises)
    n = _nonzero(n, "0L")
    apart = f"{a} % {n} <> 0L AND ({a} % {n} < 0L) <> ({n} < 0L)"
    if op == "%":
        return Sql(f"CASE WHEN {n} = -1L THEN 0L WHEN {apart} THEN {a} % {n} + {n} ELSE {a} % {n} END", INT, True)
    negative = _checked(f"try_subtract(0L, {a})")
    return Sql(f"CASE WHEN {n} = -1L THEN {negative} ELSE {a} div {n} - if({apart}, 1L, 0L) END", INT, True)


def _bits(op: str, left: Sql, right: Sql) -> Sql:
    raises = left.raises or right.raises
    if left.kind == right.kind == "bool":
        if op == "^":
            return Sql(f"({left.text} <> {right.text})", BOOL, raises)
        if raises:
            both = f"cast({left.text} as bigint) {op} cast({right.text} as bigint)"
            return Sql(f"(({both}) = 1L)", BOOL, True)
        return Sql(f"({left.text} {'AND' if op == '&' else 'OR'} {right.text})", BOOL, raises)
    if "float" in (left.kind, right.kind):
        raise NotNative("Python raises for bits of floats")
    return Sql(f"({_number(left).text} {op} {_number(right).text})", INT, raises)


_OPERATIONS: dict[str, Callable[[str, Sql, Sql], Sql]] = {
    **dict.fromkeys(("<", "<=", ">", ">="), _compare),
    **dict.fromkeys(("+", "-", "*"), _add),
    **dict.fromkeys(("%", "//"), _modulo),
    **dict.fromkeys(("&", "|", "^"), _bits),
    "/": _divide,
}

_TRANSLATIONS: dict[type, Callable[[Any, Env], Sql]] = {
    Field: _field,
    Whole: _whole,
    Life: _life,
    Key: _key,
    Constant: _constant,
    Binary: _binary,
    Unary: _unary,
    Attribute: _attribute,
    Method: _method,
    Choose: _choose,
    Make: _make,
}
