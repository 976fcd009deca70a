"""What all operators of the algebra share: immutable nodes over the nodes that they read, and the facts that each states."""

from __future__ import annotations

import dataclasses
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from streamdsl.expr.nodes import Expr, Location
from streamdsl.expr.schema import Schema
from streamdsl.plan.facts import Fields, FilterBelow, Keeps, Open
from streamdsl.temporal import Unit, common_unit
from streamdsl.temporal.html import text

_INPUTS: Final = ("Node", "tuple[Node, ...]")


@dataclass(frozen=True, slots=True)
class Node(ABC):
    """The base of all operators. Two nodes are equal if their structure is.

    What the optimizer, the checks, `explain()`, Spark and the engine need to know of an operator is said by its class, below: a
    class that leaves out what either answer could get wrong has no nodes. Of what may be certain, and then allows something, the
    default is that it is not. Families (`plan/nodes/`) say what is so for all of their members. Laws hold each fact to what the
    operator does (tests/laws/test_facts.py).
    """

    written: Location | None = field(default=None, kw_only=True, compare=False, repr=False)
    """The line of the query that made it, where that is known."""
    depth: int = field(default=0, init=False, compare=False, repr=False)
    """How many operators are below each other from here on, 0: it has not been asked for."""

    @abstractmethod
    def describe(self) -> str:
        """Return what the operator does as `explain()` shows it, without its inputs."""

    @property
    @abstractmethod
    def row_wise(self) -> bool:
        """Whether what becomes of a row depends on that row alone, so that rows may pass in any part of a cluster."""

    @property
    @abstractmethod
    def passes_payload(self) -> bool:
        """Whether each output row has the payload of the input row it comes of, at which only the node's expressions look."""

    @property
    @abstractmethod
    def opens_cells(self) -> bool:
        """Whether its output appears cell by cell, or window by window, as the high water reaches them."""

    @property
    @abstractmethod
    def keeps(self) -> Keeps:
        """What the operator keeps of the rows that it reads."""

    @property
    def kept_inputs(self) -> tuple[Node, ...]:
        """The inputs of which it keeps each row as long as the row lives."""
        return self.inputs if self.keeps is Keeps.ROWS else ()

    @property
    def follows_ctis(self) -> bool:
        """Whether the output CTI depends on the input CTIs and the high water alone, and on no row besides."""
        return False

    @property
    def partition_by(self) -> tuple[Expr | None, ...]:
        """For each input the key whose rows have to be in one place, None: all rows. Nobody asks it of row-wise operators."""
        return tuple(None for _ in self.inputs)

    @property
    def fixed_duration(self) -> int | None:
        """The one duration that all output rows have, None if they may differ."""
        return None

    @property
    def one_at_a_time(self) -> bool:
        """Whether it is certain that no two output rows live at the same time."""
        return False

    @property
    def filter_below(self) -> FilterBelow | None:
        """On which rows a filter by payload may run below as it stands; None: nothing is certain, or a rule of its own says."""
        return None

    @property
    def moves_starts_as_ctis(self) -> bool:
        """Whether each row's LE moves as the CTI does, so that ordered input stays ordered."""
        return False

    def fields_needed(self, position: int, wanted: Fields) -> Fields:
        """Return the fields that are needed of the input at `position`, if `wanted` are of the output."""
        return None

    @abstractmethod
    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        """Return which output rows never end, None if all end, given the same of the inputs (of a group-apply: of its body)."""

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
    def keeps_schema(self) -> bool:
        """Whether the schema is that of the first input: then a reader may ask that one."""
        return type(self).schema is Node.schema

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
        """Return this plan as JSON text, which `sd.composing.plan_from_json` reads; raises `QueryError` for what has none.

        >>> from streamdsl.plan.node import Source, shift
        >>> '"kind": "Shift"' in shift(Source("trips"), 5).to_json()
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
