"""Translation of expressions to Spark SQL, where it has exactly Python's meaning; `NotNative` gives the reason elsewhere.

Python's rules are spelled out, so neither ANSI mode nor another setting of the session changes a result: what raises in Python
fails the task with the name of Python's error, NaN equals nothing, and None equals only None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from streamdsl.errors import place_of
from streamdsl.expr.describe import failed_part
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
)
from streamdsl.expr.scalar_functions import SCALAR_FUNCTIONS
from streamdsl.expr.schema import Schema, Shape
from streamdsl.spark.column_types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    ColumnType,
    ListType,
    PickledType,
    RecordType,
    ScalarType,
    as_nullable,
    hints_of,
    known_type,
    type_of_hint,
    unify,
)
from streamdsl.spark.inferred_types import type_of_attribute, type_of_function
from streamdsl.spark.list_functions import apply_to_list
from streamdsl.spark.operations import apply, predicate_truth, truth
from streamdsl.spark.payload_preview import payload_preview
from streamdsl.spark.sql_text import NotNative, Sql, double, integer, quote, struct
from streamdsl.spark.task_errors import ErrorSite, error_marker, mark_expression, resolve_markers
from streamdsl.temporal import INFINITY, MIN_TIME
from streamdsl.temporal.payload import is_taken

_MAX_SQL_LENGTH: Final = 20_000


@dataclass(frozen=True, slots=True)
class PayloadRef:
    """A reference to the payload of a row: one column, or one column per field (`field_columns`)."""

    type: ColumnType
    text: str = "p"
    field_columns: tuple[str, ...] | None = None

    def whole(self) -> Sql:
        """Return the SQL of the whole payload."""
        if self.field_columns is None:
            return Sql(self.text, self.type)
        return Sql(struct(self.field_columns), self.type)

    def field(self, name: str) -> Sql:
        """Return the SQL of one field of the payload, or raise `NotNative`."""
        if self.type == ANY:
            return Sql("null", ANY)
        if not isinstance(self.type, RecordType):
            if name == "value" and isinstance(self.type, ScalarType):
                return Sql(self.text, self.type)
            raise NotNative("the payloads are Python objects")
        if self.type.nullable or name not in self.type.schema.names:
            raise NotNative(f"not every payload has the field {name}")
        index = self.type.schema.names.index(name)
        text = f"{self.text}.f{index}" if self.field_columns is None else self.field_columns[index]
        return Sql(text, self.type.fields[index])


@dataclass(frozen=True, slots=True)
class Env:
    """The environment of an expression: the payloads, the lifetime or LEs of a pair, the group's key, the operator's label.

    With `window` the lifetime is that of the window whose result the row is; error messages then show it.
    """

    rows: tuple[PayloadRef, ...]
    le: str = "le"
    re: str = "re"
    key: Sql | None = None
    starts: tuple[str, ...] = ()
    operator: str = ""
    window: bool = False

    def at(self, expr: Expr) -> ErrorSite:
        """Return what an error message says of an expression that fails: operator, line, window and payload."""
        written = next((part.written for part in expr.walk() if part.written is not None), None)
        window = ("[", Sql(self.le, INT), ", ", Sql(self.re, INT), ")") if self.window else ()
        return ErrorSite(self.operator, written, failed_part(expr), window, payload_preview(expr, self.rows))


def to_sql(expr: Expr, env: Env) -> Sql:
    """Return an expression as SQL, or raise `NotNative`.

    >>> to_sql(Binary("<", Field("value"), Constant(1)), Env((PayloadRef(INT),))).text
    '(p < 1L)'
    """
    return with_messages(_translate(expr, env), expr, env)


def to_test(predicate: Expr, env: Env) -> Sql:
    """Return a predicate as SQL, or raise `NotNative`; a predicate that is None fails the task."""
    return with_messages(predicate_truth(_translate(predicate, env)), predicate, env)


def to_items(expr: Expr, env: Env) -> tuple[str, ColumnType]:
    """Return the array of the items of a list or a tuple as SQL, and the type of its items, or raise `NotNative`."""
    found = _translate(expr, env)
    kind = found.type
    if isinstance(kind, ListType):
        error = error_marker(TypeError("'NoneType' object is not iterable"))
        text = f"if({found.text} IS NULL, {error}, {found.text})" if kind.nullable else found.text
        return with_messages(Sql(text, kind, True), expr, env).text, kind.item
    if not isinstance(expr, Make) or expr.schema != Schema.tuple(len(expr.values)):
        raise NotNative("Python makes the items")
    values = [_translate(value, env) for value in expr.values]
    item = unify([value.type for value in values])
    texts = [convert_sql(value.text, value.type, item) for value in values]
    return with_messages(Sql(f"array({', '.join(texts)})", ListType(item)), expr, env).text, item


def with_messages(found: Sql, expr: Expr, env: Env) -> Sql:
    """Return the SQL of an expression with its error markers replaced by messages."""
    return replace(found, text=resolve_markers(mark_expression(found.text, expr), expr, env.at))


def _translate(expr: Expr, env: Env) -> Sql:
    """Return an expression as SQL that still has error markers."""
    found = _TRANSLATIONS.get(type(expr))
    if found is None:
        raise NotNative(f"{_described(expr)} runs in Python")
    result = found(expr, env)
    if len(result.text) > _MAX_SQL_LENGTH:
        raise NotNative("as SQL it would be too long")
    return replace(result, text=mark_expression(result.text, expr))


def infer(expr: Expr, env: Env) -> ColumnType:
    """Return the type of an expression's values, whether it runs natively or in Python."""
    try:
        return _translate(expr, env).type
    except NotNative:
        return _type_in_python(expr, env) or PickledType(declared_type(expr), origin=_origin(expr, env))


def _type_in_python(expr: Expr, env: Env) -> ColumnType | None:
    """Return the type of what Python computes, as far as the types of the parts tell."""
    if isinstance(expr, Make) and is_struct(expr.schema):
        return RecordType(expr.schema, tuple(infer(value, env) for value in expr.values))
    if isinstance(expr, Choose):
        kind = unify([infer(value, env) for value in (*(value for _, value in expr.branches), expr.otherwise)])
        return None if known_type(kind) is None else kind
    if isinstance(expr, Field):
        return _declared_field(env.rows[expr.side].type, expr.name)
    if isinstance(expr, Attribute):
        operand = infer(expr.operand, env)
        return type_of_attribute(operand, expr.name) or _declared_field(operand, expr.name)
    applied = application(expr)
    return None if applied is None else type_of_function(applied[0], applied[1], [infer(part, env) for part in applied[1]])


def _declared_field(kind: ColumnType, name: str) -> ColumnType | None:
    """Return the type of a field of objects whose class declares it."""
    declared = known_type(kind)
    if not isinstance(declared, RecordType) or name not in declared.schema.names:
        return None
    return PickledType(known_type(declared.fields[declared.schema.names.index(name)]), origin=f"the field {name}")


def declared_type(expr: Expr) -> ColumnType | None:
    """Return the type that the annotation of an opaque function declares for its results, or None."""
    function = getattr(expr, "function", None)
    while (inner := getattr(function, "function", None)) is not None:  # a function of two rows, seen from one of them
        function = inner
    return None if function is None else type_of_hint(hints_of(function).get("return", Any))


def _origin(expr: Expr, env: Env) -> str:
    """Return what gives values of an unknown type: the operator, the function, and the line of the lambda."""
    parts = list(expr.walk())
    opaque = next((part for part in parts if isinstance(part, (Opaque, Call))), None)
    written = next((part.written for part in (opaque, *parts) if part is not None and part.written is not None), None)
    place = [] if written is None else [f"lambda in {place_of(*written)}"]
    if isinstance(opaque, Call) or (opaque is not None and opaque.name != "<lambda>"):
        place = [f"the function {opaque.name}", *(each.replace("lambda ", "") for each in place)]
    return ", ".join([*([f"operator {env.operator}"] if env.operator else []), *place])


def convert_sql(text: str, have: ColumnType, want: ColumnType) -> str:
    """Return the SQL of a value converted to another type, or raise `NotNative` where it must be pickled."""
    if as_nullable(have) == as_nullable(want):
        return text
    if isinstance(have, ScalarType) and have.kind == "none":
        if isinstance(want, ScalarType):
            return f"cast({text} as {want.ddl})"  # it may raise
        if "raise_error" not in text:
            return f"cast(null as {want.ddl})"
    if not isinstance(have, RecordType) or not isinstance(want, RecordType):
        raise NotNative("values of different types come together")
    fields = zip(have.fields, want.fields, strict=True)
    made = struct(tuple(convert_sql(f"{text}.f{i}", a, b) for i, (a, b) in enumerate(fields)))
    return f"if({text} IS NULL, cast(null as {want.ddl}), {made})" if have.nullable else made


def is_struct(schema: Schema) -> bool:
    """Say whether payloads of the schema are structs on Spark."""
    return schema.shape in (Shape.RECORD, Shape.TUPLE, Shape.CLASS) and bool(schema.names)


def _described(expr: Expr) -> str:
    name = getattr(expr, "name", None)
    return f"the opaque function {name}" if type(expr).__name__ == "Opaque" else f"{name or type(expr).__name__}"


def _field(expr: Any, env: Env) -> Sql:
    row: PayloadRef = env.rows[expr.side]
    return row.field(expr.name)


def _whole(expr: Any, env: Env) -> Sql:
    row: PayloadRef = env.rows[expr.side]
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
    values = [_translate(value, env) for value in expr.values]
    kind = RecordType(expr.schema, tuple(value.type for value in values))
    return Sql(struct(tuple(value.text for value in values)), kind, any(value.raises for value in values))


def _attribute(expr: Any, env: Env) -> Sql:
    operand = _translate(expr.operand, env)
    if operand.type == ANY:
        return operand
    if operand.type == NONE:
        return Sql(f"cast({error_marker(_no_attribute(expr.name))} as boolean)", NONE, True)
    plain = isinstance(operand.type, RecordType) and operand.type.schema.shape in (Shape.RECORD, Shape.CLASS)
    if not plain or is_taken(expr.name):
        raise NotNative(f"the attribute {expr.name} is read in Python")
    found = PayloadRef(as_nullable(operand.type, False), operand.text).field(expr.name)
    if not operand.type.nullable:
        return Sql(found.text, found.type, operand.raises)
    return Sql(f"if({operand.text} IS NULL, {error_marker(_no_attribute(expr.name))}, {found.text})", found.type, True)


def _no_attribute(name: str) -> AttributeError:
    return AttributeError(f"'NoneType' object has no attribute {name!r}")


def _choose(expr: Any, env: Env) -> Sql:
    conditions = [truth(_translate(condition, env)) for condition, _ in expr.branches]
    values = [_translate(value, env) for value in (*(value for _, value in expr.branches), expr.otherwise)]
    kind = unify([value.type for value in values])
    if isinstance(kind, PickledType):
        raise NotNative("its branches give values of different types")
    texts = [convert_sql(value.text, value.type, kind) for value in values]
    branches = " ".join(f"WHEN {c.text} THEN {text}" for c, text in zip(conditions, texts, strict=False))
    return Sql(f"CASE {branches} ELSE {texts[-1]} END", kind, any(value.raises for value in (*conditions, *values)))


def _applied(expr: Any, env: Env) -> Sql:
    applied = application(expr)
    assert applied is not None
    word, parts = applied
    if not word.native:
        raise NotNative(f"{word.name} runs in Python")
    if word.name == "contains" and isinstance(parts[0], Constant) and type(parts[0].value) is tuple:
        return _membership(parts[0].value, parts[1], env)
    arguments = [_translate(part, env) for part in parts]
    return (apply_to_list if isinstance(arguments[0].type, ListType) else apply)(word, arguments)


def _membership(values: tuple[Any, ...], expr: Expr, env: Env) -> Sql:
    """Return the SQL of whether an expression equals some value of a tuple."""
    value = _translate(expr, env)
    tests = [apply(SCALAR_FUNCTIONS["=="], [value, _translate(Constant(item), env)]).text for item in values]
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
