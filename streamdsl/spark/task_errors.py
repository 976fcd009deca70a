"""Errors that SQL raises for user code, with the local engine's message: error, operator, line and payload.

While an expression is translated, an error is a marker that names the error alone. `mark_expression` adds the expression that
raises it, and `resolve_markers` replaces markers by the SQL of the messages. Markers are short, so that messages do not count
towards the maximal length of an expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from streamdsl.errors import StreamDslError, UserCodeError
from streamdsl.expr.nodes import Expr, Location
from streamdsl.expr.scalar_functions import SCALAR_FUNCTIONS
from streamdsl.spark.column_types import as_nullable
from streamdsl.spark.sql_text import NotNative, Sql, quote

_MARKER: Final = re.compile(r"\{(?:(?P<part>\d+)\|)?(?P<what>[^{}]*)\}")
_MAX_WITH_PAYLOAD: Final = 8
"""The most errors of an expression that show payloads: each adds code, and the JIT compiles no method over 8000 bytes."""
_ERRORS: Final[dict[str, Exception]] = {}
"""The errors that markers stand for. They are few, as a marker does not say where the error occurs."""
_SAMPLES: Final[Mapping[str, Any]] = {"int": 1, "float": 1.0, "bool": True, "str": "a", "none": None}

MessagePart: TypeAlias = str | Sql
"""A part of an error message: a text, or the SQL of a text that is computed from the row."""


@dataclass(frozen=True, slots=True)
class ErrorSite:
    """What a message says of the place of an error: the operator, the lambda's line, what failed in it, window and payload."""

    operator: str
    written: Location | None = None
    expression: str = ""
    window: Sequence[MessagePart] = ()
    payload: Sequence[MessagePart] = ()


def error_marker(error: Exception) -> str:
    """Return the marker of SQL that fails the task with an error of Python.

    >>> error_marker(ZeroDivisionError("division by zero"))
    'raise_error({ZeroDivisionError: division by zero})'
    """
    what = f"{type(error).__name__}: {error}"
    _ERRORS.setdefault(what, error)
    return f"raise_error({{{what}}})"


def not_none(value: Sql, error: Exception) -> Sql:
    """Return the SQL of a value that fails the task where the value is None, as Python raises there."""
    if value.kind == "none":
        raise NotNative("Python raises for None")
    if not value.type.nullable:
        return value
    return Sql(f"coalesce({value.text}, {error_marker(error)})", as_nullable(value.type, False), True)


def python_error(name: str, kinds: Sequence[str], values: Mapping[int, Any]) -> Exception:
    """Return the error that Python raises for a function of arguments of these kinds; `values` holds those that it refuses.

    >>> python_error("+", ("int", "int"), {0: None}), python_error("%", ("int", "int"), {1: 0})
    (TypeError("unsupported operand type(s) for +: 'NoneType' and 'int'"), ZeroDivisionError('integer modulo by zero'))
    """
    given = [values.get(i, _SAMPLES[kind]) for i, kind in enumerate(kinds)]
    try:
        SCALAR_FUNCTIONS[name].python(*given)
    except Exception as error:
        return error.with_traceback(None)
    raise AssertionError(f"{name} takes {given}")


def mark_expression(text: str, expr: Expr) -> str:
    """Return SQL whose markers without an expression get this one."""
    return _MARKER.sub(lambda mark: mark[0] if mark["part"] else f"{{{id(expr)}|{mark['what']}}}", text) if "{" in text else text


def resolve_markers(text: str, expr: Expr, at: Callable[[Expr], ErrorSite]) -> str:
    """Return SQL whose markers are replaced by messages; these show the payload only where there are few."""
    if "{" not in text:
        return text
    parts = {str(id(part)): part for part in expr.walk()}
    few = len(_MARKER.findall(text)) <= _MAX_WITH_PAYLOAD

    def message(mark: re.Match[str]) -> str:
        place = at(parts[mark["part"]])
        return _message(_ERRORS[mark["what"]], place if few else replace(place, payload=()))

    return _MARKER.sub(message, text)


class _Placeholder:
    """A placeholder in a message for a value that only the task knows."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"\0{self._name}\0"


def _message(error: Exception, at: ErrorSite) -> str:
    """Return the SQL of the message that a `UserCodeError` of the local engine has."""
    window, payloads = (_Placeholder("window") if at.window else None), ((_Placeholder("payload"),) if at.payload else ())
    text = str(UserCodeError(_at_line(error, at), operator=at.operator, window=window, payloads=payloads))
    name = type(error).__name__
    own = isinstance(error, (StreamDslError, OverflowError))
    head = name + text.removeprefix(f"{name} in user code") if own else f"{UserCodeError.__name__}: {text}"
    filled: list[MessagePart] = []
    for i, piece in enumerate(head.split("\0")):
        filled.extend([piece] if i % 2 == 0 else at.window if piece == "window" else at.payload)
    return _concatenated(filled)


def _at_line(error: Exception, at: ErrorSite) -> Exception:
    """Return a copy of the error that names the line of the lambda, and what failed in it."""
    cls = type(error)
    made = cls.__new__(cls, *error.args)
    made.__dict__.update(error.__dict__, written=at.written, expression=at.expression)
    return made


def _concatenated(pieces: Sequence[MessagePart]) -> str:
    """Return the SQL of the concatenated parts, none of which is null; `format_string` generates the least code."""
    values = [piece.text for piece in pieces if isinstance(piece, Sql)]
    if not values:
        return quote("".join(map(str, pieces)))
    pattern = "".join("%s" if isinstance(piece, Sql) else piece.replace("%", "%%") for piece in pieces)
    return f"format_string({', '.join([quote(pattern), *values])})"
