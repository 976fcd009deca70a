"""Columns of DataFrames that a query does not read: they are left out before anything can be refused for their sake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from streamdsl.plan.node import Node, Source
from streamdsl.rewrite import fields_read_of_sources, narrowed
from streamdsl.spark.frame_layout import FrameLayout
from streamdsl.spark.frame_roles import SourceFrame


def without_unread(plan: Node, frames: Mapping[str, SourceFrame]) -> Node:
    """Return a plan whose sources have only those fields of their frames that are read of them.

    Lifetimes and CTIs stay. A source whose payloads are read as a whole keeps all fields, as does one of which no field is read.
    Raises `SchemaError` for duplicate columns and for times without one.
    """
    wanted = fields_read_of_sources(plan)

    def change(node: Node) -> Node:
        if not isinstance(node, Source) or node.source not in frames or node.source not in wanted:
            return node
        layout = FrameLayout.of(node, frames[node.source])
        less = None if layout.missing else narrowed(layout.payload, wanted[node.source])
        return replace(node, payload=less) if less is not None and less.names else node

    return plan.mapped(change)
