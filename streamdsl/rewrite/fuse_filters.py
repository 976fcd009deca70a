"""Filter fusion: two adjacent filters become one."""

from __future__ import annotations

from dataclasses import replace

from streamdsl.expr.nodes import Binary, is_boolean
from streamdsl.plan.node import Node, Where
from streamdsl.rewrite.filter_conditions import cannot_fail, is_plain
from streamdsl.rewrite.rule import RuleContext


def fuse_filters(node: Node, setting: RuleContext) -> Node | None:
    """Fuse two adjacent `where` into one, with the conjunction of their conditions.

    Lifetimes, CTIs and ids stay. `&` evaluates both sides, so the second condition must not be able to fail on rows that the
    first one drops.

    Law: `where(q)(where(p)(s)) == where(p & q)(s)`.

    Before and after:

    >>> import streamdsl as sd
    >>> from streamdsl.plan.explain import explain
    >>> trips = sd.source("trips")
    >>> before = trips.where(lambda e: e.fare > 7).where(lambda e: e.zone == "A")
    >>> print(explain(before.plan(), "reference"))
    where_2 e.zone == 'A'  <denotation>
    └─ where_1 e.fare > 7  <denotation>
       └─ source:trips  <denotation>
    >>> print(explain(fuse_filters(before.plan(), RuleContext()), "reference"))
    where_1 (e.fare > 7) & (e.zone == 'A')  <denotation>
    └─ source:trips  <denotation>

    Must not fire: if the second condition can fail, or if one is not a bool, as `&` is then bitwise.

    >>> guarded = trips.where(lambda e: e.fare != None).where(lambda e: e.fare > 7)
    >>> number = trips.where(lambda e: e.fare).where(lambda e: e.zone == "A")
    >>> [fuse_filters(query.plan(), RuleContext()) for query in (guarded, number)]
    [None, None]
    """
    if not isinstance(node, Where) or not isinstance(node.input, Where) or setting.is_shared(node.input):
        return None
    first, second = node.input.predicate, node.predicate
    if not all(is_plain(part) and is_boolean(part) for part in (first, second)) or not cannot_fail(second):
        return None
    return replace(node, input=node.input.input, predicate=Binary("&", first, second))
