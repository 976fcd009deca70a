"""The parameters of expressions, also those that a function called row by row reads as free names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import CellType, FunctionType
from typing import Any

from streamdsl.expr.bytecode import global_names, tree
from streamdsl.expr.closures import with_environment
from streamdsl.expr.facade import E, node_of
from streamdsl.expr.nodes import Constant, Expr, Opaque, Parameter, rebuilt
from streamdsl.expr.row_evaluator import evaluate_row


def parameters_of(expr: Expr) -> Iterator[Parameter]:
    """Yield the parameters of an expression.

    >>> from streamdsl.expr.expression_functions import col, param
    >>> [found.name for found in parameters_of(node_of(col("fare") > param("limit", int)))]
    ['limit']
    """
    for part in expr.walk():
        if isinstance(part, Parameter):
            yield part
        elif isinstance(part, Opaque):
            yield from parameters_of_function(part.function)


def parameters_of_function(function: Callable[..., Any]) -> Iterator[Parameter]:
    """Yield the parameters that a function reads as free names."""
    for value in _free_values(function):
        if isinstance(value, E):
            yield from (part for part in node_of(value).walk() if isinstance(part, Parameter))


def _free_values(function: Callable[..., Any]) -> Iterator[Any]:
    if isinstance(function, FunctionType):
        yield from (function.__globals__.get(name) for code in tree(function.__code__) for name in global_names(code))
        yield from (cell.cell_contents for cell in function.__closure__ or () if _has_value(cell))
        yield from (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())


def _has_value(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def with_values(expr: Expr, values: Mapping[str, Constant]) -> Expr:
    """Return an expression with constants for its parameters.

    >>> with_values(Parameter("limit"), {"limit": Constant(5)})
    Constant(value=5)
    """

    def change(part: Expr) -> Expr | None:
        if isinstance(part, Parameter):
            return values.get(part.name)
        return replace(part, function=function_with_values(part.function, values)) if isinstance(part, Opaque) else None

    return rebuilt(expr, change)


def function_with_values(function: Callable[..., Any], values: Mapping[str, Constant]) -> Callable[..., Any]:
    """Return a function whose free names have values instead of parameters."""
    if not isinstance(function, FunctionType) or not any(found.name in values for found in parameters_of_function(function)):
        return function

    def plain(value: Any) -> Any:
        if not isinstance(value, E) or not any(isinstance(part, Parameter) for part in node_of(value).walk()):
            return value
        bound = with_values(node_of(value), values)
        return E(bound) if any(isinstance(part, Parameter) for part in bound.walk()) else evaluate_row(bound, ())

    names = {name for code in tree(function.__code__) for name in global_names(code)}
    environment = {name: plain(value) if name in names else value for name, value in function.__globals__.items()}
    cells = tuple(CellType(plain(cell.cell_contents)) if _has_value(cell) else cell for cell in function.__closure__ or ())
    defaults = None if function.__defaults__ is None else tuple(map(plain, function.__defaults__))
    by_name = {name: plain(value) for name, value in (function.__kwdefaults__ or {}).items()}
    copy = with_environment(function, environment, cells, defaults, by_name)
    copy.__dict__.update(function.__dict__)
    return copy
