"""The labels of operators in `explain()`, `stats()` and errors: kind and number, in the order of the data flow."""

from __future__ import annotations

from collections import Counter
from types import ModuleType
from typing import Any

from streamdsl.plan.node import NODES, Node, Source
from streamdsl.temporal.identifiers import snake


def labels(plan: Node) -> dict[int, str]:
    """Return the label of each node, by the node's `id()`; bodies of group-applies are numbered before their group-apply.

    >>> from streamdsl.plan.node import shift
    >>> list(labels(shift(Source("trips"), 5)).values())
    ['source:trips', 'shift_1']
    """
    found: dict[int, str] = {}
    # Kinds are numbered apart, as labels are part of result ids, which should not change.
    numbers: Counter[str] = Counter()
    for node in plan.walk_all():
        if isinstance(node, Source):
            found[id(node)] = f"source:{node.source}"
        else:
            kind = snake(node.name)
            numbers[kind] += 1
            found[id(node)] = f"{kind}_{numbers[kind]}"
    return found


def by_name(*families: ModuleType) -> dict[type[Node], Any]:
    """Return the function for each operator, found in these modules by its name in snake case: `group_apply` for `GroupApply`.

    An operator without a function is not in the table.
    """
    named = {name: each for family in families for name, each in vars(family).items() if _is_of(each, family)}
    return {node: named[snake(node.__name__)] for node in NODES if snake(node.__name__) in named}


def _is_of(value: Any, module: ModuleType) -> bool:
    return getattr(value, "__module__", None) == module.__name__
