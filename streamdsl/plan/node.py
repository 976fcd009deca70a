"""The temporal algebra: one class per operator, ill-formed plans refused when they are made; `nodes/` has them by family."""

from __future__ import annotations

from streamdsl.plan.base import Node
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
from streamdsl.plan.nodes.rows import Select, SelectMany, Where
from streamdsl.plan.nodes.sources import Calendar, Group, Source
from streamdsl.plan.nodes.windowed import WindowAggregate, WindowApply, Windowed

__all__ = [
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
    "to_points_at_end",
]
