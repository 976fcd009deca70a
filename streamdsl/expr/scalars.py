"""Expressions as one Python function of a single row: what columns give, for rows that come one by one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from streamdsl.expr.nodes import (
    Attribute,
    Binary,
    Choose,
    Constant,
    Expr,
    Field,
    Function,
    Key,
    Make,
    Method,
    Unary,
    Whole,
    application,
)
from streamdsl.expr.schema import Schema, Shape
from streamdsl.temporal.payload import PLAIN, Record

Values: TypeAlias = tuple[Any, ...]
"""The values of a payload's fields, or of the parts of a key: plain ones, that hold no others."""
RowFunction: TypeAlias = Callable[[Values, Values], Values]

_NO_KEYS: Final = itertools.repeat(())
_LONGEST: Final = 100
"""Expressions with more nodes are left to columns: what is shared in them is written out here."""
_SYMBOLS: Final = {"-x": "(-{})", "+x": "(+{})", "not": "(not {})", "is_none": "({} is None)"}


def plain_values(payload: Any, schema: Schema) -> Values | None:
    """Return the values of a payload's fields; None where it needs a closer look, which `Table.from_payloads` takes.

    >>> plain_values(("a", 2), Schema.tuple(2)), plain_values(("a",), Schema.tuple(2))
    (('a', 2), None)
    """
    names, kind, shape = schema.names, type(payload), schema.shape
    values: Values
    if shape is Shape.TUPLE and kind is tuple:
        values = payload
    elif shape is Shape.RECORD and kind in (dict, Record) and len(payload) == len(names):
        values = tuple([payload.get(name, payload) for name in names])
    elif shape is Shape.CLASS and kind is schema.cls:
        values = tuple([getattr(payload, name) for name in names])
    elif shape is Shape.SCALAR:
        values = (payload,)
    else:
        return None
    return values if len(values) == len(names) and PLAIN.issuperset(map(type, values)) else None


class Scalars:
    """Expressions over rows in Python's own values; what is not certain to be as in columns, or fails, is left to them.

    >>> doubled = Scalars([Binary("*", Field("x"), Constant(2)), Field("y")])
    >>> doubled.rows([(21, "a"), (0.5, None)], Schema.record(["x", "y"]))
    [(42, 'a'), (1.0, None)]
    >>> doubled.rows([(None, "a")], Schema.record(["x", "y"])) is None
    True
    """

    def __init__(self, exprs: Sequence[Expr], keys: Schema | None = None) -> None:
        self._exprs = tuple(exprs)
        self._keys = keys
        self._is_plain = all(type(expr) is Field for expr in exprs)
        self._schema: Schema | None = None
        self._function: RowFunction | None = None

    def rows(self, rows: Sequence[Values], schema: Schema, keys: Iterable[Values] = _NO_KEYS) -> list[Values] | None:
        """Return the values of the expressions in each row, in groups with these keys; None where columns have to say."""
        if schema is not self._schema and schema != self._schema:
            self._schema, self._function = schema, self._compiled(schema)
        if self._function is None:
            return None
        try:
            found = list(map(self._function, rows, keys))
        except Exception:
            return None
        if not self._is_plain:
            for values in found:
                if not PLAIN.issuperset(map(type, values)):
                    return None
        return found

    def _compiled(self, schema: Schema) -> RowFunction | None:
        return _compiled(self._exprs, schema, self._keys)


class Projected(Scalars):
    """A projection of rows in Python's own values; `schema` is that of what it makes, None: the schema of the rows.

    >>> projected = Projected(Field("x"))
    >>> projected.rows([(1, 2)], Schema.record(["x", "y"])), projected.schema
    ([(1,)], Schema(value))
    """

    def __init__(self, projection: Expr, keys: Schema | None = None) -> None:
        super().__init__(projection.values if isinstance(projection, Make) else (projection,), keys)
        self.schema: Schema | None = projection.schema if isinstance(projection, Make) else Schema.scalar()
        if isinstance(projection, Whole):
            self.schema, self._is_plain = None, True

    def _compiled(self, schema: Schema) -> RowFunction | None:
        return _same_values if self.schema is None else super()._compiled(schema)


def _same_values(values: Values, key: Values) -> Values:
    return values


def _compiled(exprs: Sequence[Expr], schema: Schema, keys: Schema | None) -> RowFunction | None:
    if schema.shape is Shape.OBJECT:
        return None
    writing = _Writing(schema, keys)
    try:
        body = "".join([f"{writing.of(expr)}, " for expr in exprs])
    except _UnsaidError:
        return None
    made: RowFunction = eval(f"lambda v, k: ({body})", writing.names)
    return made


class _UnsaidError(Exception):
    """An expression has no words here."""


class _Writing:
    """The source text of expressions over the values `v` of a row and `k` of its key, and what the names in it stand for."""

    def __init__(self, schema: Schema, keys: Schema | None) -> None:
        self.schema = schema
        self.keys = keys
        self.names: dict[str, Any] = {}
        self._n_nodes = 0

    def of(self, expr: Expr) -> str:
        """Return the text of an expression."""
        self._n_nodes += 1
        form = _FORMS.get(type(expr))
        if form is None or self._n_nodes > _LONGEST:
            raise _UnsaidError
        return form(self, expr)

    def named(self, value: Any) -> str:
        """Return a name for a value."""
        name = f"n{len(self.names)}"
        self.names[name] = value
        return name

    def field(self, expr: Field) -> str:
        return self._part("v", expr.name, self.schema if expr.side == 0 else None)

    def whole(self, expr: Whole) -> str:
        return self._part("v", "value", self.schema if expr.side == 0 and self.schema.shape is Shape.SCALAR else None)

    def key(self, expr: Key) -> str:
        return self._part("k", "value", self.keys if self.keys is not None and self.keys.shape is Shape.SCALAR else None)

    def attribute(self, expr: Attribute) -> str:
        if not isinstance(expr.operand, Key):
            return f"{self.named(getattr)}({self.of(expr.operand)}, {expr.name!r})"
        return self._part("k", expr.name, self.keys if self.keys is not None and self.keys.shape is Shape.RECORD else None)

    def _part(self, of: str, name: str, schema: Schema | None) -> str:
        if schema is None or name not in schema.names:
            raise _UnsaidError
        return f"{of}[{schema.names.index(name)}]"

    def choose(self, expr: Choose) -> str:
        text = self.of(expr.otherwise)
        for condition, value in reversed(expr.branches):
            text = f"({self.of(value)} if {self.of(condition)} else {text})"
        return text

    def apply(self, expr: Expr) -> str:
        applied = application(expr)
        assert applied is not None
        word, parts = applied
        texts = list(map(self.of, parts))
        if isinstance(expr, Binary):
            return f"({texts[0]} {expr.op} {texts[1]})"
        return _SYMBOLS[word.name].format(*texts) if word.name in _SYMBOLS else f"{self.named(word.python)}({', '.join(texts)})"


_FORMS: Final[dict[type[Expr], Callable[[_Writing, Any], str]]] = {
    Field: _Writing.field,
    Whole: _Writing.whole,
    Key: _Writing.key,
    Constant: lambda writing, expr: writing.named(expr.value),
    Attribute: _Writing.attribute,
    Choose: _Writing.choose,
    **dict.fromkeys((Binary, Unary, Method, Function), _Writing.apply),
}
