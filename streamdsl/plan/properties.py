"""The expressions in a node's fields, and whether they read RE."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, Final

from streamdsl.expr.nodes import Expr
from streamdsl.expr.nodes import reads_re as expr_reads_re
from streamdsl.plan.node import Matching, Node
from streamdsl.plan.pattern_steps import PatternStep
from streamdsl.udm.bound_agg import BoundAgg

HOLDERS: Final = (Matching, BoundAgg, PatternStep)
"""The classes of node fields that hold expressions in their own fields."""


def expressions(node: Node) -> Iterator[Expr]:
    """Yield the expressions of a node, including those of its match condition and its aggregates, but not of its inputs.

    >>> from streamdsl.expr.nodes import Constant
    >>> from streamdsl.plan.node import Source, Where
    >>> list(expressions(Where(Source("trips"), Constant(True))))
    [Constant(value=True)]
    """
    for field in fields(node):
        yield from _inside(getattr(node, field.name))


def _inside(value: object) -> Iterator[Expr]:
    if isinstance(value, Expr):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _inside(item)
    elif isinstance(value, HOLDERS):
        for field in fields(value):
            yield from _inside(getattr(value, field.name))


def with_parts(node: Node, change: Callable[[Any], Any]) -> Node:
    """Return a node with `change` applied to all that its fields hold but nodes.

    >>> from streamdsl.expr.nodes import Constant
    >>> from streamdsl.plan.node import Source, Where
    >>> with_parts(Where(Source("trips"), Constant(True)), lambda part: Constant(False)).predicate
    Constant(value=False)
    """

    def over_fields(value: Any) -> Any:
        return replace(value, **{each.name: inside(getattr(value, each.name)) for each in fields(value) if each.compare})

    def inside(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(inside, value))
        return value if isinstance(value, Node) else over_fields(value) if isinstance(value, HOLDERS) else change(value)

    made: Node = over_fields(node)
    return made


def reads_re(node: Node) -> bool:
    """Say whether some expression of a node may read RE.

    >>> from streamdsl.expr.nodes import Life
    >>> from streamdsl.plan.node import Source, Where
    >>> reads_re(Where(Source("trips"), Life("re"))), reads_re(Where(Source("trips"), Life("le")))
    (True, False)
    """
    return any(map(expr_reads_re, expressions(node)))
