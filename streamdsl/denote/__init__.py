"""The reference meaning: one pure function CHT -> CHT per plan node, slow and obvious; `engine="reference"`.

    CHT(run(plan, events)) == denote(plan, CHT(events))

holds for each engine, order of arrival, batch size and rewrite: this module says what is right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from streamdsl.denote.combine import anti_join, asof_join, clip_by, join, semi_join, union
from streamdsl.denote.group import group, group_apply
from streamdsl.denote.pattern import match
from streamdsl.denote.scope import Scope
from streamdsl.denote.source import history, source, sources
from streamdsl.denote.span import (
    alter_lifetime,
    calendar,
    distinct,
    scan,
    select,
    select_many,
    stitch,
    to_edges,
    where,
)
from streamdsl.denote.windowed import chop, describe, window_aggregate, window_apply
from streamdsl.errors import QueryError
from streamdsl.plan import node as plan_nodes
from streamdsl.plan.labels import labels
from streamdsl.plan.node import Node
from streamdsl.temporal import CHT, INFINITY, Rejections

if TYPE_CHECKING:
    from streamdsl.io.binding import Bound
    from streamdsl.result import Result

__all__ = ["DENOTATIONS", "denote", "describe", "history", "run_reference", "sources"]

DENOTATIONS: Final[Mapping[type[Node], Callable[..., CHT[Any]]]] = {
    plan_nodes.Source: source,
    plan_nodes.Group: group,
    plan_nodes.Where: where,
    plan_nodes.Select: select,
    plan_nodes.SelectMany: select_many,
    plan_nodes.AlterLifetime: alter_lifetime,
    plan_nodes.ToEdges: to_edges,
    plan_nodes.Chop: chop,
    plan_nodes.Calendar: calendar,
    plan_nodes.Scan: scan,
    plan_nodes.Distinct: distinct,
    plan_nodes.Stitch: stitch,
    plan_nodes.Match: match,
    plan_nodes.Union: union,
    plan_nodes.Join: join,
    plan_nodes.AntiJoin: anti_join,
    plan_nodes.SemiJoin: semi_join,
    plan_nodes.AsofJoin: asof_join,
    plan_nodes.ClipBy: clip_by,
    plan_nodes.GroupApply: group_apply,
    plan_nodes.WindowAggregate: window_aggregate,
    plan_nodes.WindowApply: window_apply,
}
"""The meaning of each node: a function of the node, the scope in which it is read, and the CHTs of its inputs."""


def denote(plan: Node, inputs: Mapping[str, CHT[Any]], until: int = INFINITY) -> CHT[Any]:
    """Return the CHT that a plan makes of its sources' CHTs, by name; window operators make only windows with RE <= `until`.

    Raises `UserCodeError` where a lambda or a module raises, `UnboundedOutputError` where there would be infinitely many windows.

    >>> denote(plan_nodes.shift(plan_nodes.Source("s"), 5), {"s": CHT.from_rows([(0, 1, "x")])})
    CHT
      [5, 6) 'x'
    """
    return _denote(plan, Scope(_denote, inputs, until, labels(plan)))


def _denote(plan: Node, scope: Scope) -> CHT[Any]:
    meaning: dict[int, CHT[Any]] = {}
    for node in plan.walk():
        meaning[id(node)] = DENOTATIONS[type(node)](node, scope, *(meaning[id(below)] for below in node.inputs))
    return meaning[id(plan)]


def run_reference(plan: Node, bindings: Mapping[str, Bound], until: int | None = None) -> Result[Any]:
    """Run a plan by its definition: fold the complete input of each source into its CHT, and denote the plan."""
    from streamdsl.result import Result

    inputs: dict[str, CHT[Any]] = {}
    rejected = Rejections()
    for name, node in sources(plan).items():
        if name not in bindings:
            raise QueryError(f"the source {name!r} is bound to nothing; bound are: {', '.join(bindings) or '(none)'}")
        inputs[name] = history(node, bindings[name].events(), bindings[name].unit, rejected)
    cht = denote(plan, inputs, INFINITY if until is None else until)
    return Result.from_cht(cht, cht.unit, rejected)
