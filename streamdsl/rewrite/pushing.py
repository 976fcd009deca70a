"""How a filter moves below an operator: condition by condition, past other filters, and only where no error is caused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias

from streamdsl.expr.nodes import Expr
from streamdsl.plan.node import Node, Select, Where
from streamdsl.rewrite.conditions import cannot_fail, conjunction, conjuncts, forgiving, is_forgiving
from streamdsl.rewrite.rule import Setting

Meets: TypeAlias = Literal["the same rows", "more rows", "keys"]
"""What a condition is evaluated on below: the rows that it is evaluated on above, more, or what is computed there anyway."""


class Below(NamedTuple):
    """The conditions for the inputs of an operator, by position, that together are one on its output.

    With `forgives` a condition that can fail on rows which it does not meet above stays there, and a forgiving one goes below.
    """

    conditions: Mapping[int, Expr]
    meets: Meets
    forgives: bool = False


Way: TypeAlias = Callable[[Node, Expr, Setting], Below | None]
"""Given an operator and a condition on its output, the conditions on its inputs; None where the filter stays."""


class _Moved(NamedTuple):
    """A plan with a filter below its operator, and whether nothing of the filter is left to do above."""

    node: Node
    is_done: bool


def pushed(node: Node, setting: Setting, way: Way) -> Node | None:
    """Return a plan in which one condition of a filter has moved below an operator, None if none may.

    >>> from streamdsl.expr.nodes import Binary, Constant, Field
    >>> from streamdsl.plan.node import Source, quantize
    >>> filtered = Where(quantize(Source("trips"), 5, 5), Binary(">", Field("fare"), Constant(7)))
    >>> pushed(filtered, Setting(), lambda node, condition, setting: Below({0: condition}, "the same rows")).name
    'Quantize'
    """
    if not isinstance(node, Where):
        return None
    conditions = conjuncts(node.predicate)
    for condition in conditions:
        moved = None if is_forgiving(condition) else _past_filters(node.input, condition, setting, way, is_first=True)
        if moved is not None:
            left = [other for other in conditions if not (moved.is_done and other is condition)]
            return replace(node, input=moved.node, predicate=conjunction(left)) if left else moved.node
    return None


def _past_filters(node: Node, condition: Expr, setting: Setting, way: Way, is_first: bool) -> _Moved | None:
    """Return a node's output filtered, the filter below the operator, if other filters alone are between."""
    if setting.is_shared(node):
        return None
    if isinstance(node, Where):
        found = _past_filters(node.input, condition, setting, way, is_first=False)
        return found and _Moved(replace(node, input=found.node), found.is_done)
    below = way(node, condition, setting)
    if below is None:
        return None
    meets: Meets = "more rows" if below.meets == "the same rows" and not is_first else below.meets
    return _placed(node, below._replace(meets=meets))


def _placed(node: Node, below: Below) -> _Moved | None:
    inputs, is_done = list(node.inputs), True
    for position, condition in below.conditions.items():
        if below.meets == "more rows" and not cannot_fail(condition):
            if not below.forgives:
                return None
            is_done, condition = False, forgiving(condition)
            if condition in _filters(inputs[position]):
                continue
        inputs[position] = Where(inputs[position], condition)
    is_new = any(new is not old for new, old in zip(inputs, node.inputs, strict=True))
    return _Moved(with_inputs(node, inputs), is_done) if is_new else None


def _filters(node: Node) -> list[Expr]:
    if isinstance(node, Where):
        return [*conjuncts(node.predicate), *_filters(node.input)]
    return _filters(node.input) if isinstance(node, Select) else []


def with_inputs(node: Node, inputs: Sequence[Node]) -> Node:
    """Return a node over other inputs, one for one.

    >>> from streamdsl.plan.node import Source, shift
    >>> with_inputs(shift(Source("trips"), 5), [Source("rides")]).inputs[0].source
    'rides'
    """
    rest = iter(inputs)
    return node.map_inputs(lambda _: next(rest))
