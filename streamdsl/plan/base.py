"""What all operators of the algebra share: immutable nodes over the nodes that they read."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from streamdsl.expr.nodes import Place
from streamdsl.expr.schema import Schema
from streamdsl.temporal import Unit, common_unit
from streamdsl.temporal.html import text

_INPUTS: Final = ("Node", "tuple[Node, ...]")


@dataclass(frozen=True, slots=True)
class Node:
    """The base of all operators. Two nodes are equal if their structure is."""

    written: Place | None = field(default=None, kw_only=True, compare=False, repr=False)
    """The line of the query that made it, where that is known."""
    depth: int = field(default=0, init=False, compare=False, repr=False)
    """How many operators are below each other from here on, 0: it has not been asked for."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes whose output this one reads, in order."""
        found: list[Node] = []
        for nodes in self._inputs().values():
            if isinstance(nodes, Node):
                found.append(nodes)
            else:
                found += nodes
        return tuple(found)

    def _inputs(self) -> dict[str, Node | tuple[Node, ...]]:
        """Return the fields that hold inputs: a node, or a tuple of nodes; the body of a group-apply reads its group only."""
        cls: Any = type(self)
        return {name: getattr(self, name) for name in _names(cls)}

    @property
    def schema(self) -> Schema | None:
        """The schema of the output's payloads; None where only a run can tell."""
        return self.inputs[0].schema

    @property
    def unit(self) -> Unit | None:
        """The unit of time of the output; None where only a run can tell."""
        # Not of the inputs: a node that many paths lead to would be asked once for each of them.
        return common_unit(*(leaf.unit for leaf in self.walk() if not leaf.inputs))

    @property
    def name(self) -> str:
        """The operator's name in `explain()` and in errors."""
        return type(self).__name__

    def walk(self) -> Iterator[Node]:
        """Yield this node and all below it, each input before its reader, a shared one once."""
        seen = {id(self)}
        open_: list[tuple[Node, Iterator[Node]]] = [(self, iter(self.inputs))]
        while open_:
            node, rest = open_[-1]
            below = next((below for below in rest if id(below) not in seen), None)
            if below is None:
                yield node
                open_.pop()
            else:
                seen.add(id(below))
                open_.append((below, iter(below.inputs)))

    def map_inputs(self, change: Callable[[Node], Node]) -> Node:
        """Return this node over changed inputs (the same node if none changed)."""
        changes: dict[str, Any] = {}
        for name, old in self._inputs().items():
            if isinstance(old, Node):
                new = change(old)
                if new is not old:
                    changes[name] = new
            else:
                parts = tuple(map(change, old))
                if any(a is not b for a, b in zip(parts, old, strict=True)):
                    changes[name] = parts
        return dataclasses.replace(self, **changes) if changes else self

    def to_json(self) -> str:
        """Return this plan as JSON text, which `sd.plan_from_json` reads; raises `QueryError` for what has none.

        >>> from streamdsl.plan.node import Shift, Source
        >>> '"type": "Shift"' in Shift(Source("trips"), 5).to_json()
        True
        """
        from streamdsl.plan.json import to_json

        return to_json(self)

    def _repr_html_(self) -> str:
        from streamdsl.plan.explain import explain

        return text(explain(self))


@functools.cache
def _names(cls: type[Node]) -> tuple[str, ...]:
    """Return the names of the fields that are declared to hold inputs."""
    return tuple(each.name for each in dataclasses.fields(cls) if each.name != "body" and each.type in _INPUTS)
