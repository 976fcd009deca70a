"""From a plan to Spark: one rule per operator. Nothing runs here; what has no lowering is refused here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from streamdsl.plan import node as plan_nodes
from streamdsl.plan.node import Node, Source
from streamdsl.spark import grouping, joins, span, stages, windows
from streamdsl.spark.flow import Flow, Scope
from streamdsl.spark.lowering import Lowering, Rule
from streamdsl.spark.types import Pickled
from streamdsl.temporal import INFINITY


def source(low: Lowering, node: Source, scope: Scope) -> Flow:
    """The rows of the source with this name."""
    low.note(node, "native")
    return low.sources[node.source]


def in_python(low: Lowering, node: Node, scope: Scope) -> Flow:
    """Any other operator: run by its definition in Python, one call per group around."""
    flows = {f"in{i}": low.lower(below, scope) for i, below in enumerate(node.inputs)}
    if not flows:
        raise low.unsupported(node, "it has no lowering and no input")
    names = iter(flows)
    fragment = node.map_inputs(lambda below: Source(next(names), None, below.unit))
    return stages.groups(low, node, fragment, flows, scope, "it has no native form", Pickled())


LOWERINGS: Final[Mapping[type[Node], Rule]] = {
    plan_nodes.Source: source,
    plan_nodes.Group: grouping.group,
    plan_nodes.GroupApply: grouping.group_apply,
    plan_nodes.Where: span.where,
    plan_nodes.Select: span.select,
    plan_nodes.SelectMany: span.select_many,
    plan_nodes.AlterLifetime: span.alter_lifetime,
    plan_nodes.Shift: span.shift,
    plan_nodes.ClipInterval: span.clip_interval,
    plan_nodes.ToEdges: span.to_edges,
    plan_nodes.Union: span.union,
    plan_nodes.Join: joins.join,
    plan_nodes.AntiJoin: joins.anti_join,
    plan_nodes.ClipBy: joins.clip_by,
    plan_nodes.WindowAggregate: windows.window_aggregate,
    plan_nodes.WindowApply: windows.window_apply,
}
"""How each node runs on Spark; a node that is not here runs in Python, by its definition."""


def lowering(plan: Node, sources: Mapping[str, Flow], until: int | None = None) -> Lowering:
    """Return what lowers a plan over these sources; window operators make only windows with RE <= `until`."""
    return Lowering(plan, sources, lambda node: LOWERINGS.get(type(node), in_python), INFINITY if until is None else until)


def lower(low: Lowering) -> Flow:
    """Return the flow of the plan; raises `UnsupportedOnSpark` for a node without a lowering."""
    return low.lower(low.plan, Scope())
