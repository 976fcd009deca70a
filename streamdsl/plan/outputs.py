"""Several outputs of one graph: what `sd.run_all` runs."""

from __future__ import annotations

from dataclasses import dataclass

from streamdsl.expr.schema import Schema
from streamdsl.plan.base import Node
from streamdsl.plan.parameters import mapped


@dataclass(frozen=True, slots=True)
class Outputs(Node):
    """The outputs of several queries, side by side; no query reads it. A node that several of them read is one node.

    >>> from streamdsl.plan.node import Shift, Source
    >>> trips = Source("trips")
    >>> len(list(Outputs((Shift(trips, 1), Shift(trips, 2))).walk()))
    4
    """

    parts: tuple[Node, ...]

    @property
    def schema(self) -> Schema | None:
        return None


def outputs_of(plan: Node) -> tuple[Node, ...]:
    """Return the plans of the outputs: the parts, or the plan itself.

    >>> from streamdsl.plan.node import Source
    >>> outputs_of(Source("trips")) == (Source("trips"),)
    True
    """
    return plan.parts if isinstance(plan, Outputs) else (plan,)


def shared(plan: Node) -> Node:
    """Return a plan in which equal nodes over the same inputs are one node, so that they run once.

    >>> from streamdsl.plan.node import Shift, Source
    >>> twice = shared(Outputs((Shift(Source("trips"), 1), Shift(Source("trips"), 1))))
    >>> twice.parts[0] is twice.parts[1]
    True
    """
    known: dict[tuple[object, ...], list[Node]] = {}

    def change(node: Node) -> Node:
        # Their inputs are one by now, so that comparing two nodes is comparing what they do.
        alike = known.setdefault((type(node), *map(id, node.inputs)), [])
        for other in alike:
            if other == node:
                return other
        alike.append(node)
        return node

    return mapped(plan, change)
