"""Common subexpression elimination: equal parts of a plan become one shared part, which runs once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from streamdsl.expr.immutable import IMMUTABLE
from streamdsl.expr.nodes import Constant, Expr
from streamdsl.plan.node import Node, Source
from streamdsl.rewrite.filter_conditions import FieldOf, TrueOnError
from streamdsl.rewrite.rule import RuleContext
from streamdsl.udm.bases import UDM


def share_equals(node: Node, setting: RuleContext) -> Node | None:
    """Share equal parts of the inputs of a union or a join.

    Parts are equal if their operators and expressions are, wherever they are written. Functions are equal only to themselves,
    modules by their `__eq__`, and a module that is not deterministic to none. Lifetimes and CTIs stay; the operators of a kind
    are renumbered, so results of later ones have other ids.

    Law: `op(q(s), q(s)) == (lambda t: op(t, t))(q(s))`.

    Before and after:

    >>> import streamdsl as sd
    >>> def counts():
    ...     return sd.source("trips").tumbling_window(10).aggregate(n=sd.count())
    >>> before = counts().union(counts().shift(10)).plan()
    >>> [node.name for node in before.walk()]
    ['Source', 'WindowAggregate', 'Source', 'WindowAggregate', 'Shift', 'Union']
    >>> [node.name for node in share_equals(before, RuleContext()).walk()]
    ['Source', 'WindowAggregate', 'Shift', 'Union']

    Must not fire: on different functions with the same code, and on modules that are not deterministic.

    >>> class Sampled(sd.UDA[int, int]):
    ...     deterministic = False
    ...     def compute_result(self, values):
    ...         return hash(tuple(values))
    >>> def alike(make):
    ...     return make().union(make().shift(10)).plan()
    >>> opaque = alike(lambda: sd.source("trips").where(lambda e: e.zone in ("A", "B")))
    >>> module = Sampled()
    >>> sampled = alike(lambda: sd.source("trips").tumbling_window(10).aggregate(module))
    >>> [share_equals(plan, RuleContext()) for plan in (opaque, sampled)]
    [None, None]
    """
    if len(node.inputs) < 2:
        return None
    shared = EqualParts().visit(node)
    return shared if _operators(shared) < _operators(node) else None


def with_equal_parts(plan: Node, part: Node, new: Node) -> Node:
    """Return a plan in which `new` replaces `part` and all parts that are equal to it.

    >>> from streamdsl.plan.node import shift
    >>> trips = shift(Source("trips"), 5)
    >>> with_equal_parts(shift(shift(Source("trips"), 5), 2), trips, Source("later")) == shift(Source("later"), 2)
    True
    """
    sharing = EqualParts()
    first = sharing.visit(part)
    while (found := next((node for node in plan.walk_all() if sharing.visit(node) is first), None)) is not None:
        plan = plan.replaced(found, new)
    return plan


def _operators(plan: Node) -> int:
    """Return the number of operators of a plan without sources, which are shared by name when they run."""
    return sum(not isinstance(node, Source) for node in plan.walk())


@dataclass(slots=True)
class EqualParts:
    """A table of representatives by hash-consing: equal values get the same number, and equal nodes the same first node.

    `visited` also keeps each visited object alive, so that no other object gets its `id()`. A visit is linear in the plan's size.
    """

    numbers: dict[Hashable, int] = field(default_factory=dict)
    firsts: dict[int, Node] = field(default_factory=dict)
    visited: dict[int, tuple[object, Any]] = field(default_factory=dict)

    def visit(self, node: Node) -> Node:
        """Return the representative of a node: the first visited node equal to it, over representatives of its inputs."""
        if id(node) not in self.visited:
            over = node.map_inputs(self.visit)
            self.visited[id(node)] = (node, self.firsts.setdefault(self.of_parts(over), over))
        found: Node = self.visited[id(node)][1]
        return found

    def of_parts(self, value: Any) -> int:
        """Return the number of a dataclass by the numbers of its compared fields, which do not include the source line."""
        parts = tuple(self.number(getattr(value, part.name)) for part in fields(value) if part.compare)
        return self._numbered((type(value), parts))

    def number(self, value: Any) -> int:
        """Return the number of a value in a node's field."""
        if isinstance(value, Node):
            return self._numbered(("node", id(self.visit(value))))
        if isinstance(value, tuple):
            return self._numbered((tuple, tuple(map(self.number, value))))
        if isinstance(value, Expr):
            return self._of_expression(value)
        if isinstance(value, UDM) and not value.deterministic:
            return self._numbered(object())
        if is_dataclass(value) and not isinstance(value, (type, UDM, TrueOnError, FieldOf)):
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
        by_identity = callable(value) and not isinstance(value, (type, UDM, TrueOnError, FieldOf))
        if by_identity or not isinstance(value, Hashable):
            self.visited[id(value)] = (value, None)
            return self._numbered(("itself", id(value)))
        return self._numbered((type(value), value, repr(value) if type(value) in IMMUTABLE else None))

    def _numbered(self, key: Hashable) -> int:
        return self.numbers.setdefault(key, len(self.numbers))
