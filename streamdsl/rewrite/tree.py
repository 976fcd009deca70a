"""Traversal of plans including the bodies of group-applies, and replacing a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from streamdsl.plan.node import GroupApply, Node


def nodes(plan: Node) -> Iterator[Node]:
    """Yield the nodes of a plan, including those in bodies of group-applies, inputs before their readers.

    >>> from streamdsl.plan.node import Source, shift
    >>> [node.name for node in nodes(shift(Source("trips"), 5))]
    ['Source', 'Shift']
    """
    for node in plan.walk():
        if isinstance(node, GroupApply):
            yield from nodes(node.body)
        yield node


def below(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly below a node: its inputs, and the body of a group-apply.

    >>> from streamdsl.plan.node import Source, shift
    >>> below(shift(Source("trips"), 5))[0].source
    'trips'
    """
    return (*node.inputs, node.body) if isinstance(node, GroupApply) else node.inputs


def replaced(plan: Node, old: Node, new: Node) -> Node:
    """Return a plan with one node replaced for all its readers.

    >>> from streamdsl.plan.node import Distinct, Source
    >>> trips = Source("trips")
    >>> replaced(Distinct(trips), trips, Source("rides"))
    Distinct(input=Source(source='rides', payload=None, time_unit=None, progress=None, on_violation='error'))
    """
    done: dict[int, Node] = {id(old): new}

    def change(node: Node) -> Node:
        if id(node) not in done:
            done[id(node)] = _over(node, change)
        return done[id(node)]

    return change(plan)


def _over(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a node with `change` applied to its inputs, and to the body of a group-apply."""
    changed = node.map_inputs(change)
    if isinstance(changed, GroupApply) and (body := change(changed.body)) is not changed.body:
        return replace(changed, body=body)
    return changed
