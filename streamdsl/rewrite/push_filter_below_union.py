"""Predicate pushdown below unions: a filter of a union becomes a filter of each of its inputs."""

from __future__ import annotations

from streamdsl.expr.nodes import Expr
from streamdsl.plan.node import Node, Union
from streamdsl.rewrite.pushing import Below, pushed
from streamdsl.rewrite.rule import RuleContext


def push_filter_below_union(node: Node, setting: RuleContext) -> Node | None:
    """Move a filter below a `union`, to all of its inputs.

    Lifetimes, CTIs and ids stay, as each row still comes from the input of the same number. All conditions move, even opaque ones
    and those that read the lifetime: they are evaluated on the same rows.

    Law: `where(p)(union(s, t)) == union(where(p)(s), where(p)(t))`.

    Before and after:

    >>> import streamdsl as sd
    >>> from streamdsl.plan.explain import explain
    >>> before = sd.source("yellow").union(sd.source("green")).where(lambda e: e.fare > 7)
    >>> print(explain(before.plan(), "reference"))
    where_1 e.fare > 7  <denotation>
    └─ union_1  <denotation>
       ├─ source:yellow  <denotation>
       └─ source:green  <denotation>
    >>> print(explain(push_filter_below_union(before.plan(), RuleContext()), "reference"))
    union_1  <denotation>
    ├─ where_1 e.fare > 7  <denotation>
    │  └─ source:yellow  <denotation>
    └─ where_2 e.fare > 7  <denotation>
       └─ source:green  <denotation>

    Must not fire: if the union has another reader, as it would then run twice.

    >>> union = sd.source("yellow").union(sd.source("green"))
    >>> both = union.where(lambda e: e.fare > 7).union(union)
    >>> push_filter_below_union(both.plan().parts[0], RuleContext.of(both.plan(), "run"))
    """
    return pushed(node, setting, _below)


def _below(node: Node, condition: Expr, setting: RuleContext) -> Below | None:
    return Below(dict.fromkeys(range(len(node.parts)), condition), "the same rows") if isinstance(node, Union) else None
