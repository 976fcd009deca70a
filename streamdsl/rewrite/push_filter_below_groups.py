"""Predicate pushdown below group-apply: a filter on the key becomes a filter of the rows that are grouped."""

from __future__ import annotations

from streamdsl.expr.nodes import Attribute, Expr, Field, Key, Whole, reads
from streamdsl.plan.node import Group, GroupApply, Node, WindowAggregate
from streamdsl.rewrite.filter_conditions import cannot_fail, fields_of, is_plain, substituted
from streamdsl.rewrite.pushing import Below, pushed
from streamdsl.rewrite.rule import Mode, RuleContext
from streamdsl.rewrite.session_visibility import shows_the_same


def push_filter_below_groups(node: Node, setting: RuleContext) -> Node | None:
    """Move a condition on the key of groups below `group_by` if it cannot fail: groups are independent of one another.

    Lifetimes and ids stay. All groups share the high water, so in sessions the filter moves only if the windows in the body are
    on a grid and no push can reveal it (see `shows_the_same`); in runs windows may be of any kind.

    Law: `where(p on key)(group_by(k).apply(q)(s)) == group_by(k).apply(q)(where(p after k)(s))`.

    Before and after:

    >>> import streamdsl as sd
    >>> from streamdsl.plan.explain import explain
    >>> counts = sd.source("trips").group_by("zone").session_window(60).aggregate(trips=sd.count())
    >>> before = counts.where(lambda e: e.zone == "A")
    >>> print(explain(before.plan(), "reference"))
    where_1 e.zone == 'A'  (zone, trips)  <denotation>
    └─ group_apply_1 [grouped by e.zone]  (zone, trips)  <denotation>
       ├─ source:trips  <denotation>
       └─ window_aggregate_1 session(60), a0 = count(), -> {trips: e.a0}  (trips)  <denotation>
          └─ the rows of one group
    >>> print(explain(push_filter_below_groups(before.plan(), RuleContext()), "reference"))
    group_apply_1 [grouped by e.zone]  (zone, trips)  <denotation>
    ├─ where_1 e.zone == 'A'  <denotation>
    │  └─ source:trips  <denotation>
    └─ window_aggregate_1 session(60), a0 = count(), -> {trips: e.a0}  (trips)  <denotation>
       └─ the rows of one group

    Must not fire: on fields that the groups compute, on a condition that can fail, and in a session that could reveal it.

    >>> many, later = counts.where(lambda e: e.trips == 7), counts.where(lambda e: e.zone > "A")
    >>> [push_filter_below_groups(query.plan(), RuleContext()) for query in (many, later)]
    [None, None]
    >>> push_filter_below_groups(before.plan(), RuleContext("final"))
    """
    return pushed(node, setting, _below)


def _below(node: Node, condition: Expr, setting: RuleContext) -> Below | None:
    if not isinstance(node, GroupApply) or not is_plain(condition) or not cannot_fail(condition):
        return None
    names, parts = reads(condition), _keys(node)
    if not names or not names <= parts.keys() or not _shows_the_same(node, setting.mode):
        return None
    return Below({0: substituted(condition, parts)}, "keys")


def _keys(node: GroupApply) -> dict[str, Expr]:
    """Return the output fields that are the key or a part of it, each with the row's field that it comes from."""
    projection = node.projection
    if isinstance(projection, Whole) and isinstance(node.body, WindowAggregate):
        projection = node.body.projection
    return {name: key for name, part in fields_of(projection).items() if (key := _of_row(part, node.key)) is not None}


def _of_row(part: Expr, key: Expr) -> Expr | None:
    if isinstance(part, Key):
        return key if isinstance(key, Field) else None
    if isinstance(part, Attribute) and isinstance(part.operand, Key):
        found = fields_of(key).get(part.name)
        return found if isinstance(found, Field) else None
    return None


def _shows_the_same(node: GroupApply, mode: Mode) -> bool:
    """Say whether a session returns the same for the remaining groups if the rows of others are dropped."""
    if mode == "run":
        return True
    inside = list(node.body.walk_all())
    if not all(below.follows_ctis for below in inside):
        return False
    body = node.body
    for group in [below for below in inside if isinstance(below, Group)]:
        body = body.replaced(group, node.input)
    before = {id(below) for below in node.input.walk_all()}
    watching = [below for below in body.walk_all() if below.opens_cells]
    return all(shows_the_same(below, mode) for below in watching if id(below) not in before)
