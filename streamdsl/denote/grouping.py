"""The denotation of group-apply: the body, evaluated for each group separately."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from streamdsl.denote.environment import Environment, key_of, project
from streamdsl.plan.node import Group, GroupApply
from streamdsl.temporal import CHT, CHTRow


def group(node: Group, scope: Environment) -> CHT[Any]:
    """The rows of the enclosing group."""
    return scope.groups[node.level]


def group_apply(node: GroupApply, scope: Environment, rows: CHT[Any]) -> CHT[Any]:
    """The body's rows for each group, with payloads projected from the group's key and the body's payload."""
    level = node.input.level + 1

    def results() -> Iterator[CHTRow[Any]]:
        for members in groups(node, scope, rows):
            inside = scope.inside(level, project(node, scope, node.key, members[0]), CHT(members, rows.unit))
            for row in scope.denote(node.body, inside):
                yield row._replace(payload=project(node, inside, node.projection, row))

    return CHT(results(), rows.unit)


def groups(node: GroupApply, scope: Environment, rows: CHT[Any]) -> list[list[CHTRow[Any]]]:
    """Return the rows of each key, in CHT order. Of equal keys, such as 1 and 1.0, results have that of the group's first row."""
    found: dict[Hashable, list[CHTRow[Any]]] = {}
    for row in rows:
        found.setdefault(key_of(node, scope, node.key, row), []).append(row)
    return list(found.values())
