"""A plan prepared for checks: the label and the source line of each operator, and the input of each group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from streamdsl.checks.finding import Finding, Level
from streamdsl.expr.nodes import Location
from streamdsl.plan.facts import Open
from streamdsl.plan.labels import labels
from streamdsl.plan.node import Group, GroupApply, Node


@dataclass(slots=True)
class PlanView:
    """A plan with facts about its nodes, by `id()`. A node without a source line has that of the nearest node above it.

    `groups` has the input of the group-apply of each `Group`, `inside` the nodes in bodies, `opened` caches `open_rows`.
    """

    plan: Node
    names: dict[int, str] = field(init=False)
    places: dict[int, Location | None] = field(default_factory=dict)
    groups: dict[int, Node] = field(default_factory=dict)
    inside: set[int] = field(default_factory=set)
    opened: dict[int, Open | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names = labels(self.plan)
        self._visit(self.plan, None, False)

    def _visit(self, node: Node, place: Location | None, is_inside: bool) -> None:
        if id(node) in self.places:
            return
        place = self.places[id(node)] = node.written or place
        if is_inside:
            self.inside.add(id(node))
        for below in node.inputs:
            self._visit(below, place, is_inside)
        if isinstance(node, GroupApply):
            for below in node.body.walk():
                if isinstance(below, Group):
                    self.groups.setdefault(id(below), node.input)
            self._visit(node.body, place, True)

    def nodes(self) -> Iterator[Node]:
        """Yield all nodes, in the order of their labels."""
        by_id = {id(node): node for node in self.plan.walk_all()}
        yield from (by_id[key] for key in self.names)

    def name(self, node: Node) -> str:
        """Return a node's label."""
        return self.names[id(node)]

    def open_rows(self, node: Node) -> Open | None:
        """Return which of a node's output rows never end, None if all end.

        >>> from streamdsl.plan.node import Source, ToEdges, clip_duration, shift
        >>> samples = ToEdges(Source("samples"), None)
        >>> shifted, clipped = shift(samples, 5), clip_duration(samples, 5)
        >>> PlanView(shifted).open_rows(shifted).origin.name, PlanView(clipped).open_rows(clipped)
        ('ToEdges', None)
        """
        for each in node.walk():
            if id(each) not in self.opened:
                self.opened[id(each)] = each.open_rows(self._opened_below(each))
        return self.opened[id(node)]

    def _opened_below(self, node: Node) -> list[Open | None]:
        if isinstance(node, GroupApply):
            return [self.open_rows(node.body)]
        if isinstance(node, Group):
            return [self.open_rows(self.groups[id(node)])]
        return [self.opened[id(below)] for below in node.inputs]

    def finding(self, node: Node, level: Level, what: str, remedy: str) -> Finding:
        """Return a finding at a node."""
        place = self.places[id(node)]
        return Finding(self.name(node), level, what, remedy, place and place.file, place and place.line)
