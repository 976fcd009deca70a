"""A filter of a module's results becomes a filter of its members."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from streamdsl.expr.nodes import Constant, Expr, Life, Opaque, reads
from streamdsl.plan.node import AlterLifetime, Node, Select, Shift, Source, Where, WindowApply
from streamdsl.plan.properties import points_only
from streamdsl.rewrite.conditions import cannot_fail, conjunction, conjuncts, forgiving, is_plain, of_members
from streamdsl.rewrite.rule import Mode, Setting
from streamdsl.windows import Hopping


class Moved(NamedTuple):
    """A plan with a filter below its module, and whether nothing of the filter is left to do above."""

    node: Node
    is_done: bool


def push_filter_below_module(node: Node, setting: Setting) -> Node | None:
    """Move a filter on fields that a module's `commutes_with_filter_on` names below its hopping or tumbling windows.

    Lifetimes and ids stay. A condition that can fail stays above too, and below goes one that keeps the rows on which it fails.
    Sessions: only where each push returns what it would return without the rule (see `shows_the_same`). Paper 001, I.A.5.

    Law: `where(p)(apply(M)(w(s))) == apply(M)(w(where(p)(s)))` for hopping windows `w` and a filter `p` that `M` commutes with.

    Before and after:

    >>> from typing import TypedDict
    >>> import streamdsl as sd
    >>> from streamdsl.plan.explain import explain
    >>> class Best(sd.UDO[sd.Record, sd.Record]):
    ...     commutes_with_filter_on = ("zone",)
    ...     def compute_result(self, trips):
    ...         return [max((t for t in trips if t.zone == zone), key=lambda t: t.fare) for zone in {t.zone for t in trips}]
    >>> class Trip(TypedDict):
    ...     zone: str
    ...     fare: int
    >>> trips = sd.source("trips", Trip)
    >>> before = trips.tumbling_window(10).apply(Best).where(lambda e: e.zone == "A")
    >>> print(explain(before.plan(), "reference"))
    where_1 e.zone == 'A' [duration 10]  <denotation>
    └─ window_apply_1 tumbling(10), Best() [duration 10]  <denotation>
       └─ source:trips  (zone, fare)  <denotation>
    >>> after = push_filter_below_module(before.plan(), Setting())
    >>> print(explain(after, "reference"))
    window_apply_1 tumbling(10), Best() [duration 10]  <denotation>
    └─ where_1 e.zone == 'A'  (zone, fare)  <denotation>
       └─ source:trips  (zone, fare)  <denotation>

    Must not fire: over windows whose periods the rows decide, and on a field that the module does not name.

    >>> snapshots = trips.snapshot_window().apply(Best).where(lambda e: e.zone == "A")
    >>> by_fare = trips.tumbling_window(10).apply(Best).where(lambda e: e.fare == 7)
    >>> [push_filter_below_module(query.plan(), Setting()) for query in (snapshots, by_fare)]
    [None, None]
    """
    if not isinstance(node, Where):
        return None
    conditions = conjuncts(node.predicate)
    for condition in conditions:
        moved = _moved(node.input, condition, setting)
        if moved is not None:
            left = [other for other in conditions if not (moved.is_done and other is condition)]
            return replace(node, input=moved.node, predicate=conjunction(left)) if left else moved.node
    return None


def _moved(node: Node, condition: Expr, setting: Setting) -> Moved | None:
    """Return a node's output filtered, the filter below the module, if other filters alone are between."""
    if setting.is_shared(node):
        return None
    if isinstance(node, Where):
        found = _moved(node.input, condition, setting)
        return found and Moved(replace(node, input=found.node), found.is_done)
    if not isinstance(node, WindowApply) or not commutes(node, condition) or not shows_the_same(node, setting.mode):
        return None
    below = of_members(condition, node.argument)
    if below is None:
        return None
    is_done = cannot_fail(below)
    if not is_done:
        below = forgiving(below)
        if below in _filters(node.input):
            return None
    return Moved(replace(node, input=Where(node.input, below)), is_done)


def _filters(node: Node) -> list[Expr]:
    return [node.predicate, *_filters(node.input)] if isinstance(node, Where) else []


def commutes(node: WindowApply, condition: Expr) -> bool:
    """Say whether filtering a module's results by a condition is filtering its members, and leaves the windows as they are."""
    names = reads(condition)
    return (
        isinstance(node.windows, Hopping)
        and node.module.deterministic
        and is_plain(condition)
        and bool(names)
        and set(names or ()) <= set(node.module.commutes_with_filter_on)
    )


def shows_the_same(node: WindowApply, mode: Mode) -> bool:
    """Say whether a session cannot show that some rows no longer reach a window operator.

    They raise its watermark, the largest LE or CTI received, which opens windows. Final results do not depend on it. Nor do point
    events: each opens its windows itself. Nor does an ordered input: its CTI is the largest LE. And rows that may still change
    hold back the CTI of a module that sees ends beyond its window.
    """
    if mode == "run":
        return True
    if node.sees_ends:
        return False
    return mode == "final" or cti_is_largest_start(node.input) or (mode == "speculative" and points_only(node.input))


def cti_is_largest_start(node: Node) -> bool:
    """Say whether the CTI is never behind a row's LE: the source is ordered, and what follows treats both alike."""
    if isinstance(node, Source):
        return node.progress is not None and node.progress.kind == "slack" and node.progress.delay == 0
    if isinstance(node, (Where, Select)):
        keeps = not _reads_lifetime(node.predicate if isinstance(node, Where) else node.projection)
    else:
        keeps = isinstance(node, Shift) or (
            isinstance(node, AlterLifetime) and node.start is None and isinstance(node.duration, Constant)
        )
    return keeps and cti_is_largest_start(node.inputs[0])


def _reads_lifetime(expr: Expr) -> bool:
    return any(isinstance(part, Life) or (isinstance(part, Opaque) and part.life) for part in expr.walk())
