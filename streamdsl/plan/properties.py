"""Facts about a plan that engines, rules and `explain()` use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Final

from streamdsl.expr.nodes import Constant, Expr, Life, Opaque
from streamdsl.plan.node import (
    AlterLifetime,
    Calendar,
    Chop,
    ClipDuration,
    ClipInterval,
    Extend,
    GroupApply,
    Matching,
    Node,
    Quantize,
    Select,
    SelectMany,
    Shift,
    Source,
    ToPointsAtEnd,
    Union,
    Where,
    WindowAggregate,
    WindowApply,
    Windowed,
)
from streamdsl.plan.pattern import PatternStep
from streamdsl.udm.aggregates import BoundAgg
from streamdsl.windows import Hopping, Output, Session, Snapshot

ROW_BY_ROW: Final = (
    Source,
    Where,
    Select,
    SelectMany,
    AlterLifetime,
    Shift,
    ClipInterval,
    ClipDuration,
    Extend,
    ToPointsAtEnd,
    Quantize,
    Chop,
    Union,
)
"""Operators that a row passes alone, whatever the others are."""
HOLDERS: Final = (Matching, BoundAgg, PatternStep)
"""What in a node, besides itself, has expressions as its fields."""


def expressions(node: Node) -> Iterator[Expr]:
    """Yield the expressions of a node, those of its matching and its aggregates too; none of the nodes below it.

    >>> from streamdsl.plan.node import Source
    >>> list(expressions(AlterLifetime(Source("trips"), None, Constant(5))))
    [Constant(value=5)]
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

    >>> from streamdsl.plan.node import Source
    >>> reads_re(AlterLifetime(Source("trips"), None, Life("re"))), reads_re(Shift(Source("trips"), 5))
    (True, False)
    """
    parts = (part for expr in expressions(node) for part in expr.walk())
    return any(part == Life("re") or (isinstance(part, Opaque) and part.life) for part in parts)


def points_only(node: Node) -> bool:
    """Say whether every row is a point event."""
    if isinstance(node, AlterLifetime):
        return node.duration == Constant(1)
    if isinstance(node, (WindowAggregate, WindowApply)):
        return node.output is Output.POINT_AT_END
    if isinstance(node, (Where, Select, Shift)):
        return points_only(node.inputs[0])
    if isinstance(node, GroupApply):
        return points_only(node.body)
    return isinstance(node, ToPointsAtEnd) or (isinstance(node, Union) and all(map(points_only, node.parts)))


def one_at_a_time(node: Node) -> bool:
    """Say whether it is certain that no two rows live at the same time: results of windows that do not overlap, one for each.

    >>> import streamdsl as sd
    >>> counts = sd.source("trips").tumbling_window(10).aggregate(n=sd.count())
    >>> one_at_a_time(counts.where(lambda e: e.n > 3).plan()), one_at_a_time(counts.extend(5).plan())
    (True, False)
    """
    if isinstance(node, WindowAggregate):
        return isinstance(node.windows, (Snapshot, Session)) or (
            isinstance(node.windows, Hopping) and (node.windows.size <= node.windows.hop or node.output is Output.POINT_AT_END)
        )
    keeps = isinstance(node, (Where, Select, Shift, ClipInterval, ClipDuration, Chop))
    return isinstance(node, Calendar) or (keeps and one_at_a_time(node.inputs[0]))


def constant_duration(node: Node) -> int | None:
    """Return the one duration that all rows have, None if they may differ."""
    if isinstance(node, AlterLifetime):
        return node.duration.value if isinstance(node.duration, Constant) else None
    if isinstance(node, ToPointsAtEnd):
        return 1
    if isinstance(node, Windowed):
        if node.output is Output.POINT_AT_END:
            return 1
        return node.windows.size if isinstance(node.windows, Hopping) and node.output is Output.ALIGN else None
    if isinstance(node, (Where, Select, Shift)):
        return constant_duration(node.inputs[0])
    if isinstance(node, GroupApply):
        return constant_duration(node.body)
    if isinstance(node, Union):
        durations = {constant_duration(part) for part in node.parts}
        return durations.pop() if len(durations) == 1 else None
    return None
