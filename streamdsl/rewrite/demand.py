"""Which fields of a node's rows its readers use, as far as that can be told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from streamdsl.expr.nodes import Expr, Field, Opaque, Whole
from streamdsl.plan.node import (
    AlterLifetime,
    AntiJoin,
    AsofJoin,
    Chop,
    ClipBy,
    ClipDuration,
    ClipInterval,
    Extend,
    Group,
    GroupApply,
    Join,
    Node,
    Quantize,
    Select,
    SelectMany,
    SemiJoin,
    Shift,
    ToEdges,
    ToPointsAtEnd,
    Union,
    Where,
    WindowAggregate,
    WindowApply,
)
from streamdsl.plan.properties import expressions
from streamdsl.rewrite.narrow_to_reads import Use, uses
from streamdsl.udm.builtin import Count

Fields: TypeAlias = frozenset[str] | None
"""Names of fields, None: the whole payload."""
NOTHING: Final[frozenset[str]] = frozenset()
PASSING: Final = (
    AlterLifetime,
    Chop,
    ClipDuration,
    ClipInterval,
    Extend,
    Quantize,
    Shift,
    ToEdges,
    ToPointsAtEnd,
    Union,
    Where,
)
"""Operators whose output has the payloads of their input, and which look at them with their expressions alone."""


def demands(plan: Node) -> dict[int, Fields]:
    """Return the fields that are used of each node's rows, by its `id()`; all of the output's are.

    >>> from streamdsl.expr.nodes import Binary, Constant
    >>> from streamdsl.plan.node import Source
    >>> trips = Source("trips")
    >>> short = Where(trips, Binary("<", Field("km"), Constant(5)))
    >>> sorted(demands(Select(short, Field("zone")))[id(trips)])
    ['km', 'zone']
    """
    found: dict[int, Fields] = {id(plan): None}
    _spread(plan, found, {})
    return found


def _spread(plan: Node, found: dict[int, Fields], groups: Mapping[int, Node]) -> None:
    """Add what each node of a plan, whose own demand is known, uses of those below it."""
    for node in reversed(list(plan.walk())):
        wanted = found[id(node)]
        if isinstance(node, Group) and node.level in groups:
            _add(found, groups[node.level], wanted)
        if isinstance(node, GroupApply):
            _add(found, node.input, _used([node.key]))
            _add(found, node.body, _used([node.projection]))
            _spread(node.body, found, {**groups, _level(node): node.input})
        else:
            for side, below in enumerate(node.inputs):
                _add(found, below, _of_input(node, side, wanted))


def _level(node: GroupApply) -> int:
    """Return the level of the groups of a group-apply: the deepest that its body reads outside of other bodies."""
    return max((below.level for below in node.body.walk() if isinstance(below, Group)), default=-1)


def _add(found: dict[int, Fields], node: Node, wanted: Fields) -> None:
    known = found.get(id(node), NOTHING)
    found[id(node)] = None if known is None or wanted is None else known | wanted


def _of_input(node: Node, side: int, wanted: Fields) -> Fields:
    """Return what a node uses of an input, given what is used of its output."""
    if isinstance(node, PASSING):
        return _together(wanted, _used(expressions(node)))
    if isinstance(node, (Select, SelectMany)):
        return _used(expressions(node))
    if isinstance(node, (AntiJoin, AsofJoin, ClipBy, Join, SemiJoin)):
        return _of_side(node, side, wanted)
    return _of_window(node) if isinstance(node, (WindowAggregate, WindowApply)) else None


def _of_side(node: AntiJoin | AsofJoin | ClipBy | Join | SemiJoin, side: int, wanted: Fields) -> Fields:
    matching = node.matching
    key = matching.right_key if side else matching.left_key
    parts = [_used([expr for expr in (key,) if expr is not None])]
    if matching.where is not None:
        parts.append(_used([matching.where], side))
    if isinstance(node, (AsofJoin, Join)):
        parts.append(None if node.projection is None else _used([node.projection], side))
    elif side == 0:
        parts.append(wanted)
    return _together(*parts)


def _of_window(node: WindowAggregate | WindowApply) -> Fields:
    """Return what modules are given: a payload as a whole, whose class they may expect, or fields; all where order matters."""
    if not node.takes_any_order:
        return None
    return _together(*(_together(_given(use), _used([] if use.where is None else [use.where])) for use in uses(node)))


def _given(use: Use) -> Fields:
    if use.argument is not None:
        return _used([use.argument])
    return NOTHING if isinstance(use.module, Count) else None


def _together(*parts: Fields) -> Fields:
    known = [part for part in parts if part is not None]
    return NOTHING.union(*known) if len(known) == len(parts) else None


def _used(exprs: Iterable[Expr], side: int = 0) -> Fields:
    """Return the fields of one side that expressions read."""
    parts = [part for expr in exprs for part in expr.walk()]
    if any(isinstance(part, Opaque) or (isinstance(part, Whole) and part.side == side) for part in parts):
        return None
    return frozenset(part.name for part in parts if isinstance(part, Field) and part.side == side)
