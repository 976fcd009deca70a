"""What a rule of the optimizer is, and what it may ask about the plan around its node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from streamdsl.plan.node import Node
from streamdsl.rewrite.tree import below, nodes

Mode: TypeAlias = Literal["run", "speculative", "watermark", "final"]
"""How the output is looked at: a run is judged by its history; a session, by its way to emit, by what each push returns."""


@dataclass(frozen=True, slots=True)
class RuleContext:
    """What a rule may know besides its node: the mode, the engine, the plan, and how many nodes read each node, by its `id()`."""

    mode: Mode = "run"
    engine: str = "local"
    plan: Node | None = None
    readers: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Node, mode: Mode, engine: str = "local") -> RuleContext:
        """Return the setting of a plan's nodes.

        >>> from streamdsl.plan.node import Source, Union
        >>> trips = Source("trips")
        >>> RuleContext.of(Union((trips, trips)), "run").is_shared(trips)
        True
        """
        return cls(mode, engine, plan, Counter(id(input) for node in nodes(plan) for input in below(node)))

    def is_shared(self, node: Node) -> bool:
        """Say whether several nodes read a node: a copy changed for one of them would be run besides it."""
        return self.readers.get(id(node), 0) > 1


Rule: TypeAlias = Callable[[Node, RuleContext], Node | None]
"""Given a node, the node to have in its place, which means the same; None where the rule does not fire.

A rule may spare an error (a module is not called with rows that no longer reach it), never cause one.
"""
