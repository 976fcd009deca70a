"""Where a plan is cut: what rows pass before they are sent to shards, by which key they are sent, and what shards run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from streamdsl.engine.operators.span import reads_re
from streamdsl.expr.describe import describe
from streamdsl.expr.nodes import Expr, Make
from streamdsl.plan.labels import labels
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
    TwoInputs,
    Where,
)
from streamdsl.plan.properties import expressions

_AFTER: Final = (Where, Select, SelectMany, AlterLifetime, Shift, ClipInterval, ClipDuration, Extend, ToPointsAtEnd, Quantize)
"""Operators that a row passes alone: where it is does not matter."""


@dataclass(frozen=True, slots=True)
class Route:
    """The way of a source's rows to shards: what they pass before they are sent, by which key, and as which source."""

    source: Source
    before: Node
    key: tuple[Expr, ...]
    name: str


@dataclass(frozen=True, slots=True)
class Cut:
    """A plan in two: what rows pass on their way to shards, and what these run; without a key there is one shard."""

    routes: tuple[Route, ...]
    after: Node
    why: str

    @property
    def is_keyed(self) -> bool:
        """Whether rows of different keys may be in different shards."""
        return any(each.key for each in self.routes)

    def __str__(self) -> str:
        return f"shards by {self.why}" if self.is_keyed else f"one shard: {self.why}"


def cut(plan: Node) -> Cut:
    """Return a plan in two: if it is one group-apply or one join by key, but for what rows pass alone, rows are sent by that key.

    >>> import streamdsl as sd
    >>> trips = sd.source("trips")
    >>> print(cut(trips.where(lambda e: e.fare > 5).group_by("venue").tumbling_window(10).aggregate(n=sd.count()).plan()))
    shards by e.venue
    >>> print(cut(trips.tumbling_window(10).aggregate(n=sd.count()).plan()))
    one shard: window_aggregate_1 is outside of any group
    """
    keyed = next((node for node in _down(plan) if not isinstance(node, _AFTER)), plan)
    inputs = _keyed_inputs(keyed)
    if not inputs:
        return _whole(plan, keyed)
    routes: list[Route] = []
    for before, key in inputs:
        source = next((node for node in _down(before) if not _passes_alone(node)), before)
        if not isinstance(source, Source):
            return _whole(plan, source)
        name = f"{source.source}/{len(routes)}" if any(each.name == source.source for each in routes) else source.source
        routes.append(Route(source, before, key, name))
    sources = [replace(each.source, source=each.name, payload=each.before.schema) for each in routes]
    why = ", ".join(describe(part) for part in routes[0].key)
    return Cut(tuple(routes), _with_inputs(plan, keyed, sources), why)


def _keyed_inputs(node: Node) -> list[tuple[Node, tuple[Expr, ...]]]:
    """Return what goes into an operator that keeps rows of different keys apart, with its keys; nothing for any other."""
    if isinstance(node, GroupApply):
        found = [(node.input, _parts(node.key))]
    elif isinstance(node, TwoInputs):
        found = [(node.left, _parts(node.matching.left_key)), (node.right, _parts(node.matching.right_key))]
    else:
        return []
    return found if all(key for _, key in found) else []


def _parts(key: Expr | None) -> tuple[Expr, ...]:
    if key is None:
        return ()
    return key.values if isinstance(key, Make) else (key,)


def _whole(plan: Node, node: Node) -> Cut:
    """Return the plan as one shard runs it: this node is why."""
    named = {each.source: each for each in plan.walk() if isinstance(each, Source)}
    routes = tuple(Route(source, source, (), name) for name, source in named.items())
    if isinstance(node, Source):
        return Cut(routes, plan, "there is no group whose key could tell rows apart")
    return Cut(routes, plan, f"{labels(plan)[id(node)]} is outside of any group")


def _passes_alone(node: Node) -> bool:
    """Say whether rows pass an operator alone, with their lifetimes as they are: none that reads ends, which may change."""
    return isinstance(node, (Where, Select)) and not any(map(reads_re, expressions(node)))


def _down(node: Node) -> Iterator[Node]:
    """Yield a node and what it reads, as long as that is one node."""
    yield node
    while len(node.inputs) == 1:
        (node,) = node.inputs
        yield node


def _with_inputs(node: Node, keyed: Node, sources: Sequence[Source]) -> Node:
    """Return the plan with other rows going into the operator that keeps keys apart."""
    if node is not keyed:
        return node.map_inputs(lambda below: _with_inputs(below, keyed, sources))
    left = iter(sources)
    return node.map_inputs(lambda _: next(left))
