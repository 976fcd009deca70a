"""Equal parts of a plan become one, which runs once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from streamdsl.expr.immutable import IMMUTABLE
from streamdsl.expr.nodes import Constant, Expr
from streamdsl.plan.node import Node, Source
from streamdsl.rewrite.conditions import FieldOf, Forgiving
from streamdsl.rewrite.rule import Setting
from streamdsl.rewrite.tree import nodes, replaced
from streamdsl.udm.bases import UDM


def share_equals(node: Node, setting: Setting) -> Node | None:
    """Make equal parts of what a union or a join reads one part, read twice.

    Parts are equal if their operators and expressions are, wherever they are written; functions are equal only to themselves, and
    modules as their class says. A module that is not deterministic is equal to none. Lifetimes and CTIs stay; operators of a kind
    are numbered anew, so results of later ones have other ids.

    Law: `op(q(s), q(s)) == (lambda t: op(t, t))(q(s))`.

    Before and after:

    >>> import streamdsl as sd
    >>> def counts():
    ...     return sd.source("trips").tumbling_window(10).aggregate(n=sd.count())
    >>> before = counts().union(counts().shift(10)).plan()
    >>> [node.name for node in before.walk()]
    ['Source', 'WindowAggregate', 'Source', 'WindowAggregate', 'Shift', 'Union']
    >>> [node.name for node in share_equals(before, Setting()).walk()]
    ['Source', 'WindowAggregate', 'Shift', 'Union']

    Must not fire: on functions that merely look alike, and on modules that are not deterministic.

    >>> class Sampled(sd.UDA[int, int]):
    ...     deterministic = False
    ...     def compute_result(self, values):
    ...         return hash(tuple(values))
    >>> def alike(make):
    ...     return make().union(make().shift(10)).plan()
    >>> opaque = alike(lambda: sd.source("trips").where(lambda e: e.zone in ("A", "B")))
    >>> module = Sampled()
    >>> sampled = alike(lambda: sd.source("trips").tumbling_window(10).aggregate(module))
    >>> [share_equals(plan, Setting()) for plan in (opaque, sampled)]
    [None, None]
    """
    if len(node.inputs) < 2:
        return None
    shared = Sharing().visit(node)
    return shared if _operators(shared) < _operators(node) else None


def with_equal_parts(plan: Node, part: Node, new: Node) -> Node:
    """Return a plan that reads `new` wherever it has `part`, or a part that is equal to it.

    >>> from streamdsl.plan.node import shift
    >>> trips = shift(Source("trips"), 5)
    >>> with_equal_parts(shift(shift(Source("trips"), 5), 2), trips, Source("later")) == shift(Source("later"), 2)
    True
    """
    sharing = Sharing()
    first = sharing.visit(part)
    while (found := next((node for node in nodes(plan) if sharing.visit(node) is first), None)) is not None:
        plan = replaced(plan, found, new)
    return plan


def _operators(plan: Node) -> int:
    """Return how many operators a plan has; sources of one name are one already."""
    return sum(not isinstance(node, Source) for node in plan.walk())


@dataclass(slots=True)
class Sharing:
    """The first of each of some equal things, by a number that equal things share."""

    numbers: dict[Hashable, int] = field(default_factory=dict)
    firsts: dict[int, Node] = field(default_factory=dict)
    visited: dict[int, tuple[object, Any]] = field(default_factory=dict)

    def visit(self, node: Node) -> Node:
        """Return the first node that is equal to this one, over inputs that are."""
        if id(node) not in self.visited:
            over = node.map_inputs(self.visit)
            self.visited[id(node)] = (node, self.firsts.setdefault(self.of_parts(over), over))
        found: Node = self.visited[id(node)][1]
        return found

    def of_parts(self, value: Any) -> int:
        """Return the number of what is equal to another if the parts are that count; the line where it is written does not."""
        parts = tuple(self.number(getattr(value, part.name)) for part in fields(value) if part.compare)
        return self._numbered((type(value), parts))

    def number(self, value: Any) -> int:
        """Return the number of a part of a node."""
        if isinstance(value, Node):
            return self._numbered(("node", id(self.visit(value))))
        if isinstance(value, tuple):
            return self._numbered((tuple, tuple(map(self.number, value))))
        if isinstance(value, Expr):
            return self._of_expression(value)
        if isinstance(value, UDM) and not value.deterministic:
            return self._numbered(object())
        if is_dataclass(value) and not isinstance(value, (type, UDM, Forgiving, FieldOf)):
            return self.of_parts(value)
        return self._of_value(value)

    def _of_expression(self, expr: Expr) -> int:
        if id(expr) not in self.visited:
            is_other = isinstance(expr, Constant) and type(expr.value) not in IMMUTABLE
            number = self._numbered(("constant", id(expr.value))) if is_other else self.of_parts(expr)  # type: ignore[attr-defined]
            self.visited[id(expr)] = (expr, number)
        found: int = self.visited[id(expr)][1]
        return found

    def _of_value(self, value: Any) -> int:
        """Return the number of a value; a function is equal only to itself."""
        by_identity = callable(value) and not isinstance(value, (type, UDM, Forgiving, FieldOf))
        if by_identity or not isinstance(value, Hashable):
            self.visited[id(value)] = (value, None)
            return self._numbered(("itself", id(value)))
        return self._numbered((type(value), value, repr(value) if type(value) in IMMUTABLE else None))

    def _numbered(self, key: Hashable) -> int:
        return self.numbers.setdefault(key, len(self.numbers))
