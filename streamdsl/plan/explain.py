"""Plans as text: a tree of operators, each with its expressions, columns, properties, and the implementation that runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from streamdsl.expr.describe import describe
from streamdsl.expr.nodes import is_opaque
from streamdsl.plan.labels import labels
from streamdsl.plan.node import Group, GroupApply, Node
from streamdsl.plan.properties import expressions
from streamdsl.temporal.time import format_duration

RUNS: Final[dict[str, Callable[[Node], Mapping[str, str]]]] = {}
"""By engine name, a function from a plan to the implementation of each operator, by label. Engines register themselves here."""


def explain(plan: Node, engine: str = "local") -> str:
    """Return the plan as a tree, output first, with the implementation of each operator; a shared part is printed only once.

    >>> from streamdsl.plan.node import Source, Union, shift
    >>> shifted = shift(Source("trips"), 5)
    >>> print(explain(Union((shifted, shift(shifted, 5)))))
    union_1  <union (columnar)>
    ├─ shift_1 [LE + 5, RE + 5)  <alter_lifetime (columnar)>
    │  └─ source:trips
    └─ shift_2 [LE + 5, RE + 5)  <alter_lifetime (columnar)>
       └─ shift_1 (above)
    """
    return drawn(plan, RUNS[engine](plan))


def drawn(plan: Node, runs: Mapping[str, str]) -> str:
    """Return the plan as a tree; `runs` has the implementation of each operator, by label.

    >>> from streamdsl.plan.node import Source, shift
    >>> print(drawn(shift(Source("trips"), 5), {"shift_1": "native"}))
    shift_1 [LE + 5, RE + 5)  <native>
    └─ source:trips
    """
    return "\n".join(_lines(plan, labels(plan), runs, set()))


def tree(part: Node, plan: Node) -> str:
    """Return a part of a plan as a tree, with the labels of the whole plan and without implementations.

    >>> from streamdsl.plan.node import Source, shift
    >>> twice = shift(shift(Source("trips"), 5), 7)
    >>> print(tree(twice, twice))
    shift_2 [LE + 7, RE + 7)
    └─ shift_1 [LE + 5, RE + 5)
       └─ source:trips
    """
    return "\n".join(_lines(part, labels(plan), {}, set()))


def _lines(node: Node, names: dict[int, str], runs: Mapping[str, str], shown: set[int]) -> Iterator[str]:
    """Yield the lines of a tree. A shared part is printed once, as the number of paths can be exponential in the plan's size."""
    if id(node) in shown and node.inputs:
        yield f"{names[id(node)]} (above)"
        return
    shown.add(id(node))
    yield _line(node, names, runs)
    for position, child in enumerate(node.below, 1):
        first, rest = ("└─ ", "   ") if position == len(node.below) else ("├─ ", "│  ")
        for line in _lines(child, names, runs, shown):
            yield first + line
            first = rest


def _line(node: Node, names: dict[int, str], runs: Mapping[str, str]) -> str:
    if isinstance(node, Group):
        return f"the rows of one group{_columns(node)}"
    parts = [names[id(node)], node.describe(), *_facts(node)]
    by = runs.get(names[id(node)])
    return " ".join(part for part in parts if part) + _columns(node) + (f"  <{by}>" if by else "")


def _columns(node: Node) -> str:
    return f"  ({', '.join(node.schema.names)})" if node.schema is not None and node.schema.names else ""


def _facts(node: Node) -> list[str]:
    facts = []
    if node.fixed_duration is not None:
        facts.append("[points]" if node.fixed_duration == 1 else f"[duration {format_duration(node.fixed_duration, node.unit)}]")
    if isinstance(node, GroupApply):
        facts.append(f"[grouped by {describe(node.key)}]")
    if _opaque(node):
        facts.append("[opaque]")
    return facts


def _opaque(node: Node) -> bool:
    return any(map(is_opaque, expressions(node))) or any(module.is_opaque for module in node.modules)
