"""From a plan to Spark: one rule per operator. Nothing runs here; what has no lowering is refused here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamdsl.expr.schema import Shape
from streamdsl.plan.labels import by_name
from streamdsl.plan.node import Node, Source, WindowAggregate, WindowApply, Windowed
from streamdsl.spark import grouping, joins, span, stages, windows
from streamdsl.spark.flow import Flow, Scope
from streamdsl.spark.lowering import Lowering, Rule
from streamdsl.spark.types import Pickled
from streamdsl.temporal import INFINITY
from streamdsl.udm.bases import (
    UDA,
    UDO,
    AnyUDA,
    AnyUDO,
    IncrementalUDA,
    IncrementalUDO,
    TimeSensitiveIncrementalUDA,
    TimeSensitiveIncrementalUDO,
    TimeSensitiveUDA,
    TimeSensitiveUDO,
)


def source(low: Lowering, node: Source, scope: Scope) -> Flow:
    """The rows of the source with this name; Python makes payloads that are objects of a frame's columns."""
    flow = low.sources[node.source]
    if node.payload is None or node.payload.shape is not Shape.OBJECT or isinstance(flow.type, Pickled):
        low.note(node, "native")
        return flow
    low.note(node, "rows", "its payloads are objects of Python")
    return stages.constructed(node, flow)


LOWERINGS: Final[Mapping[type[Node], Rule]] = {Source: source} | by_name(grouping, joins, span, windows)
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
"""The kinds of modules that run on Spark, in Python."""


def rule_of(low: Lowering, node: Node) -> Rule:
    """Return how a node is lowered; raises `UnsupportedOnSpark` for what is not listed: nothing has shown what it gives here."""
    why = _why_unknown(node)
    if why is not None:
        raise low.unsupported(node, why, 'run it with engine="local"')
    return LOWERINGS[type(node)]


def _why_unknown(node: Node) -> str | None:
    if type(node) not in LOWERINGS:
        return "the operator has no lowering"
    if isinstance(node, Windowed) and type(node.windows) not in windows.FRAMES:
        return f"{node.windows.describe()} windows have no lowering"
    modules: list[AnyUDA[Any, Any] | AnyUDO[Any, Any]] = (
        [agg.function for agg in node.aggregates] if isinstance(node, WindowAggregate) else []
    )
    modules += [node.module] if isinstance(node, WindowApply) else []
    unknown = next((module for module in modules if not isinstance(module, MODULES)), None)
    return None if unknown is None else f"{unknown.label} is of a kind of modules that has no lowering"


def lowering(plan: Node, sources: Mapping[str, Flow], until: int | None = None) -> Lowering:
    """Return what lowers a plan over these sources; window operators make only windows with RE <= `until`."""
    return Lowering(plan, sources, rule_of, INFINITY if until is None else until)


def lower(low: Lowering) -> Flow:
    """Return the flow of the plan; raises `UnsupportedOnSpark` for a node without a lowering."""
    return low.lower(low.plan, Scope())
