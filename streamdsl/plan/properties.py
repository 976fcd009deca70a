"""The expressions in a node's fields, and whether they read RE."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Final

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


def reads_re(node: Node) -> bool:
    """Say whether some expression of a node may read RE.

    >>> from streamdsl.expr.nodes import Life
    >>> from streamdsl.plan.node import Source, Where
    >>> reads_re(Where(Source("trips"), Life("re"))), reads_re(Where(Source("trips"), Life("le")))
    (True, False)
    """
    return any(map(expr_reads_re, expressions(node)))
