"""Lambdas into expressions: LINQ's expression trees, by calling a lambda once on a row that records what is done to it.

A trace never means something else than the lambda called on a row. So a lambda is traced only if its bytecode holds nothing that
could hide from the row (`bytecode.py`), it is called with stand-ins for all its free names (`standins.py`), no row or expression
in it was asked what only a value can answer (`tracing.py`), and every node that was built is part of the result. Otherwise it is
opaque: a Python function called row by row, with its free names read now (`snapshot.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from streamdsl.errors import FieldNotFound, QueryError
from streamdsl.expr.bytecode import formats, has_remainder, is_traceable
from streamdsl.expr.facade import E, InvertError
from streamdsl.expr.functions import Udf
from streamdsl.expr.nodes import Expr, Field, Opaque, Whole
from streamdsl.expr.proxies import AttributeRow, LifeProxy, RowProxy, argument, result
from streamdsl.expr.schema import Schema, Shape
from streamdsl.expr.snapshot import snapshot
from streamdsl.expr.standins import with_stand_ins
from streamdsl.expr.tracing import tracing

Schemas = tuple[Schema | None, ...]


def trace(function: Any, schemas: Schemas, *, life: bool = False) -> Expr:
    """Return the expression that a lambda over rows of these schemas stands for; also of an `E`, or a constant.

    With `life`, a lambda with one parameter more gets the row's lifetime. Raises `FieldNotFound` for a field that a row of a
    known schema does not have, and `QueryError` for `~` on a boolean or a wrong number of parameters.

    >>> trace(lambda e: e.price * 2, (None,))
    Binary(op='*', left=Field(name='price', side=0), right=Constant(value=2))
    >>> trace(lambda e: e.price > 2 or e.free, (None,)).name
    '<lambda>'
    """
    if isinstance(function, E):
        return _checked(function.node, schemas)
    if isinstance(function, Udf):
        return function.node(tuple(map(Whole, range(len(schemas)))))
    if not callable(function):
        return argument(function)
    takes_life = check_parameters(function, len(schemas), life)
    traced = _attempt(function, schemas, takes_life) if type(function) is FunctionType else None
    if traced is not None:
        return _checked(traced, schemas)
    return Opaque(snapshot(function), len(schemas), takes_life, name_of(function))


def name_of(function: Callable[..., Any]) -> str:
    """Return what a function is called in `explain()` and in errors."""
    return str(getattr(function, "__name__", type(function).__name__))


def _attempt(function: FunctionType, schemas: Schemas, takes_life: bool) -> Expr | None:
    if not is_traceable(function.__code__):
        return None
    with tracing() as attempt:
        try:
            copy, names = with_stand_ins(function)
            rows = [_row(function, names)(schema, side) for side, schema in enumerate(schemas)]
            expr = result(copy(*rows, LifeProxy()) if takes_life else copy(*rows))
        except (FieldNotFound, InvertError):
            raise
        except Exception:
            return None
    return expr if attempt.covers(expr) else None


def _row(function: FunctionType, names: list[Any]) -> type[AttributeRow]:
    """`"text" % row` succeeds unseen where a row has items, so there it gets none."""
    text = any(isinstance(value, (str, bytes, tuple)) for value in names)
    risky = formats(function.__code__) or (text and has_remainder(function.__code__))
    return AttributeRow if risky else RowProxy


def check_parameters(function: Callable[..., Any], rows: int, life: bool = False, wanted: str = "") -> bool:
    """Say whether a function takes the lifetime besides the rows; raises `QueryError` where it cannot be called with them."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin that does not say
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [p for p in signature.parameters.values() if p.kind in positional and p.default is p.empty]
    takes_life = life and len(required) == rows + 1
    try:
        signature.bind(*[None] * (rows + takes_life))
    except TypeError:
        wanted = wanted or f"{rows} row{'s' if rows > 1 else ''}{', or with the row and its lifetime' if life else ''}"
        hint = "write lambda w: ..." if "window" in wanted else "write lambda l, r: ..." if rows == 2 else "write lambda e: ..."
        raise QueryError(f"{name_of(function)}{signature} cannot be called with {wanted}", hint=hint) from None
    return takes_life


def _checked(expr: Expr, schemas: Schemas) -> Expr:
    for part in expr.walk():
        if isinstance(part, (Field, Whole)) and part.side >= len(schemas):
            raise QueryError(f"the expression reads row {part.side + 1} of {len(schemas)}")
        schema = schemas[part.side] if isinstance(part, Field) else None
        if isinstance(part, Field) and schema is not None and schema.shape is not Shape.OBJECT and part.name not in schema.names:
            raise FieldNotFound(part.name, schema.names)
    return expr


__all__ = ["Schemas", "check_parameters", "name_of", "trace"]
