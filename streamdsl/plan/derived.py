"""Operators that are made of others: outer joins."""

from __future__ import annotations

from streamdsl.expr.nodes import Expr, Make, Whole
from streamdsl.expr.schema import Schema
from streamdsl.expr.sides import swapped, without_row
from streamdsl.plan.node import AntiJoin, Join, Matching, Node, Select, Union

_PAIR = Make(Schema.tuple(2), (Whole(0), Whole(1)))


def left_join(left: Node, right: Node, matching: Matching, projection: Expr | None = None) -> Node:
    """Return the join, and each left row for the time that it has no match, with None for the right one.

    >>> from streamdsl.plan.explain import explain
    >>> from streamdsl.plan.node import Source
    >>> print(explain(left_join(Source("l"), Source("r"), Matching()), "reference"))
    union_1  (_0, _1)  <denotation>
    ├─ join_1  (_0, _1)  <denotation>
    │  ├─ source:l  <denotation>
    │  └─ source:r  <denotation>
    └─ select_1 (e, None)  (_0, _1)  <denotation>
       └─ anti_join_1  <denotation>
          ├─ source:l  <denotation>
          └─ source:r  <denotation>
    """
    return Union(_left_join(left, right, matching, projection))


def full_join(left: Node, right: Node, matching: Matching, projection: Expr | None = None) -> Node:
    """Return the left join, and each right row for the time that it has no match, with None for the left one."""
    alone = AntiJoin(right, left, _swapped(matching))
    return Union((*_left_join(left, right, matching, projection), Select(alone, without_row(projection or _PAIR, 0))))


def _left_join(left: Node, right: Node, matching: Matching, projection: Expr | None) -> tuple[Node, Node]:
    alone = AntiJoin(left, right, matching)
    return Join(left, right, matching, projection), Select(alone, without_row(projection or _PAIR, 1))


def _swapped(matching: Matching) -> Matching:
    where = None if matching.where is None else swapped(matching.where)
    return Matching(matching.right_key, matching.left_key, where)
