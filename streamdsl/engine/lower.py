"""Lowering: from a plan to a graph of running operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Final, TypeAlias

import numpy as np

from streamdsl.engine.batch import EMPTY
from streamdsl.engine.frontiers import Frontier
from streamdsl.engine.keys import KeyTable, payload_parts
from streamdsl.engine.operator import (
    EmitPolicy,
    Operator,
    Piece,
    RowOperator,
)
from streamdsl.engine.window_budget import most_windows
from streamdsl.errors import QueryError
from streamdsl.plan.labels import labels
from streamdsl.plan.node import (
    NODES,
    AntiJoin,
    Group,
    GroupApply,
    Node,
    Select,
    SelectMany,
    SemiJoin,
    Source,
    Where,
    WindowAggregate,
    WindowApply,
)
from streamdsl.plan.outputs import outputs_of
from streamdsl.temporal.identifiers import snake
from streamdsl.temporal.time import INFINITY, MIN_TIME, Ticks
from streamdsl.windows import Grid

Options: TypeAlias = Mapping[str, str]


def window_operator(node: WindowAggregate | WindowApply) -> type[Any]:
    """Return the window operator for a node."""
    from streamdsl.engine.operators.columnar_windows import ColumnarWindowOperator, adds_up

    on_grid = isinstance(node.windows, Grid)
    if adds_up(node):
        return ColumnarWindowOperator if on_grid else _named("operators.snapshot_windows", "SnapshotOperator")
    if not on_grid:
        return named_operator(type(node))
    if isinstance(node, WindowApply):
        return _named("operators.applied", "GridApplyOperator")
    return _named("operators.grid_windows", "GridWindowOperator")


_ELSEWHERE: Final[Mapping[type[Node], tuple[str, str]]] = {
    Where: ("span", "WhereOperator"),
    Select: ("span", "SelectOperator"),
    SelectMany: ("span", "SelectManyOperator"),
    AntiJoin: ("existence", "AntiJoinOperator"),
    SemiJoin: ("existence", "SemiJoinOperator"),
    GroupApply: ("group_apply", "GroupExitOperator"),
    WindowAggregate: ("framed_windows", "FramedWindowOperator"),
    WindowApply: ("applied", "ApplyOperator"),
}
OPERATORS: Final[Mapping[type[Node], tuple[str, str]]] = {
    node: _ELSEWHERE.get(node, (snake(node.__name__), f"{node.__name__}Operator"))
    for node in NODES
    if node not in (Source, Group)
}
"""The module and the name of each node's operator, those of the node itself unless it shares a module with others.

Of windows on a grid, and of sums, there are others (`window_operator`).

A `GroupApply` is two: rows enter their groups, pass the body, and leave.

A module is imported when a query has its node: all of them would be most of what a first run costs.
"""


def named_operator(node: type[Node]) -> type[Any]:
    """Return the operator in the table.

    >>> from streamdsl.plan.node import Union
    >>> named_operator(Union).__name__
    'UnionOperator'
    """
    module, name = OPERATORS[node]
    return _named(f"operators.{module}", name)


def _named(module: str, name: str) -> type[Any]:
    found: type[Any] = getattr(import_module(f"streamdsl.engine.{module}"), name)
    return found


def operator_class(node: Node) -> type[Any]:
    """Return the operator class for a node."""
    if isinstance(node, (WindowAggregate, WindowApply)):
        return window_operator(node)
    return named_operator(type(node))


def operator_kinds(plan: Node) -> dict[str, str]:
    """Return the kind of each operator of a plan by its label, for `explain()`."""
    return {stage.operator.label: stage.operator.kind for stage in lower(plan).stages if stage.operator is not None}


@dataclass(slots=True)
class Stage:
    """An operator in the graph, and the stages that it reads. A source is a stage without an operator."""

    operator: Operator | None
    inputs: tuple[int, ...]
    source: str = ""


@dataclass(slots=True)
class Graph:
    """The running operators of a plan, in topological order, and which of them are outputs."""

    stages: list[Stage] = field(default_factory=list)
    sources: dict[str, Source] = field(default_factory=dict)
    outputs: list[int] = field(default_factory=list)
    key_tables: list[KeyTable] = field(default_factory=list)
    frontiers: list[Stage] = field(default_factory=list)
    """The stages that decide the final frontier of the only output, which is the last one."""
    keeps_keys: bool = False
    """Whether key tables may forget nothing now, because buffered rows have keys that are not numbered yet."""

    def step(self, pieces: Mapping[str, Piece], ctis: Mapping[str, int]) -> list[Piece]:
        """Run one piece of every source through the plan, and return the pieces of the outputs. Each operator runs once."""
        out = self._through(pieces, ctis)
        for table in self.key_tables:
            if table.is_due and not self.keeps_keys and min(ctis.values(), default=INFINITY) < INFINITY:
                self._forget_keys()
        for table in self.key_tables:
            table.end_step()
        return out

    def final_frontier(self, ctis: Mapping[str, int], finals: Mapping[str, int] | None = None) -> int:
        """Return the RE up to which rows of the only output are final, after these CTIs of the sources.

        `finals` are the final frontiers of sources of which more is known than their CTIs.
        """
        found: list[Frontier] = []
        for stage in self.frontiers:
            if stage.operator is None:
                found.append(Frontier.of(ctis[stage.source], (finals or {}).get(stage.source, MIN_TIME)))
            elif stage.operator.cti == INFINITY:
                found.append(Frontier.of(INFINITY))
            else:
                known = stage.operator.final_frontier([found[i] for i in stage.inputs])
                found.append(Frontier.of(stage.operator.cti, known))
        return found[-1].final

    def _through(self, pieces: Mapping[str, Piece], ctis: Mapping[str, int]) -> list[Piece]:
        out: list[Piece] = []
        for stage in self.stages:
            if stage.operator is None:
                out.append(pieces.get(stage.source) or Piece(EMPTY, ctis[stage.source]))
            else:
                out.append(stage.operator.step(list(map(out.__getitem__, stage.inputs))))
        return [out[i] for i in self.outputs]

    def _forget_keys(self) -> None:
        """Let the key tables forget the groups that no operator holds."""
        held: dict[KeyTable, list[Ticks]] = {table: [] for table in self.key_tables}
        for operator in self.operators:
            if operator.key_table is not None:
                held[operator.key_table].append(np.fromiter(operator.held_groups(), dtype=np.int64))
        for table in reversed(self.key_tables):
            numbers = np.concatenate(held[table])
            outer = table.outer(numbers)
            if table.around is not None and outer is not None:
                held[table.around].append(outer)
            table.keep(numbers)

    def table_labels(self) -> dict[int, str]:
        """Return labels of the key tables that ids of results may refer to, by their `id()`: the operator, and its attribute."""
        held = ((each.label, name, value) for each in self.operators for name, value in vars(each).items())
        return {id(value): f"{label}.{name}" for label, name, value in held if type(value) is KeyTable}

    def table(self, label: str) -> KeyTable:
        """Return the key table with a label that such a graph has given; one that is made on first use is made now."""
        of, _, name = label.rpartition(".")
        operator: Any = next(each for each in self.operators if each.label == of and hasattr(each, name))
        found: KeyTable = getattr(operator, name) or operator.key_numbers
        return found

    @property
    def operators(self) -> list[Operator]:
        """The operators, in topological order."""
        return [stage.operator for stage in self.stages if stage.operator is not None]

    def add(self, operator: Operator | None, inputs: tuple[int, ...] = (), source: str = "") -> int:
        """Append a stage and return its number."""
        self.stages.append(Stage(operator, inputs, source))
        return len(self.stages) - 1


def lower(
    plan: Node,
    emit_policy: EmitPolicy | None = None,
    options: Options | None = None,
    names: Mapping[int, str] | None = None,
) -> Graph:
    """Return the operators of a plan, ready to run. Raises `QueryError` for an unknown engine option.

    `names` are labels of a larger plan that this one is a part of.
    """
    options = options or {}
    for name in options:
        if name not in ("attach", "most_windows"):
            raise QueryError(
                f"there is no engine option {name!r}; the options are: attach, most_windows, rewrite",
                hint='for example engine_options={"most_windows": 10_000}',
            )
    graph = Graph()
    builder = _Builder(graph, names or labels(plan), replace(emit_policy or EmitPolicy(), most=most_windows(options)))
    graph.outputs = [builder.build(output) for output in outputs_of(plan)]
    graph.frontiers = _frontiers(graph)
    return graph


def _frontiers(graph: Graph) -> list[Stage]:
    """Return the stages that have a final frontier of their own; `inputs` are indices in what is returned."""
    found: list[Stage] = []
    places: list[int] = []
    for stage in graph.stages[: max(graph.outputs) + 1]:
        inputs = tuple(places[i] for i in stage.inputs)
        if isinstance(stage.operator, RowOperator) and not stage.operator.reads_re:
            places += inputs
        else:
            found.append(Stage(stage.operator, inputs, stage.source))
            places.append(len(found) - 1)
    return found


@dataclass(slots=True)
class _Builder:
    graph: Graph
    names: Mapping[int, str]
    emit_policy: EmitPolicy
    groups: dict[int, int] = field(default_factory=dict)
    tables: list[KeyTable] = field(default_factory=list)
    built: dict[tuple[int, tuple[int, ...]], int] = field(default_factory=dict)

    def build(self, node: Node) -> int:
        key = (id(node), tuple(self.groups.values()))
        if key not in self.built:
            self.built[key] = self._stage(node)
        return self.built[key]

    def _stage(self, node: Node) -> int:
        if isinstance(node, Source):
            return self._source(node)
        if isinstance(node, Group):
            return self.groups[node.level]
        label = self.names[id(node)]
        if isinstance(node, GroupApply):
            return self._group_apply(label, node)
        inputs = tuple(self.build(below) for below in node.inputs)
        return self.graph.add(self._operator(label, node), inputs)

    def _operator(self, label: str, node: Node) -> Operator:
        made = operator_class(node)
        operator: Operator = made(label, node, self.emit_policy) if made.takes_emit_policy else made(label, node)
        return self._in_scope(operator)

    def _in_scope(self, operator: Operator) -> Operator:
        operator.key_table = self.tables[-1] if self.tables else None
        return operator

    def _source(self, node: Source) -> int:
        if self.groups:
            raise QueryError(
                f"the sub-query of a group reads the source {node.source!r} besides its group",
                hint="join before grouping; inside apply, build the query from the group alone",
            )
        known = self.graph.sources.get(node.source)
        if known is None:
            self.graph.sources[node.source] = node
            return self.graph.add(None, source=node.source)
        if known != node:
            raise QueryError(f"two different sources are named {node.source!r}", hint="give each source a name of its own")
        return next(n for n, stage in enumerate(self.graph.stages) if stage.source == node.source)

    def _group_apply(self, label: str, node: GroupApply) -> int:
        from streamdsl.engine.operators.group_apply import GroupEnterOperator, GroupExitOperator

        node = replace(node, key=payload_parts(node.key, node.input.schema))
        inside = KeyTable(node.key, self.tables[-1] if self.tables else None)
        self.graph.key_tables.append(inside)
        entered = self.graph.add(self._in_scope(GroupEnterOperator(label, node, inside)), (self.build(node.input),))
        level = len(self.groups)
        self.groups[level] = entered
        self.tables.append(inside)
        body = self.build(node.body)
        self.tables.pop()
        del self.groups[level]
        return self.graph.add(self._in_scope(GroupExitOperator(label, node, inside)), (body,))
