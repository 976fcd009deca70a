"""Demand analysis: which fields of each node's rows are used by the nodes above it."""

from __future__ import annotations

from collections.abc import Mapping

from streamdsl.plan.facts import NO_FIELDS, Fields, fields_read
from streamdsl.plan.node import Group, GroupApply, Node


def demands(plan: Node) -> dict[int, Fields]:
    """Return the fields of each node's rows that are used, by the node's `id()`, None for whole payloads, as of the output.

    >>> from streamdsl.expr.nodes import Binary, Constant, Field
    >>> from streamdsl.plan.node import Select, Source, Where
    >>> trips = Source("trips")
    >>> short = Where(trips, Binary("<", Field("km"), Constant(5)))
    >>> sorted(demands(Select(short, Field("zone")))[id(trips)])
    ['km', 'zone']
    """
    found: dict[int, Fields] = {id(plan): None}
    _spread(plan, found, {})
    return found


def _spread(plan: Node, found: dict[int, Fields], groups: Mapping[int, Node]) -> None:
    """Propagate the demand on a plan's output down to all nodes, readers before their inputs."""
    for node in reversed(list(plan.walk())):
        wanted = found[id(node)]
        if isinstance(node, Group) and node.level in groups:
            _add(found, groups[node.level], wanted)
        if isinstance(node, GroupApply):
            _add(found, node.body, fields_read([node.projection]))
            _spread(node.body, found, {**groups, node.input.level + 1: node.input})
        for position, below in enumerate(node.inputs):
            _add(found, below, node.fields_needed(position, wanted))


def _add(found: dict[int, Fields], node: Node, wanted: Fields) -> None:
    known = found.get(id(node), NO_FIELDS)
    found[id(node)] = None if known is None or wanted is None else known | wanted
