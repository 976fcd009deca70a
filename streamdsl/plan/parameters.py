"""Binding: constants in the place of a plan's parameters, and plans in the place of its sources."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from streamdsl.errors import QueryError
from streamdsl.expr.nodes import Constant, Expr, Parameter
from streamdsl.expr.parameters import function_with_values, parameters_of, parameters_of_function, with_values
from streamdsl.plan.node import AlterLifetime, Node, Source
from streamdsl.plan.properties import expressions, with_parts
from streamdsl.udm.window_lambda import OpaqueWindow


def parameters(plan: Node) -> dict[str, Parameter]:
    """Return the parameters of a plan by name; raises `QueryError` if two different ones have the same name.

    >>> from streamdsl.plan.node import Source, Where
    >>> list(parameters(Where(Source("trips"), Parameter("busy", bool))))
    ['busy']
    """
    found: dict[str, Parameter] = {}
    for node in plan.walk_all():
        for parameter in _of(node):
            if found.setdefault(parameter.name, parameter) != parameter:
                raise QueryError(
                    f"two different parameters of this query are called {parameter.name!r}",
                    hint="give them different names, or use one sd.functions.param(...) object for both",
                )
    return found


def _of(node: Node) -> Iterator[Parameter]:
    for expr in expressions(node):
        yield from parameters_of(expr)
    for module in node.modules:
        if isinstance(module, OpaqueWindow):
            yield from parameters_of_function(module.function)


def with_defaults(plan: Node) -> Node:
    """Return a plan in which parameters with a default are replaced by it."""
    found = parameters(plan)
    return bound_to(plan, {name: each.default for name, each in found.items() if each.default is not None})


def settled(plan: Node) -> Node:
    """Return a plan in which defaults replace all parameters; raises `QueryError` that lists parameters without a value.

    >>> from streamdsl.plan.node import Where
    >>> settled(Where(Source("trips"), Parameter("busy", bool)))
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: the query has parameters without a value: busy (bool)
    Hint: query.bind(busy=...)
    """
    plan = with_defaults(plan)
    left = parameters(plan)
    if left:
        listed = ", ".join(f"{name} ({getattr(each.accepts, '__name__', each.accepts)})" for name, each in left.items())
        raise QueryError(
            f"the query has parameters without a value: {listed}",
            hint=f"query.bind({', '.join(f'{name}=...' for name in left)})",
        )
    return plan


def bound_to(plan: Node, values: Mapping[str, Constant]) -> Node:
    """Return a plan in which constants replace the parameters with these names; unchanged parts are shared.

    >>> from streamdsl.plan.node import Where
    >>> bound_to(Where(Source("trips"), Parameter("busy", bool)), {"busy": Constant(True)}).predicate
    Constant(value=True)
    """

    def change(node: Node) -> Node:
        return _with_values(node, values) if any(found.name in values for found in _of(node)) else node

    return plan.mapped(change) if values else plan


def _with_values(node: Node, values: Mapping[str, Constant]) -> Node:
    new = with_parts(node, lambda part: _valued(part, values))
    return new.with_constants_read() if isinstance(new, AlterLifetime) else new


def _valued(part: Any, values: Mapping[str, Constant]) -> Any:
    """Return what a node holds with values in the place of parameters."""
    if isinstance(part, Expr):
        return with_values(part, values)
    if isinstance(part, OpaqueWindow):
        part = copy.copy(part)
        part.function = function_with_values(part.function, values)
    return part


def with_sources(plan: Node, inputs: Mapping[str, Node]) -> Node:
    """Return a plan in which other plans replace the sources with these names.

    >>> from streamdsl.plan.node import shift
    >>> with_sources(shift(Source("trips"), 5), {"trips": shift(Source("rides"), 1)}).input.input.source
    'rides'
    """
    return plan.mapped(lambda node: inputs.get(node.source, node) if isinstance(node, Source) else node)
