"""The temporal algebra: one class per operator, ill-formed plans refused when they are made; `nodes/` has them by family."""

from __future__ import annotations

from streamdsl.plan.base import Node
from streamdsl.plan.nodes.combining import AntiJoin, AsofJoin, ClipBy, Join, Matching, SemiJoin, TwoInputs, Union
from streamdsl.plan.nodes.grouping import GroupApply
from streamdsl.plan.nodes.keyed import Distinct, Match, Scan, Stitch, ToEdges
from streamdsl.plan.nodes.lifetimes import (
    AlterLifetime,
    Chop,
    ClipDuration,
    ClipInterval,
    Extend,
    Quantize,
    Shift,
    ToPointsAtEnd,
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
    "ClipDuration",
    "ClipInterval",
    "Distinct",
    "Extend",
    "Group",
    "GroupApply",
    "Join",
    "Match",
    "Matching",
    "Node",
    "Quantize",
    "Scan",
    "Select",
    "SelectMany",
    "SemiJoin",
    "Shift",
    "Source",
    "Stitch",
    "ToEdges",
    "ToPointsAtEnd",
    "TwoInputs",
    "Union",
    "Where",
    "WindowAggregate",
    "WindowApply",
    "Windowed",
]
