"""The temporal algebra: one class per operator, defined in `nodes/`; constructors refuse ill-formed plans."""

from __future__ import annotations

from typing import Final

from streamdsl.plan.base import Node
from streamdsl.plan.nodes import combining, grouping, keyed, lifetimes, origins, rows, windowed
from streamdsl.plan.nodes.combining import AntiJoin, AsofJoin, ClipBy, Join, Matching, SemiJoin, TwoInputs, Union
from streamdsl.plan.nodes.grouping import GroupApply
from streamdsl.plan.nodes.keyed import Distinct, Match, Scan, Stitch, ToEdges
from streamdsl.plan.nodes.lifetimes import (
    AlterLifetime,
    Chop,
    alter_duration,
    alter_lifetime,
    clip_duration,
    clip_interval,
    extend,
    quantize,
    shift,
    to_points_at_end,
)
from streamdsl.plan.nodes.origins import Calendar, Group, Source, sources
from streamdsl.plan.nodes.rows import Select, SelectMany, Where
from streamdsl.plan.nodes.windowed import WindowAggregate, WindowApply, Windowed

__all__ = [
    "NODES",
    "AlterLifetime",
    "AntiJoin",
    "AsofJoin",
    "Calendar",
    "Chop",
    "ClipBy",
    "Distinct",
    "Group",
    "GroupApply",
    "Join",
    "Match",
    "Matching",
    "Node",
    "Scan",
    "Select",
    "SelectMany",
    "SemiJoin",
    "Source",
    "Stitch",
    "ToEdges",
    "TwoInputs",
    "Union",
    "Where",
    "WindowAggregate",
    "WindowApply",
    "Windowed",
    "alter_duration",
    "alter_lifetime",
    "clip_duration",
    "clip_interval",
    "extend",
    "quantize",
    "shift",
    "sources",
    "to_points_at_end",
]

_CLASSES: Final[list[type[Node]]] = [
    each
    for family in (origins, rows, lifetimes, keyed, combining, grouping, windowed)
    for each in vars(family).values()
    if isinstance(each, type) and issubclass(each, Node) and each.__module__ == family.__name__
]
NODES: Final = tuple(each for each in _CLASSES if not any(issubclass(other, each) for other in _CLASSES if other is not each))
"""The operators of the algebra. `labels.by_name` finds the denotation, the engine operator and the lowering of each."""
