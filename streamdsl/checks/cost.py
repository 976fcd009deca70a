"""Checks of running time: Python per row or window, cross joins, and filters that stay above a module."""

from __future__ import annotations

from collections.abc import Iterator

from streamdsl.checks.finding import Finding
from streamdsl.checks.plans import PlanView
from streamdsl.expr.describe import describe
from streamdsl.expr.nodes import Opaque, reads
from streamdsl.plan.node import Join, Matching, Node, Where, WindowApply
from streamdsl.plan.properties import expressions
from streamdsl.rewrite.filter_conditions import conjuncts, is_plain

WRITE_EXPRESSIONS = (
    "write & | sd.not_ for and or not, sd.when(c).then(a).otherwise(b) for if; put other code into a function under @sd.udf"
)


def opaque_lambdas(node: Node, plan: PlanView) -> Iterator[Finding]:
    """Find lambdas that could not be traced, and so run as Python for each row or window."""
    if any(isinstance(part, Opaque) for expr in expressions(node) for part in expr.walk()):
        yield plan.finding(
            node, "note", "calls its lambda row by row: it could not be traced to an expression", WRITE_EXPRESSIONS
        )
    if any(module.is_opaque for module in node.modules):
        what = "calls its window lambda for every window: it could not be traced to aggregates"
        yield plan.finding(node, "note", what, WRITE_EXPRESSIONS)


def every_row_with_every_other(node: Node, plan: PlanView) -> Iterator[Finding]:
    """Find joins without a match condition, unless one side has at most one row at a time, which makes them cheap."""
    if isinstance(node, Join) and node.matching == Matching() and not any(each.one_at_a_time for each in node.inputs):
        what = "is a cross join: it pairs every left row with every right row that lives at the same time"
        yield plan.finding(
            node, "note", what, 'give on="field", or on=(lambda l: ..., lambda r: ...), if only some belong together'
        )


def filters_above_modules(node: Node, plan: PlanView) -> Iterator[Finding]:
    """Find filters that would be pushed below a module if it declared that it commutes with them."""
    if not isinstance(node, Where):
        return
    below = node.input
    while isinstance(below, Where):
        below = below.input
    if not isinstance(below, WindowApply) or not below.windows.by_clock or not below.module.deterministic:
        return
    promised = set(below.module.commutes_with_filter_on)
    for condition in conjuncts(node.predicate):
        names = reads(condition)
        if names and is_plain(condition) and not names <= promised:
            fields = ", ".join(map(repr, sorted(names | promised)))
            yield plan.finding(
                node,
                "note",
                f"filters what {below.module.label} has made: {describe(condition)} stays above the module",
                f"filter before the window; or, if that gives the same, promise it: commutes_with_filter_on = ({fields},)",
            )
