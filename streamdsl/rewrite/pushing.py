"""The mechanism of predicate pushdown: conjunct by conjunct, past other filters, and never so that a new error can occur."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias

from streamdsl.expr.nodes import Expr
from streamdsl.plan.node import Node, Select, Where
from streamdsl.rewrite.filter_conditions import cannot_fail, conjunction, conjuncts, is_true_on_error, true_on_error
from streamdsl.rewrite.rule import RuleContext

Meets: TypeAlias = Literal["the same rows", "more rows", "keys"]
"""The rows on which a moved condition is evaluated: the same as above, more of them, or just keys, which cannot fail."""


class Below(NamedTuple):
    """Conditions on an operator's inputs, by position, that are equivalent to a condition on its output.

    With `forgives` a condition that can fail on rows on which it is not evaluated above may still move: it also stays above, and
    below it keeps the rows on which it fails.
    """

    conditions: Mapping[int, Expr]
    meets: Meets
    forgives: bool = False


Way: TypeAlias = Callable[[Node, Expr, RuleContext], Below | None]
"""A rule's function from an operator and a condition on its output to conditions on its inputs; None if the filter stays."""


class _Moved(NamedTuple):
    """An operator with the filter below it, and whether the filter above it can be dropped."""

    node: Node
    is_done: bool


def pushed(node: Node, setting: RuleContext, way: Way) -> Node | None:
    """Return a filter with one of its conjuncts moved below the operator under it, None if none can move.

    >>> from streamdsl.expr.nodes import Binary, Constant, Field
    >>> from streamdsl.plan.node import Source, quantize
    >>> filtered = Where(quantize(Source("trips"), 5, 5), Binary(">", Field("fare"), Constant(7)))
    >>> pushed(filtered, RuleContext(), lambda node, condition, setting: Below({0: condition}, "the same rows")).name
    'Quantize'
    """
    if not isinstance(node, Where):
        return None
    conditions = conjuncts(node.predicate)
    for condition in conditions:
        moved = None if is_true_on_error(condition) else _past_filters(node.input, condition, setting, way, is_first=True)
        if moved is not None:
            left = [other for other in conditions if not (moved.is_done and other is condition)]
            return replace(node, input=moved.node, predicate=conjunction(left)) if left else moved.node
    return None


def _past_filters(node: Node, condition: Expr, setting: RuleContext, way: Way, is_first: bool) -> _Moved | None:
    """Return a node with the condition moved below the first operator under it that is not a filter, None if it cannot move."""
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
            is_done, condition = False, true_on_error(condition)
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
    """Return a node with its inputs replaced, in order.

    >>> from streamdsl.plan.node import Source, shift
    >>> with_inputs(shift(Source("trips"), 5), [Source("rides")]).inputs[0].source
    'rides'
    """
    rest = iter(inputs)
    return node.map_inputs(lambda _: next(rest))
