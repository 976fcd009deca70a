"""The context of a lowering: a memo of nodes, the notes for `explain()`, and copies of rows into enclosing groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pyspark.sql.functions import expr

from streamdsl.errors import UnsupportedOnSpark
from streamdsl.plan.labels import labels
from streamdsl.plan.node import Group, Node
from streamdsl.spark.flow import Flow, GroupKey, GroupScope
from streamdsl.temporal import INFINITY

ExecutionMode: TypeAlias = Literal["native", "rows", "groups", "portions", "partials", "one task", "unsupported"]
Rule: TypeAlias = "Callable[[LoweringContext, Any, GroupScope], Flow]"

_DESCRIPTIONS: dict[str, str] = {
    "native": "native",
    "rows": "Python (Arrow), row by row",
    "groups": "Python (Arrow), one call per group",
    "portions": "Python (Arrow), one call per portion of windows",
    "partials": "Python (Arrow), partial states, merged",
    "one task": "Python (Arrow), all rows in one task",
    "unsupported": "unsupported",
}


@dataclass(frozen=True, slots=True)
class ExecutionNote:
    """How a node runs on Spark, and the reason where it does not run natively."""

    how: ExecutionMode
    why: str = ""

    def __str__(self) -> str:
        return f"{_DESCRIPTIONS[self.how]}: {self.why}" if self.why else _DESCRIPTIONS[self.how]


@dataclass(slots=True, eq=False)
class LoweringContext:
    """The state of one lowering of a plan: its sources, the end of windows, and the nodes that have been lowered.

    Not `exact`, sums of floats may be rounded.
    Each node is lowered once per scope: a node that several read is one DataFrame.
    """

    plan: Node
    sources: Mapping[str, Flow]
    rules: Callable[[LoweringContext, Node], Rule]
    until: int = INFINITY
    exact: bool = True
    notes: dict[int, ExecutionNote] = field(default_factory=dict)
    _flows: dict[tuple[int, int], Flow] = field(default_factory=dict)
    _kept: list[object] = field(default_factory=list)
    _labels: dict[int, str] = field(default_factory=dict)

    def lower(self, node: Node, scope: GroupScope) -> Flow:
        """Return the flow of a node, from the memo if it has been lowered in this scope."""
        place = (id(node), id(scope))
        if place not in self._flows:
            self._kept.append((node, scope))
            self._flows[place] = self._lowered(node, scope)
        return self._flows[place]

    def _lowered(self, node: Node, scope: GroupScope) -> Flow:
        try:
            return self._named(node, self.rules(self, node)(self, node, scope))
        except UnsupportedOnSpark as error:
            if all(note.how != "unsupported" for note in self.notes.values()):
                self.note(node, "unsupported", str(error).partition("\n")[0])
            raise

    def _named(self, node: Node, flow: Flow) -> Flow:
        """Return a flow whose analyzed plan shows the node's label; Spark drops it when it optimizes the plan."""
        return flow if isinstance(node, Group) else flow.with_same_lifetimes(lambda frame: frame.alias(self.label(node)))

    def note(self, node: Node, how: ExecutionMode, why: object = "") -> None:
        """Note how a node runs; a node of which any part runs in Python is not native."""
        if how != "native" or id(node) not in self.notes:
            self.notes[id(node)] = ExecutionNote(how, str(why))

    def label(self, node: Node) -> str:
        """Return the node's label in `explain()`."""
        self._labels = self._labels or labels(self.plan)
        return self._labels.get(id(node), node.name)

    def unsupported(self, node: Node, why: str, hint: str | None = None) -> UnsupportedOnSpark:
        """Return the error for a node that cannot run on Spark."""
        self.note(node, "unsupported", why)
        return UnsupportedOnSpark(f"{self.label(node)} does not run on Spark: {why}", hint=hint)

    def align(self, flows: Sequence[Flow], scope: GroupScope) -> list[Flow]:
        """Return the flows with the same group keys: rows that do not depend on a group are copied into each group."""
        keys = {key.level: key for flow in flows for key in flow.keys}
        return [self.broadcast(flow, tuple(keys[level] for level in sorted(keys)), scope) for flow in flows]

    def broadcast(self, flow: Flow, keys: tuple[GroupKey, ...], scope: GroupScope) -> Flow:
        """Return a flow with these group keys: one copy of a row for each group that it does not depend on."""
        if all(flow.has_key(key.level) for key in keys):
            return flow
        return _per_group(flow, keys, scope.groups[max(key.level for key in keys)])


def _per_group(flow: Flow, keys: tuple[GroupKey, ...], groups: Flow) -> Flow:
    names = [key.column for key in keys]

    def make() -> Any:
        known = groups.make().selectExpr(*(f"{name} as g_{name}" for name in names)).distinct()
        same = " AND ".join(f"{name} <=> g_{name}" for name in names if name in flow.key_columns)
        joined = flow.make().join(known, expr(same)) if same else flow.make().crossJoin(known)
        return joined.selectExpr("le", "re", "p", *(f"g_{name} as {name}" for name in names))

    return Flow.of(flow.type, flow.unit, make, keys)
