"""The expressions of a node, and what they read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Final

from streamdsl.expr.nodes import Expr
from streamdsl.expr.nodes import reads_re as expr_reads_re
from streamdsl.plan.node import Matching, Node
from streamdsl.plan.pattern import PatternStep
from streamdsl.udm.aggregates import BoundAgg

HOLDERS: Final = (Matching, BoundAgg, PatternStep)
"""What in a node, besides itself, has expressions as its fields."""


def expressions(node: Node) -> Iterator[Expr]:
    """Yield the expressions of a node, those of its matching and its aggregates too; none of the nodes below it.

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
