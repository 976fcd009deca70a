"""The base class of all operators of the algebra: immutable nodes over their inputs, with facts for optimizer and engines."""

from __future__ import annotations

import dataclasses
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from streamdsl.expr.nodes import Expr, Location
from streamdsl.expr.recursion import bottom_up
from streamdsl.expr.schema import Schema
from streamdsl.plan.facts import Fields, FilterBelow, Keeps, Open, Removes
from streamdsl.temporal import Unit, common_unit
from streamdsl.temporal.display import Displayed
from streamdsl.temporal.html import text

if TYPE_CHECKING:
    from streamdsl.pictures.flow_chart import FlowChart
    from streamdsl.udm.bases import UDM

_INPUTS: Final = ("Node", "tuple[Node, ...]")


@dataclass(frozen=True, slots=True)
class _Extent:
    """How deep a plan is, and its leaves. Each node keeps it, as else a chain of n operators is walked n times to be built."""

    depth: int
    leaves: tuple[Node, ...]
    """Empty for a leaf: what refers to itself waits for the collector of garbage."""


@dataclass(frozen=True, slots=True)
class Node(Displayed, ABC):
    """The base of all operators. Two nodes are equal if they have the same class and equal fields.

    The properties below are the facts that the optimizer, the checks, `explain()`, Spark and the engine read. A fact of which
    either value could be wrong is abstract, so that each class states it; a fact that only permits something defaults to "not
    permitted". The base classes in `plan/nodes/` state the facts of whole families. Laws compare each fact with what the operator
    does (tests/laws/test_facts.py).
    """

    written: Location | None = field(default=None, kw_only=True, compare=False, repr=False)
    """The line of the query that makes this operator, if known."""
    _extent: _Extent | None = field(default=None, init=False, compare=False, repr=False)

    @abstractmethod
    def describe(self) -> str:
        """Return the operator's settings as `explain()` prints them, without its inputs."""

    @property
    @abstractmethod
    def row_wise(self) -> bool:
        """Whether the output of a row depends on that row alone, so that rows may be processed in any partition."""

    @property
    @abstractmethod
    def passes_payload(self) -> bool:
        """Whether each output row has the payload of one input row, unchanged, and only the node's expressions read it."""

    @property
    @abstractmethod
    def opens_cells(self) -> bool:
        """Whether output appears cell by cell, or window by window, as the high water reaches each of them."""

    @property
    @abstractmethod
    def keeps(self) -> Keeps:
        """The part of its input that the operator keeps in its state."""

    @property
    def kept_inputs(self) -> tuple[Node, ...]:
        """The inputs whose rows the operator keeps for as long as they live."""
        return self.inputs if self.keeps is Keeps.ROWS else ()

    @property
    def follows_ctis(self) -> bool:
        """Whether the output CTI is a function of the input CTIs and the high water, and of no other property of the rows."""
        return False

    @property
    def partition_by(self) -> tuple[Expr | None, ...]:
        """The partition key of each input; None if all rows must be in one partition. Not used for row-wise operators."""
        return tuple(None for _ in self.inputs)

    @property
    def fixed_duration(self) -> int | None:
        """The duration of every output row, None if durations may differ."""
        return None

    @property
    def one_at_a_time(self) -> bool:
        """Whether the lifetimes of output rows certainly never overlap."""
        return False

    @property
    def passes_lifetime(self) -> bool:
        """Whether each output row has the lifetime of the row of the first input that it comes of."""
        return False

    @property
    def removes(self) -> Removes | None:
        """Why rows, or parts of them, are left out, if that is all that becomes of the first input's rows; else None."""
        return None

    @property
    def shows_unmatched(self) -> bool:
        """Whether rows go out for lack of a row of another input, and are taken back whole when it comes."""
        return False

    @property
    def filter_below(self) -> FilterBelow | None:
        """Which rows a payload filter meets if it is pushed down unchanged; None if that is not allowed, or has its own rule."""
        return None

    @property
    def moves_starts_as_ctis(self) -> bool:
        """Whether LEs and CTIs move by the same amount, so that ordered input gives ordered output."""
        return False

    def fields_needed(self, position: int, wanted: Fields) -> Fields:
        """Return the fields of the input at `position` that the operator needs to produce the fields `wanted` of its output."""
        return None

    @abstractmethod
    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        """Return which output rows never end, None if all end; `inputs` is the same for each input (group-apply: its body)."""

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
        """Return the fields that hold inputs, each a node or a tuple of nodes. The body of a group-apply is not an input."""
        cls: Any = type(self)
        return {name: getattr(self, name) for name in _names(cls)}

    @property
    def keeps_schema(self) -> bool:
        """Whether the schema is always that of the first input, so that loops can skip this node when they look for one."""
        return type(self).schema is Node.schema

    @property
    def schema(self) -> Schema | None:
        """The schema of the output's payloads, None if it is known only at run time."""
        return self.inputs[0].schema

    @property
    def unit(self) -> Unit | None:
        """The unit of time of the output, None if it is known only at run time."""
        return common_unit(*(leaf.unit for leaf in self.leaves))

    @property
    def modules(self) -> tuple[UDM, ...]:
        """The modules that are invoked for each window."""
        return ()

    @property
    def level(self) -> int:
        """The level of the innermost group whose rows the node reads, -1 outside of groups."""
        return max(leaf.level for leaf in self.leaves)

    @property
    def name(self) -> str:
        """The operator's name in `explain()` and in errors."""
        return type(self).__name__

    @property
    def depth(self) -> int:
        """The number of operators on the longest path down to a source.

        >>> from streamdsl.plan.node import Source, shift
        >>> shift(Source("trips"), 5).depth
        2
        """
        return self._measured().depth

    @property
    def leaves(self) -> tuple[Node, ...]:
        """The nodes without inputs that this one reads, each once: sources, and the groups of the query around it."""
        return self._measured().leaves or (self,)

    def _measured(self) -> _Extent:
        """Return the extent of this node; the walk that finds it stops at nodes that have theirs, and gives one to the others."""
        if self._extent is None:
            for node in bottom_up(self, lambda node: [each for each in node.inputs if each._extent is None]):
                below = node.inputs
                leaves = below[0].leaves if len(below) == 1 else _each_once(leaf for each in below for leaf in each.leaves)
                object.__setattr__(node, "_extent", _Extent(1 + max((each.depth for each in below), default=0), leaves))
            assert self._extent is not None
        return self._extent

    def walk(self) -> Iterator[Node]:
        """Yield this node and all below it in topological order, inputs first, each once. Not recursive, so depth is no limit."""
        return bottom_up(self, lambda node: node.inputs)

    def walk_all(self) -> Iterator[Node]:
        """Yield what `walk` does, and the nodes in the bodies of group-applies, each before its group-apply."""
        return bottom_up(self, lambda node: node.below)

    @property
    def below(self) -> tuple[Node, ...]:
        """The nodes directly below: the inputs, and of a group-apply its body."""
        return self.inputs

    def map_inputs(self, change: Callable[[Node], Node]) -> Node:
        """Return this node with `change` applied to each input, or the same node if no input changes."""
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

    def map_below(self, change: Callable[[Node], Node]) -> Node:
        """Return what `map_inputs` does, with `change` applied to the body of a group-apply too."""
        return self.map_inputs(change)

    def mapped(self, change: Callable[[Node], Node]) -> Node:
        """Return this plan with `change` applied to each node, bottom-up, once to a shared node."""
        return self._rebuilt({}, change)

    def replaced(self, old: Node, new: Node) -> Node:
        """Return this plan with one node replaced for all its readers.

        >>> from streamdsl.plan.node import Distinct, Source
        >>> trips = Source("trips")
        >>> Distinct(trips).replaced(trips, Source("rides")).input.source
        'rides'
        """
        return self._rebuilt({id(old): new}, lambda node: node)

    def _rebuilt(self, done: dict[int, Node], change: Callable[[Node], Node]) -> Node:
        """Return what `mapped` does; `done` has the nodes that are known already, by `id()`."""

        def visit(node: Node) -> Node:
            if id(node) not in done:
                done[id(node)] = change(node.map_below(visit))
            return done[id(node)]

        return visit(self)

    def to_json(self) -> str:
        """Return this plan as JSON text, which `sd.composing.plan_from_json` reads; raises `QueryError` for what has none.

        >>> from streamdsl.plan.node import Source, shift
        >>> '"kind": "Shift"' in shift(Source("trips"), 5).to_json()
        True
        """
        from streamdsl.plan.json import to_json

        return to_json(self)

    def draw(self) -> FlowChart:
        """Return a picture of this plan: Mermaid text, and SVG in Jupyter.

        >>> from streamdsl.plan.node import Source, shift
        >>> print(str(shift(Source("trips"), 5).draw()).splitlines()[1].strip())
        n0[("source:trips")]
        """
        from streamdsl.plan.drawing import chart

        return chart(self)

    def _picture(self) -> FlowChart | None:
        from streamdsl.plan.drawing import readable

        return readable(self)

    def _below(self) -> str:
        from streamdsl.plan.explain import explain

        return text(explain(self))


def _each_once(nodes: Iterable[Node]) -> tuple[Node, ...]:
    return tuple({id(node): node for node in nodes}.values())


@functools.cache
def _names(cls: type[Node]) -> tuple[str, ...]:
    """Return the names of the fields whose annotation is a node or a tuple of nodes."""
    return tuple(each.name for each in dataclasses.fields(cls) if each.name != "body" and each.type in _INPUTS)
