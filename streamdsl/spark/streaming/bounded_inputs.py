"""Bounded inputs of a streaming query: the parts of a plan that read only these are sources, whose rows are all there."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from streamdsl.plan.labels import labels
from streamdsl.plan.node import Node, Source
from streamdsl.spark.flow import Flow


def precompute_bounded(plan: Node, bounded: Collection[str], compute: Callable[[Node], Flow]) -> tuple[Node, dict[str, Flow]]:
    """Return a plan in which each maximal part over bounded sources is a source of its result, and the flows of these.

    `compute` returns the events of a part.
    """
    named, flows = labels(plan), dict[str, Flow]()
    done: dict[int, Node] = {}

    def visit(node: Node) -> Node:
        if id(node) not in done:
            done[id(node)] = made(node) if _is_bounded(node, bounded) else node.map_inputs(visit)
        return done[id(node)]

    def made(node: Node) -> Node:
        name = node.source if isinstance(node, Source) else f"the rows of {named[id(node)]}"
        flows[name] = compute(node)
        return replace(node, progress=None) if isinstance(node, Source) else Source(name, node.schema, node.unit)

    return visit(plan), flows


def _is_bounded(node: Node, bounded: Collection[str]) -> bool:
    return all(each.source in bounded for each in node.walk() if isinstance(each, Source))
