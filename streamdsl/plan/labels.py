"""The names of operators in `explain()`, `stats()` and errors: kind and number, in the order in which data passes them."""

from __future__ import annotations

import re
from functools import cache

from streamdsl.plan.node import GroupApply, Node, Source


def labels(plan: Node) -> dict[int, str]:
    """Return the label of each node, by the node's `id()`; bodies of group-applies are numbered before their group-apply.

    >>> from streamdsl.plan.node import shift
    >>> list(labels(shift(Source("trips"), 5)).values())
    ['source:trips', 'shift_1']
    """
    found: dict[int, str] = {}
    numbered(plan, found)
    return found


def numbered(plan: Node, found: dict[int, str]) -> None:
    """Add the labels of a plan's nodes to those found already."""
    for node in plan.walk():
        if isinstance(node, GroupApply):
            numbered(node.body, found)
        if id(node) not in found:
            found[id(node)] = f"source:{node.source}" if isinstance(node, Source) else _next(_snake(node.name), found)


def _next(kind: str, found: dict[int, str]) -> str:
    """Return the next label of a kind. An operator more of another kind changes no label, and so no id of a result."""
    return f"{kind}_{1 + sum(label.rpartition('_')[0] == kind for label in found.values())}"


@cache
def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
