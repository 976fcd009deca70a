"""What a session can show of rows that no longer reach an operator: it depends on its watermark."""

from __future__ import annotations

from typing import TypeAlias

from streamdsl.expr.nodes import Constant, Expr, Life, Opaque
from streamdsl.plan.node import AlterLifetime, Chop, Node, Select, Shift, Source, Where, WindowAggregate, WindowApply
from streamdsl.plan.properties import points_only
from streamdsl.rewrite.rule import Mode
from streamdsl.windows import Sequenced

Watching: TypeAlias = WindowAggregate | WindowApply | Chop
"""The operators with a watermark, which opens their windows or cells."""


def shows_the_same(node: Watching, mode: Mode) -> bool:
    """Say whether a session cannot show that some rows no longer reach a window operator.

    They raise its watermark, the largest LE or CTI received, which opens windows. Final results do not depend on it. Nor do point
    events: each opens its windows itself. Nor does an ordered input: its CTI is the largest LE. And rows that may still change
    hold back the CTI of a module that sees ends beyond its window. The windows of a sequence come after their rows, which so open
    none, and until they have ended their results hold back the CTI.
    """
    if mode == "run":
        return True
    if not isinstance(node, Chop) and node.sees_ends:
        return False
    if not isinstance(node, Chop) and isinstance(node.windows, Sequenced):
        return mode == "final" or (mode == "speculative" and cti_is_largest_start(node.input))
    return mode == "final" or cti_is_largest_start(node.input) or (mode == "speculative" and points_only(node.input))


def cti_is_largest_start(node: Node) -> bool:
    """Say whether the CTI is never behind a row's LE: the source is ordered, and what follows treats both alike."""
    if isinstance(node, Source):
        return node.progress is not None and node.progress.kind == "slack" and node.progress.delay == 0
    if isinstance(node, (Where, Select)):
        keeps = not reads_lifetime(node.predicate if isinstance(node, Where) else node.projection)
    else:
        keeps = isinstance(node, Shift) or (
            isinstance(node, AlterLifetime) and node.start is None and isinstance(node.duration, Constant)
        )
    return keeps and cti_is_largest_start(node.inputs[0])


def reads_lifetime(expr: Expr) -> bool:
    """Say whether an expression may read an end of the lifetime.

    >>> reads_lifetime(Life("le")), reads_lifetime(Constant(5))
    (True, False)
    """
    return any(isinstance(part, Life) or (isinstance(part, Opaque) and part.life) for part in expr.walk())
