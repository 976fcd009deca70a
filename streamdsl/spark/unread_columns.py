"""What a query reads of its frames: a field that a frame lacks is refused, a column that is not read is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from streamdsl.errors import FieldNotFound
from streamdsl.plan.facts import NO_FIELDS, Fields, fields_read
from streamdsl.plan.node import Group, GroupApply, Node, Source
from streamdsl.rewrite import fields_read_of_sources, narrowed
from streamdsl.spark.frame_layout import FrameLayout
from streamdsl.spark.frame_roles import SourceFrame


def without_unread(plan: Node, frames: Mapping[str, SourceFrame]) -> Node:
    """Return a plan whose sources have only those fields of their frames that are read of them.

    Lifetimes and CTIs stay. A source whose payloads are read as a whole keeps all fields, as does one of which no field is read.
    Raises `SchemaError` for duplicate columns and for times without one, and `FieldNotFound` for a field that a frame lacks.
    """
    wanted = fields_read_of_sources(plan)
    _check_fields(plan, frames)

    def change(node: Node) -> Node:
        if not isinstance(node, Source) or node.source not in frames or node.source not in wanted:
            return node
        layout = FrameLayout.of(node, frames[node.source])
        less = None if layout.missing else narrowed(layout.payload, wanted[node.source])
        return replace(node, payload=less) if less is not None and less.names else node

    return plan.mapped(change)


def _check_fields(plan: Node, frames: Mapping[str, SourceFrame]) -> None:
    """Raise `FieldNotFound` for a field that an operator reads, and the rows that it reads do not have."""

    def known(node: Node) -> Node:
        if isinstance(node, Source) and node.source in frames:
            return replace(node, payload=FrameLayout.of(node, frames[node.source]).payload)
        return _of_groups(node) if isinstance(node, GroupApply) else node

    def _of_groups(node: GroupApply) -> Node:
        def inside(each: Node) -> Node:
            if isinstance(each, Group) and each.level == node.input.level + 1:
                return replace(each, payload=node.input.schema)
            return known(each)

        return replace(node, body=node.body.mapped(inside))

    for node in plan.mapped(known).walk_all():
        for position, below in enumerate(node.inputs):
            _check(node.fields_needed(position, NO_FIELDS), below)
        if isinstance(node, GroupApply):
            _check(fields_read([node.projection]), node.body)


def _check(read: Fields, node: Node) -> None:
    names = () if node.schema is None else node.schema.names
    for name in sorted(read or ()):
        if names and name not in names:
            raise FieldNotFound(name, names)
