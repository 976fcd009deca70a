"""What fails a task in a lambda, said as the local engine says it: what, in which operator, at which line, of what payload.

While a lambda is translated a fault is a mark, which says what happens. `placed` adds the expression in which it happens, and
`told` writes the SQL that raises it. Marks are short, so a place does not count in the length of an expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from streamdsl.errors import StreamDslError, UserCodeError
from streamdsl.expr.nodes import Expr, Location
from streamdsl.expr.scalar_functions import SCALAR_FUNCTIONS
from streamdsl.spark.sql import NotNative, Sql, quote
from streamdsl.spark.types import as_nullable

_MARK: Final = re.compile(r"\{(?:(?P<part>\d+)\|)?(?P<what>[^{}]*)\}")
_FEW: Final = 8
"""A fault that shows a payload is code in each place where it may occur, and Java compiles no method of more than 8000 bytes."""
_ERRORS: Final[dict[str, Exception]] = {}
"""What marks stand for: few, as each says what happens, and not where."""
_SAMPLES: Final[Mapping[str, Any]] = {"int": 1, "float": 1.0, "bool": True, "str": "a", "none": None}

Piece: TypeAlias = str | Sql
"""A part of a message: a text, or what Spark makes of a row."""


@dataclass(frozen=True, slots=True)
class At:
    """Where a fault is: the operator, the line of the lambda, and what is shown of the window and of the payload."""

    operator: str
    written: Location | None = None
    window: Sequence[Piece] = ()
    payload: Sequence[Piece] = ()


def fault(error: Exception) -> str:
    """Return the SQL that fails the task with what Python raises, at a place that is yet to be told.

    >>> fault(ZeroDivisionError("division by zero"))
    'raise_error({ZeroDivisionError: division by zero})'
    """
    what = f"{type(error).__name__}: {error}"
    _ERRORS.setdefault(what, error)
    return f"raise_error({{{what}}})"


def there(value: Sql, error: Exception) -> Sql:
    """Return a value that fails the task where it is None, as Python raises."""
    if value.kind == "none":
        raise NotNative("Python raises for None")
    if not value.type.nullable:
        return value
    return Sql(f"coalesce({value.text}, {fault(error)})", as_nullable(value.type, False), True)


def refused(name: str, kinds: Sequence[str], values: Mapping[int, Any]) -> Exception:
    """Return what Python raises for a word of arguments of these kinds, some of which have values that it refuses.

    >>> refused("+", ("int", "int"), {0: None}), refused("%", ("int", "int"), {1: 0})
    (TypeError("unsupported operand type(s) for +: 'NoneType' and 'int'"), ZeroDivisionError('integer modulo by zero'))
    """
    given = [values.get(i, _SAMPLES[kind]) for i, kind in enumerate(kinds)]
    try:
        SCALAR_FUNCTIONS[name].python(*given)
    except Exception as error:
        return error.with_traceback(None)
    raise AssertionError(f"{name} takes {given}")


def placed(text: str, expr: Expr) -> str:
    """Return the SQL of an expression with the faults that have no place yet placed in it."""
    return _MARK.sub(lambda mark: mark[0] if mark["part"] else f"{{{id(expr)}|{mark['what']}}}", text) if "{" in text else text


def told(text: str, expr: Expr, at: Callable[[Expr], At]) -> str:
    """Return the SQL of an expression in which each fault says what happens, and where; of what payload where they are few."""
    if "{" not in text:
        return text
    parts = {str(id(part)): part for part in expr.walk()}
    few = len(_MARK.findall(text)) <= _FEW

    def message(mark: re.Match[str]) -> str:
        place = at(parts[mark["part"]])
        return _message(_ERRORS[mark["what"]], place if few else replace(place, payload=()))

    return _MARK.sub(message, text)


class _Gap:
    """What stands in a message for what only a task knows."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"\0{self._name}\0"


def _message(error: Exception, at: At) -> str:
    """Return the SQL of a message, which is that of a `UserCodeError` of the local engine."""
    window, payloads = (_Gap("window") if at.window else None), ((_Gap("payload"),) if at.payload else ())
    text = str(UserCodeError(_written(error, at.written), operator=at.operator, window=window, payloads=payloads))
    name = type(error).__name__
    own = isinstance(error, (StreamDslError, OverflowError))
    head = name + text.removeprefix(f"{name} in user code") if own else f"{UserCodeError.__name__}: {text}"
    filled: list[Piece] = []
    for i, piece in enumerate(head.split("\0")):
        filled.extend([piece] if i % 2 == 0 else at.window if piece == "window" else at.payload)
    return _joined(filled)


def _written(error: Exception, written: Location | None) -> Exception:
    """Return the error as one that came up in the lambda of this line."""
    cls = type(error)
    made = cls.__new__(cls, *error.args)
    made.__dict__.update(error.__dict__, written=written)
    return made


def _joined(pieces: Sequence[Piece]) -> str:
    """Return the SQL of a text made of pieces, none of which is null: of all forms the one with the least generated code."""
    values = [piece.text for piece in pieces if isinstance(piece, Sql)]
    if not values:
        return quote("".join(map(str, pieces)))
    pattern = "".join("%s" if isinstance(piece, Sql) else piece.replace("%", "%%") for piece in pieces)
    return f"format_string({', '.join([quote(pattern), *values])})"
