"""Plans as pictures: a box for each operator, an arrow for each input."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from streamdsl.expr.describe import describe
from streamdsl.pictures.flow_chart import ChartBox, FlowChart
from streamdsl.plan.labels import labels
from streamdsl.plan.node import Group, GroupApply, Node, Source

MOST: Final = 60
"""The operators of a plan that Jupyter shows as a picture without being asked."""


def chart(plan: Node) -> FlowChart:
    """Return the picture of a plan; a group-apply's rows pass through its body, group by group.

    >>> from streamdsl.plan.node import Source, shift
    >>> list(chart(shift(Source("trips"), 5)).boxes)
    ['source:trips', 'shift_1']
    """
    names = labels(plan)
    within = dict(_within(plan, names, ""))
    keyed = {leaf: each for each in plan.walk_all() if isinstance(each, GroupApply) for leaf in _groups(each)}
    boxes, arrows = {}, []
    # A body's rows come from the input of its group-apply, so that input is drawn first.
    for node in _in_order(plan):
        name = names[id(node)]
        owner = keyed.get(id(node))
        if owner is not None:
            boxes[name] = ChartBox("the rows of one group", f"by {describe(owner.key)}", "group", within[id(node)])
            arrows.append((names[id(owner.input)], name))
            continue
        kind = "source" if isinstance(node, Source) else "operator"
        boxes[name] = ChartBox(name, node.describe(), kind, within.get(id(node), ""))
        inputs = (node.body,) if isinstance(node, GroupApply) else node.inputs
        arrows += [(names[id(each)], name) for each in inputs]
    return FlowChart(boxes, arrows)


def readable(plan: Node) -> FlowChart | None:
    """Return the picture that Jupyter shows of a plan without being asked: None for one of more operators than can be read."""
    return None if sum(1 for _ in islice(plan.walk_all(), MOST + 1)) > MOST else chart(plan)


def _groups(owner: GroupApply) -> list[int]:
    """Return the leaf of a body that stands for the rows of one of its groups."""
    level = owner.input.level + 1
    return [id(each) for each in owner.body.walk() if isinstance(each, Group) and each.level == level]


def _in_order(plan: Node) -> list[Node]:
    """Return the operators, each after what flows into it."""
    found: dict[int, Node] = {}
    for node in plan.walk():
        if isinstance(node, GroupApply):
            found.update({id(each): each for each in _in_order(node.body)})
        found[id(node)] = node
    return list(found.values())


def _within(plan: Node, names: dict[int, str], owner: str) -> Iterator[tuple[int, str]]:
    """Yield for each operator in the body of a group-apply the label of that."""
    for node in plan.walk():
        if owner:
            yield id(node), owner
        if isinstance(node, GroupApply):
            yield from _within(node.body, names, names[id(node)])
