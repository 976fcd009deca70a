"""Lowering of plans to Spark: one rule per operator. Nothing runs here; a node without a rule is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from streamdsl.expr.schema import Shape
from streamdsl.plan.labels import by_name
from streamdsl.plan.node import Node, Source, Windowed
from streamdsl.spark import grouping, joins, nearest_rows, span, stages, windowed
from streamdsl.spark.column_types import PickledType
from streamdsl.spark.flow import Flow, GroupScope
from streamdsl.spark.lowering_context import LoweringContext, Rule
from streamdsl.temporal import INFINITY
from streamdsl.udm.bases import (
    UDA,
    UDO,
    IncrementalUDA,
    IncrementalUDO,
    TimeSensitiveIncrementalUDA,
    TimeSensitiveIncrementalUDO,
    TimeSensitiveUDA,
    TimeSensitiveUDO,
)


def source(low: LoweringContext, node: Source, scope: GroupScope) -> Flow:
    """The rows of a source; where payloads are objects, Python constructs them from the columns."""
    flow = low.sources[node.source]
    if node.payload is None or node.payload.shape is not Shape.OBJECT or isinstance(flow.type, PickledType):
        low.note(node, "native")
        return flow
    low.note(node, "rows", "its payloads are objects of Python")
    return stages.construct_payloads(node, flow)


LOWERINGS: Final[Mapping[type[Node], Rule]] = {Source: source} | by_name(grouping, joins, nearest_rows, span, windowed)
"""How each node runs on Spark: the rule of its name. What has none is refused there."""

MODULES: Final = (
    UDA,
    TimeSensitiveUDA,
    UDO,
    TimeSensitiveUDO,
    IncrementalUDA,
    TimeSensitiveIncrementalUDA,
    IncrementalUDO,
    TimeSensitiveIncrementalUDO,
)
"""The kinds of modules that Spark's Python workers can run."""


def rule_of(low: LoweringContext, node: Node) -> Rule:
    """Return the rule of a node; raises `UnsupportedOnSpark` for an operator, windows or module that is not listed."""
    why = _why_unknown(node)
    if why is not None:
        raise low.unsupported(node, why, 'run it with engine="local"')
    return LOWERINGS[type(node)]


def _why_unknown(node: Node) -> str | None:
    if type(node) not in LOWERINGS:
        return "the operator has no lowering"
    if isinstance(node, Windowed) and type(node.windows) not in windowed.WINDOW_AGGREGATIONS:
        return f"{node.windows.describe()} windows have no lowering"
    unknown = next((module for module in node.modules if not isinstance(module, MODULES)), None)
    return None if unknown is None else f"{unknown.label} is of a kind of modules that has no lowering"


def lowering(plan: Node, sources: Mapping[str, Flow], until: int | None = None, exact: bool = True) -> LoweringContext:
    """Return the context that lowers a plan over these sources; window operators make only windows with RE <= `until`."""
    return LoweringContext(plan, sources, rule_of, INFINITY if until is None else until, exact)


def lower(low: LoweringContext) -> Flow:
    """Return the flow of the plan; raises `UnsupportedOnSpark` for a node without a lowering."""
    return low.lower(low.plan, GroupScope())
