"""Functions whose globals and closure variables are frozen, so that a later assignment to these does not change a query."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from functools import partial
from types import CellType, CodeType, FunctionType
from typing import Any

from streamdsl.errors import QueryError
from streamdsl.expr.bytecode import tree, writes_names
from streamdsl.expr.expression_functions import param


def freeze_variables(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a copy of a function with its globals and closure variables as they are now.

    For a partial, this applies to its function. A callable that is no plain function, or that assigns such variables itself, is
    returned as it is. Raises `QueryError` for a function that makes a parameter (`sd.functions.param`), which could not be bound.

    >>> limit = 5
    >>> f = freeze_variables(lambda x: x > limit)
    >>> limit = 50
    >>> f(10)
    True
    """
    if type(function) is partial:
        return partial(freeze_variables(function.func), *function.args, **function.keywords)
    if type(function) is FunctionType and any(_makes_parameter(code, function.__globals__) for code in tree(function.__code__)):
        raise QueryError(
            "a parameter is made outside of the lambda that reads it",
            hint='limit = sd.functions.param("limit", int), and then where(lambda e: e.fare > limit)',
        )
    if type(function) is not FunctionType or writes_names(function.__code__):
        return function
    cells = tuple(map(_copy_cell, function.__closure__ or ()))
    copy = with_environment(function, dict(function.__globals__), cells, function.__defaults__, function.__kwdefaults__)
    copy.__dict__.update(function.__dict__)
    return copy


def _makes_parameter(code: CodeType, names: Mapping[str, Any]) -> bool:
    if "param" not in code.co_names:
        return False
    return any(_has_parameters(names.get(name)) for name in code.co_names)


def _has_parameters(value: object) -> bool:
    """Say whether a value is `param`, or a module that has it; the package itself has it by an old name."""
    return value is param or value is sys.modules.get("streamdsl") or getattr(value, "param", None) is param


def with_environment(
    function: FunctionType,
    names: dict[str, Any],
    cells: tuple[CellType, ...],
    defaults: tuple[Any, ...] | None,
    by_name: Mapping[str, Any] | None,
) -> FunctionType:
    """Return a function with the same code, and other globals, closure variables and defaults."""
    copy = FunctionType(function.__code__, names, function.__name__, defaults, cells)
    copy.__kwdefaults__ = dict(by_name) if by_name else None
    with contextlib.suppress(NameError):  # a later Python evaluates them now, and they may name what is not there
        copy.__annotations__ = dict(function.__annotations__)
    copy.__qualname__, copy.__module__, copy.__doc__ = function.__qualname__, function.__module__, function.__doc__
    return copy


def _copy_cell(cell: CellType) -> CellType:
    try:
        return CellType(cell.cell_contents)
    except ValueError:  # an outer variable that has no value yet
        return CellType()
