"""The denotations of operators over several inputs (semantics, section 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from streamdsl.denote.environment import Environment, holds, key_of, project
from streamdsl.denote.windowed import life
from streamdsl.expr.sides import PAIR, without_row
from streamdsl.plan.node import AntiJoin, AsofJoin, ClipBy, Join, SemiJoin, TwoInputs, Union
from streamdsl.temporal import CHT, CHTRow, Unit, common_unit, merge, payload_order, subtract


def union(node: Union, scope: Environment, *parts: CHT[Any]) -> CHT[Any]:
    """All rows of all inputs, as a bag."""
    return CHT((row for rows in parts for row in rows), unit_of(*parts))


def join(node: Join, scope: Environment, left: CHT[Any], right: CHT[Any]) -> CHT[Any]:
    """Every matching pair, for the time that both live."""

    def payload(a: CHTRow[Any], b: CHTRow[Any]) -> Any:
        return (a.payload, b.payload) if node.projection is None else project(node, scope, node.projection, a, b)

    pairs = ((a, b) for a, matching in matches(node, scope, left, right, overlap) for b in matching)
    return CHT((CHTRow(*life(a).intersect(life(b)), payload(a, b)) for a, b in pairs), unit_of(left, right))


def anti_join(node: AntiJoin, scope: Environment, left: CHT[Any], right: CHT[Any]) -> CHT[Any]:
    """Each left row for the time that no matching right row lives, as maximal pieces."""
    pieces = (
        (a, piece)
        for a, matching in matches(node, scope, left, right, overlap)
        for piece in subtract(life(a), map(life, matching))
    )
    return CHT((CHTRow(*piece, a.payload) for a, piece in pieces), unit_of(left, right))


def semi_join(node: SemiJoin, scope: Environment, left: CHT[Any], right: CHT[Any]) -> CHT[Any]:
    """Each left row for the time that some matching right row lives, as maximal pieces."""
    pieces = (
        (a, piece)
        for a, matching in matches(node, scope, left, right, overlap)
        for piece in merge(life(a).intersect(life(b)) for b in matching)
    )
    return CHT((CHTRow(*piece, a.payload) for a, piece in pieces), unit_of(left, right))


def asof_join(node: AsofJoin, scope: Environment, left: CHT[Any], right: CHT[Any]) -> CHT[Any]:
    """Each left row, with its own lifetime, and each matching right row with the nearest LE, or of ties the last by payload."""

    def in_reach(a: CHTRow[Any], b: CHTRow[Any]) -> bool:
        return node.near.of(a.le, b.le) is not None

    pair = node.projection or PAIR
    rows = []
    for a, matching in matches(node, scope, left, right, in_reach):
        nearest = min((node.near.of(a.le, b.le) or (0, False) for b in matching), default=None)
        met = [b for b in matching if node.near.of(a.le, b.le) == nearest]
        if node.ties == "last" and met:
            met = [max(met, key=lambda b: payload_order(b.payload))]
        rows += [a._replace(payload=project(node, scope, pair, a, b)) for b in met]
        if not met and node.outer:
            rows.append(a._replace(payload=project(node, scope, without_row(pair, 1), a)))
    return CHT(rows, unit_of(left, right))


def clip_by(node: ClipBy, scope: Environment, left: CHT[Any], right: CHT[Any]) -> CHT[Any]:
    """Each left row, ended at the first matching right LE strictly after its own LE."""
    cut = matches(node, scope, left, right, starts_inside)
    return CHT((a._replace(re=min([a.re, *(b.le for b in matching)])) for a, matching in cut), unit_of(left, right))


def matches(
    node: TwoInputs, scope: Environment, left: CHT[Any], right: CHT[Any], meet: Callable[[CHTRow[Any], CHTRow[Any]], bool]
) -> Iterator[tuple[CHTRow[Any], list[CHTRow[Any]]]]:
    """Yield each left row with the right rows that satisfy `meet`, have an equal key, and satisfy the residual predicate."""
    where = node.matching.where
    keyed = [(key_of(node, scope, node.matching.right_key, b), b) for b in right]
    for a in left:
        key = key_of(node, scope, node.matching.left_key, a)
        met = [b for other, b in keyed if other == key and meet(a, b)]
        yield a, [b for b in met if where is None or holds(node, scope, where, a, b)]


def overlap(a: CHTRow[Any], b: CHTRow[Any]) -> bool:
    """Say whether both rows live at some instant."""
    return life(a).overlaps(life(b))


def starts_inside(a: CHTRow[Any], b: CHTRow[Any]) -> bool:
    """Say whether `b` starts strictly inside the lifetime of `a`."""
    return a.le < b.le < a.re


def unit_of(*inputs: CHT[Any]) -> Unit | None:
    """Return the one unit of all inputs, or raise `UnitError`."""
    return common_unit(*(rows.unit for rows in inputs))
