"""What `count` counts: values. A predicate in their place is refused, as each of its truths is a value, also False."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from streamdsl.errors import QueryError, place_of
from streamdsl.expr.annotations import is_always
from streamdsl.expr.describe import describe
from streamdsl.expr.facade import E, node_of
from streamdsl.expr.nodes import LOGICAL, Binary, Expr, Field, Opaque, is_boolean
from streamdsl.expr.schema import Schema
from streamdsl.udm.bases import AnyUDA
from streamdsl.udm.builtin import Count

HINT: Final = (
    "count(where=lambda e: ...) counts the rows for which it is true; count() counts all rows, count(lambda e: e.fare) those "
    "whose fare is not None"
)


def counted(function: AnyUDA[Any, Any], argument: Expr | None, schema: Schema | None = None) -> Expr | None:
    """Return the argument of an aggregate; raises `QueryError` for a count of what is certain to give True or False.

    A function that could not be traced is asked when it is called: it then raises the same error for a truth.

    >>> from streamdsl.expr.nodes import Binary, Constant
    >>> counted(Count(), Binary(">", Field("fare"), Constant(5)))
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: count of the predicate e.fare > 5 would count every row, as False is a value too
    Hint: count(where=lambda e: ...) counts the rows for which it is true; count() counts all rows, count(lambda e: e.fare) \
those whose fare is not None
    """
    if argument is None or type(function) is not Count:
        return argument
    known = argument.recorded if isinstance(argument, Opaque) and argument.recorded is not None else argument
    if _is_truth(known, schema):
        raise _refusal(describe(known), argument)
    if isinstance(argument, Opaque):
        return replace(argument, function=_Value(argument.function, argument.name), written=argument.written)
    return argument


def check_values(f: object) -> None:
    """Raise `QueryError` for an expression that is a predicate; of lambdas `counted` knows when they are traced."""
    if isinstance(f, E):
        counted(Count(), node_of(f))


def _is_truth(expr: Expr, schema: Schema | None) -> bool:
    """Say whether an expression is certain to give True or False: also a field that the payload's class declares to."""
    if isinstance(expr, Field):
        return schema is not None and is_always(schema.cls, expr.name, bool)
    if isinstance(expr, Binary) and expr.op in LOGICAL:
        return _is_truth(expr.left, schema) and _is_truth(expr.right, schema)
    return is_boolean(expr)


def _refusal(predicate: str, argument: Expr | None = None) -> QueryError:
    written = None if argument is None else argument.written
    where = "" if written is None else f"\n  at {place_of(written.file, written.line)}"
    return QueryError(f"count of the predicate {predicate} would count every row, as False is a value too{where}", hint=HINT)


@dataclass(frozen=True, slots=True)
class _Value:
    """A function of which values are counted: it must not turn out to be a predicate."""

    function: Callable[..., Any]
    name: str

    def __call__(self, *rows: Any) -> Any:
        value = self.function(*rows)
        if isinstance(value, (bool, np.bool_)):
            raise _refusal(self.name)
        return value
