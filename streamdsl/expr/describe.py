"""Expressions as people read them, for `explain()`."""

from __future__ import annotations

from keyword import iskeyword
from typing import Final

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
    Parameter,
    Unary,
    Whole,
    depth,
)
from streamdsl.expr.recursion import ensure_recursion_limit
from streamdsl.expr.scalar_functions import CASTS
from streamdsl.expr.schema import Shape
from streamdsl.temporal.payload import is_taken

_LONGEST: Final = 100
_DEEPEST: Final = 50
"""How long, and how deep, an expression in an error message is."""
_NO_BRACES: Final = str.maketrans("{}", "()")
"""In the messages that SQL makes braces stand for other things."""
_CALLS = {"abs": "abs", "not": "not_", "is_none": "is_none"}


def describe(expr: Expr, rows: tuple[str, ...] = ()) -> str:
    """Return an expression in a short form close to the lambda that it came from; `rows` are the names of its parameters.

    >>> describe(Binary("&", Binary(">", Field("price"), Constant(10)), Binary("==", Field("venue"), Constant("X"))))
    "(e.price > 10) & (e.venue == 'X')"
    """
    ensure_recursion_limit(depth(expr), "this expression")
    pair = any(isinstance(part, (Field, Whole, Life)) and part.side == 1 for part in expr.walk())
    return _text(expr, rows or (("l", "r") if pair else ("e",)))


def failed_part(expr: Expr) -> str:
    """Return an expression for an error message, cut if it is long; nothing for a function, which has a line of its own.

    >>> failed_part(Binary("/", Field("fare"), Field("km"))), failed_part(Opaque(len))
    ('e.fare / e.km', '')
    """
    if isinstance(expr, (Opaque, Constant)) or depth(expr) > _DEEPEST:
        return ""
    text = describe(expr).translate(_NO_BRACES)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _text(expr: Expr, rows: tuple[str, ...]) -> str:
    match expr:
        case Field(name, side, bare):
            return rows[side] if bare else f"{rows[side]}.{name}" if is_attribute(name) else f"{rows[side]}[{name!r}]"
        case Whole(side):
            return rows[side]
        case Life(end, side):
            return f"life.{end}" if len(rows) == 1 else f"{rows[side]}'s {end.upper()}"
        case Key():
            return "key"
        case Constant(value):
            return repr(value)
        case Parameter(name):
            return f"${name}"
        case Binary(op, left, right):
            return f"{_inner(left, rows)} {op} {_inner(right, rows)}"
        case Unary(op, operand):
            return f"{_CALLS[op]}({_text(operand, rows)})" if op in _CALLS else f"{op}{_inner(operand, rows)}"
        case Attribute(operand, name):
            return f"{_inner(operand, rows)}.{name}"
        case Method(operand, name, arguments):
            return f"{_inner(operand, rows)}.{name}({_list(arguments, rows)})"
        case Function("[]", (operand, index)):
            return f"{_inner(operand, rows)}[{_text(index, rows)}]"
        case Function("[:]", (operand, *bounds)):
            start, stop, step = ("" if bound == Constant(None) else _text(bound, rows) for bound in bounds)
            return f"{_inner(operand, rows)}[{start}:{stop}{':' + step if step else ''}]"
        case Function(name, (operand,)) if name in CASTS.values():
            return f"cast({_text(operand, rows)}, {name})"
        case Call(_, arguments, name) | Function(name, arguments):
            return f"{name}({_list(arguments, rows)})"
        case Choose(branches, otherwise):
            parts = [f"when({_text(c, rows)}).then({_text(value, rows)})" for c, value in branches]
            return f"{'.'.join(parts)}.otherwise({_text(otherwise, rows)})"
        case Make():
            return _made(expr, rows)
        case Opaque():
            return f"opaque {expr.name}"
    return repr(expr)


def is_attribute(name: str) -> bool:
    """Say whether `e.name` is the field of that name: not where Python, or a record, has something else by it.

    >>> is_attribute("fare"), is_attribute("class"), is_attribute("items"), is_attribute("a b")
    (True, False, False, False)
    """
    return name.isidentifier() and not iskeyword(name) and not is_taken(name)


def _inner(expr: Expr, rows: tuple[str, ...]) -> str:
    text = _text(expr, rows)
    compound = isinstance(expr, (Binary, Opaque)) or (isinstance(expr, Unary) and expr.op not in _CALLS)
    return f"({text})" if compound else text


def _list(exprs: tuple[Expr, ...], rows: tuple[str, ...]) -> str:
    return ", ".join(_text(expr, rows) for expr in exprs)


def _made(expr: Make, rows: tuple[str, ...]) -> str:
    values = [_text(value, rows) for value in expr.values]
    if expr.schema.shape is Shape.TUPLE:
        return f"({', '.join(values)}{',' if len(values) == 1 else ''})"
    if expr.schema.cls is None:
        return f"{{{', '.join(f'{name}: {value}' for name, value in zip(expr.schema.names, values, strict=True))}}}"
    fields = ", ".join(f"{name}={value}" for name, value in zip(expr.schema.names, values, strict=True))
    return f"{expr.schema.cls.__name__}({fields})"
