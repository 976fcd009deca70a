"""Shared panes: several windows over the same points are computed from panes, which are computed once."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from streamdsl.expr.annotations import declared_type
from streamdsl.expr.nodes import Binary, Constant, Expr, Field, Make, Unary, reads
from streamdsl.plan.node import Group, GroupApply, Node, Select, WindowAggregate
from streamdsl.rewrite.filter_conditions import made_of
from streamdsl.rewrite.panes import Panes
from streamdsl.rewrite.rule import RuleContext
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.udm.builtin import Avg, Count, Max, Min, Sum
from streamdsl.windows import Hopping


def share_panes(node: Node, setting: RuleContext) -> Node | None:
    """Compute hopping windows over the same points from panes: tumbling windows of the smallest hop among them.

    The rule fires at the root of a plan, for windows anywhere in it: at least two, over the same rows or in groups by the same
    key. Sizes, hops and offsets must be multiples of the hop of one of them, so that there are no more panes than results of that
    window. Counts can be added; sums and means only if the payload's class declares integers, as sums of floats would be rounded
    more than once. Minima and maxima can fail, so the window with the smallest hop must have them too. Lifetimes stay. Sessions
    run the plan as written: corrections of panes cost what sharing saves.

    Law: `sum(w(n(panes(s)))) == n(w(s))` for a count `n` of points, and each window of `w` made of whole panes.

    Before and after:

    >>> import streamdsl as sd
    >>> from streamdsl.plan.explain import explain
    >>> trips = sd.source("trips").to_points()
    >>> minutes, hours = (trips.tumbling_window(size).aggregate(n=sd.count()) for size in (60, 3600))
    >>> before = minutes.union(hours).plan()
    >>> print(explain(before, "reference"))
    union_1  (n)  <denotation>
    ├─ window_aggregate_1 tumbling(60), a0 = count(), -> {n: e.a0} [duration 60]  (n)  <denotation>
    │  └─ alter_lifetime_1 [LE, LE + 1) [points]  <denotation>
    │     └─ source:trips  <denotation>
    └─ window_aggregate_2 tumbling(3600), a0 = count(), -> {n: e.a0} [duration 3600]  (n)  <denotation>
       └─ alter_lifetime_1 (above)
    >>> print(explain(share_panes(before, RuleContext.of(before, "run")), "reference"))
    union_1  (n)  <denotation>
    ├─ select_1 {n: e.p0} [duration 60]  (n)  <denotation>
    │  └─ window_aggregate_1 tumbling(60), a0 = count(), -> {p0: e.a0} [duration 60]  (p0)  <denotation>
    │     └─ alter_lifetime_1 [LE, LE + 1) [points]  <denotation>
    │        └─ source:trips  <denotation>
    └─ window_aggregate_2 tumbling(3600), a0 = sum(e.p0), -> {n: e.a0} [duration 3600]  (n)  <denotation>
       └─ window_aggregate_1 (above)

    Must not fire: on events that may overlap several panes, on windows that do not consist of whole panes, and on sums of values
    that may be floats.

    >>> def both(stream, sizes, agg):
    ...     first, second = (stream.tumbling_window(size).aggregate(x=agg) for size in sizes)
    ...     return first.union(second).plan()
    >>> calls = both(sd.source("calls"), (60, 3600), sd.count())
    >>> apart = both(trips, (60, 90), sd.count())
    >>> sums = both(trips, (60, 3600), sd.sum(lambda e: e.fare))
    >>> [share_panes(plan, RuleContext.of(plan, "run")) for plan in (calls, apart, sums)]
    [None, None, None]
    """
    if node is not setting.plan or setting.mode != "run" or setting.engine != "local":
        return None
    for family in _families(node):
        for least in sorted(family, key=lambda member: member.grid.hop):
            panes = Hopping(least.grid.hop, least.grid.hop, least.grid.offset % least.grid.hop)
            members = [other for other in family if _is_made_of(other.grid, panes) and _fails_less(other, least)]
            if len(members) > 1:
                return _from_panes(node, members, panes)
    return None


@dataclass(frozen=True, slots=True)
class _Member:
    """A window operator over points: the node with its results, and the window, which is that node or a group-apply's body."""

    node: WindowAggregate | GroupApply
    window: WindowAggregate
    grid: Hopping

    @property
    def key(self) -> Expr | None:
        """The key of the group-apply, None if the window is over all rows."""
        return self.node.key if isinstance(self.node, GroupApply) else None


def _families(plan: Node) -> list[list[_Member]]:
    """Return the windows over points that can be computed from panes, grouped by input and key."""
    found: dict[tuple[int, Expr | None], dict[int, _Member]] = {}
    for node in plan.walk_all():
        member = _member(node)
        if member is not None:
            found.setdefault((id(member.node.input), member.key), {})[id(node)] = member
    return [list(family.values()) for family in found.values()]


def _member(node: Node) -> _Member | None:
    window = node.body if isinstance(node, GroupApply) and _is_plain(node.key) else node
    if not isinstance(node, (GroupApply, WindowAggregate)) or not isinstance(window, WindowAggregate):
        return None
    if node.input.fixed_duration != 1 or (node is not window and not isinstance(window.input, Group)):
        return None
    grid = window.windows
    if not isinstance(grid, Hopping) or grid.hop > grid.size or reads(window.projection) is None:
        return None
    return _Member(node, window, grid) if all(_adds_up(agg, node.input) for agg in window.aggregates) else None


def _is_plain(key: Expr) -> bool:
    """Say whether a key consists of fields alone, so that equal expressions give equal keys."""
    return all(isinstance(part, (Field, Make)) for part in key.walk())


def _adds_up(agg: BoundAgg, rows: Node) -> bool:
    """Say whether an aggregate of rows can be computed exactly from the aggregates of their panes."""
    kind = type(agg.function)
    return kind in (Count, Min, Max) or (kind in (Sum, Avg) and _is_integer(agg.given, rows))


def _is_integer(expr: Expr, node: Node) -> bool:
    """Say whether the payload classes declare that an expression over a node's rows is an integer or None."""
    if isinstance(expr, Constant):
        return type(expr.value) is int
    if isinstance(expr, Binary):
        return expr.op in ("+", "-", "*") and _is_integer(expr.left, node) and _is_integer(expr.right, node)
    if isinstance(expr, Unary):
        return expr.op == "-" and _is_integer(expr.operand, node)
    return isinstance(expr, Field) and _holds_integers(expr, node)


def _holds_integers(field: Field, node: Node) -> bool:
    if node.passes_payload:
        return all(_holds_integers(field, below) for below in node.inputs)
    part = made_of(node.projection).get(field.name) if isinstance(node, Select) else field
    if isinstance(part, Field) and node.schema is not None and declared_type(node.schema.cls, field.name) is int:
        return True
    return isinstance(node, Select) and part is not None and _is_integer(part, node.input)


def _is_made_of(grid: Hopping, panes: Hopping) -> bool:
    """Say whether windows consist of whole panes.

    >>> _is_made_of(Hopping(20, 10, 5), Hopping(5, 5)), _is_made_of(Hopping(20, 10, 3), Hopping(5, 5))
    (True, False)
    """
    return gcd(grid.size, grid.hop, grid.offset - panes.offset, panes.hop) == panes.hop


def _fails_less(member: _Member, least: _Member) -> bool:
    """Say whether panes fail only if the window with the smallest hop fails too: it has all minima and maxima of the other.

    A bounded run may compute a pane of a large window, and fail on it, without reaching the end of the large window.
    """
    return all(agg in least.window.aggregates for agg in member.window.aggregates if isinstance(agg.function, (Max, Min)))


def _from_panes(plan: Node, members: list[_Member], grid: Hopping) -> Node:
    """Return a plan in which these windows are computed from the panes of a grid."""
    panes = Panes.over(members[0].node, members[0].window, grid, [agg for each in members for agg in each.window.aggregates])
    for member in members:
        plan = plan.replaced(member.node, panes.results(member.node, member.window))
    return plan
