"""Where a plan is cut: what rows pass before they are sent to shards, by which key they are sent, and what shards run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from streamdsl.expr.describe import describe
from streamdsl.expr.nodes import Expr, Make
from streamdsl.plan.node import (
    AlterLifetime,
    ClipDuration,
    ClipInterval,
    Extend,
    GroupApply,
    Node,
    Quantize,
    Select,
    SelectMany,
    Shift,
    Source,
    ToPointsAtEnd,
    Where,
)

_BEFORE: Final = (Where, Select)
"""Operators that a row passes alone, with its lifetime as it is: they run where rows are, before these are sent."""
_AFTER: Final = (*_BEFORE, SelectMany, AlterLifetime, Shift, ClipInterval, ClipDuration, Extend, ToPointsAtEnd, Quantize)
"""Operators that a row passes alone: where it is does not matter."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A plan in two: `before` for rows on their way (None: nothing), `after` for shards, of which there is one without a key."""

    before: Node | None
    key: tuple[Expr, ...]
    after: Node
    why: str

    @property
    def is_keyed(self) -> bool:
        """Whether rows of different keys may be in different shards."""
        return bool(self.key)

    def __str__(self) -> str:
        return f"shards by {self.why}" if self.is_keyed else f"one shard: {self.why}"


def cut(plan: Node) -> Cut:
    """Return a plan in two: if it is a group-apply, but for what rows pass alone, rows are sent by its key.

    >>> import streamdsl as sd
    >>> trips = sd.source("trips")
    >>> print(cut(trips.where(lambda e: e.fare > 5).group_by("venue").tumbling_window(10).aggregate(n=sd.count()).plan()))
    shards by e.venue
    >>> print(cut(trips.tumbling_window(10).aggregate(n=sd.count()).plan()))
    one shard: window_aggregate_1 is outside of any group
    """
    apply = next((node for node in _down(plan) if not isinstance(node, _AFTER)), plan)
    if not isinstance(apply, GroupApply):
        return Cut(None, (), plan, _outside(plan, apply))
    before = apply.input
    source = next((node for node in _down(before) if not isinstance(node, _BEFORE)), before)
    if not isinstance(source, Source):
        return Cut(None, (), plan, _outside(plan, source))
    key = (apply.key.values or ()) if isinstance(apply.key, Make) else (apply.key,)
    if not key:
        return Cut(None, (), plan, "the group's key has no parts")
    sent = replace(source, payload=before.schema, progress=None)
    return Cut(before, key, _with_input(plan, apply, sent), ", ".join(map(describe, key)))


def _down(node: Node) -> Iterator[Node]:
    """Yield a node and what it reads, as long as that is one node."""
    yield node
    while len(node.inputs) == 1:
        (node,) = node.inputs
        yield node


def _outside(plan: Node, node: Node) -> str:
    from streamdsl.plan.labels import labels

    if isinstance(node, Source):
        return "there is no group whose key could tell rows apart"
    return f"{labels(plan)[id(node)]} is outside of any group"


def _with_input(node: Node, apply: GroupApply, sent: Source) -> Node:
    """Return the plan with other rows going into the groups."""
    return replace(node, input=sent) if node is apply else node.map_inputs(lambda below: _with_input(below, apply, sent))
