"""Lambdas into expressions: LINQ's expression trees, by calling a lambda once on a row that records what is done to it.

A trace never means something else than the lambda called on a row. So a lambda is traced only if its bytecode holds nothing that
could hide from the row (`bytecode.py`), it is called with stand-ins for all its free names (`stand_ins.py`), no row or expression
in it was asked what only a value can answer (`recording.py`), every node that was built is part of the result, in its order, and
the rows are nothing but their fields. Otherwise it is opaque: a Python function called row by row, with its free names read now
(`closures.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any, Final

from streamdsl.errors import FieldNotFound, QueryError
from streamdsl.expr.bytecode import attribute_names, is_traceable, remainders
from streamdsl.expr.closures import freeze_variables
from streamdsl.expr.expression_functions import Udf, call
from streamdsl.expr.facade import E
from streamdsl.expr.nodes import Expr, Field, Location, Opaque, Whole, depth
from streamdsl.expr.predicates import check_function
from streamdsl.expr.proxies import LifeProxy, argument_node, result_node, row_proxy
from streamdsl.expr.recording import TraceRecorder, WriterError, recording
from streamdsl.expr.recursion import ensure_recursion_limit
from streamdsl.expr.schema import Schema, Shape
from streamdsl.expr.stand_ins import with_stand_ins

Schemas = tuple[Schema | None, ...]
_MAX_DEPTH: Final = 100
"""The deepest trace: evaluating a tree recurses, while Python evaluates a lambda of a thousand terms without recursion."""


def trace(function: Any, schemas: Schemas, *, life: bool = False, yields: bool = False) -> Expr:
    """Return the expression that a lambda over rows of these schemas stands for; also of an `E`, or a constant.

    With `life`, a lambda with one parameter more gets the row's lifetime; with `yields`, it may be a generator function. What
    cannot be traced is an `Opaque`, and so is a lambda over rows of a class that runs code of its own when they are made.
    Raises `FieldNotFound` for a field that a row of a known schema does not have, and `QueryError` for `~` on a boolean, a wrong
    number of parameters, an async function, and a name taken for a field by which rows have something else.

    >>> trace(lambda e: e.price * 2, (None,))
    Binary(op='*', left=Field(name='price', side=0), right=Constant(value=2))
    >>> trace(lambda e: e.price > 2 or e.free, (None,)).name
    '<lambda>'
    """
    if isinstance(function, E):
        return _check_fields(argument_node(function), schemas)
    if isinstance(function, Udf):
        return call(function, tuple(map(Whole, range(len(schemas)))))
    if not callable(function):
        return argument_node(function)
    check_function(function, "a row", yields)
    takes_life = check_parameters(function, len(schemas), life)
    if type(function) is FunctionType:
        _check_names(function, schemas)
    recorded = _recorded(function, schemas, takes_life) if type(function) is FunctionType else None
    if recorded is not None and not any(map(_runs_code, schemas)):
        return _check_fields(recorded, schemas)
    return Opaque(freeze_variables(function), len(schemas), takes_life, name_of(function), recorded, written=_location(function))


def name_of(function: Callable[..., Any]) -> str:
    """Return what a function is called in `explain()` and in errors."""
    return str(getattr(function, "__name__", type(function).__name__))


def _recorded(function: FunctionType, schemas: Schemas, takes_life: bool) -> Expr | None:
    """Return the expression that a lambda builds when it is called on rows that record; None if that is not all that it does."""
    if not is_traceable(function.__code__):
        return None
    with recording() as attempt:
        try:
            copy = with_stand_ins(function)
            rows = map(row_proxy, schemas, range(len(schemas)))
            expr = result_node(copy(*rows, LifeProxy()) if takes_life else copy(*rows))
        except (FieldNotFound, WriterError):
            raise
        except Exception:
            expr = None
    for _, mistake in attempt.mistakes.values():
        raise mistake
    if expr is None:
        return None
    set_location(attempt, function)
    if expr.written is None:  # it reads no row
        object.__setattr__(expr, "written", _location(function))
    return expr if _is_faithful(attempt, function, expr) else None


def _check_names(function: FunctionType, schemas: Schemas) -> None:
    """Raise an error where a field is read as an attribute that is Python's own: `e.__doc__` is no field of a record."""
    pythons = {name for schema in schemas if schema is not None for name in schema.names if name.startswith("__")}
    for name in sorted(pythons and pythons & attribute_names(function.__code__)):
        raise WriterError(f"{name} is an attribute that Python has for itself", hint=f"write e[{name!r}] for the field")


def set_location(attempt: TraceRecorder, function: Callable[..., Any]) -> None:
    """Write the line of a function into the expressions that a call of it has built."""
    place = _location(function)
    for node in attempt.nodes:
        object.__setattr__(node, "written", place)


def _location(function: Callable[..., Any]) -> Location | None:
    """Return where a function is written."""
    code = getattr(inspect.unwrap(function) if not isinstance(function, partial) else function.func, "__code__", None)
    return None if code is None else Location(code.co_filename, code.co_firstlineno)


def _is_faithful(attempt: TraceRecorder, function: FunctionType, expr: Expr) -> bool:
    """Say whether an expression is all that a function does. A `%` without a node has formatted a text, which no trace shows."""
    seen = attempt.covers(expr) and attempt.remainders() == remainders(function.__code__)
    return seen and attempt.is_in_order(expr) and depth(expr) <= _MAX_DEPTH


def _runs_code(schema: Schema | None) -> bool:
    """Say whether making a payload runs code of its class, which a trace cannot see, so that the lambda must be called."""
    return schema is not None and schema.shape is Shape.OBJECT


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


def _check_fields(expr: Expr, schemas: Schemas) -> Expr:
    ensure_recursion_limit(depth(expr), "this expression")
    for part in expr.walk():
        if isinstance(part, (Field, Whole)) and part.side >= len(schemas):
            raise QueryError(f"the expression reads row {part.side + 1} of {len(schemas)}")
        schema = schemas[part.side] if isinstance(part, Field) else None
        if isinstance(part, Field) and schema is not None and schema.shape is not Shape.OBJECT and part.name not in schema.names:
            raise FieldNotFound(part.name, schema.names)
    return expr
