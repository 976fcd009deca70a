"""The type of the optimizer's rules, and the context in which a rule is applied to a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from streamdsl.plan.node import Node

Mode: TypeAlias = Literal["run", "speculative", "watermark", "final"]
"""How output is observed: of a run only the final CHT; of a session, by its emit policy, also the rows that each push returns."""


@dataclass(frozen=True, slots=True)
class RuleContext:
    """The context of a node: the mode, the engine, the whole plan, and the number of readers of each node, by its `id()`."""

    mode: Mode = "run"
    engine: str = "local"
    plan: Node | None = None
    readers: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Node, mode: Mode, engine: str = "local") -> RuleContext:
        """Return the context of a plan's nodes.

        >>> from streamdsl.plan.node import Source, Union
        >>> trips = Source("trips")
        >>> RuleContext.of(Union((trips, trips)), "run").is_shared(trips)
        True
        """
        return cls(mode, engine, plan, Counter(id(input) for node in plan.walk_all() for input in node.below))

    def is_shared(self, node: Node) -> bool:
        """Say whether a node has several readers: a copy that is rewritten for one of them would run in addition to it."""
        return self.readers.get(id(node), 0) > 1


Rule: TypeAlias = Callable[[Node, RuleContext], Node | None]
"""A function from a node to an equivalent node, or None if the rule does not fire.

A rule may remove an error (a module is not called with rows that are filtered below it), but never cause one.
"""
