"""The denotations of window-based operators: for each non-empty window a module's results (paper 001, II.E, V.A)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from streamdsl.denote.environment import Environment, UserCode, holds, project
from streamdsl.expr.nodes import Whole
from streamdsl.expr.row_evaluator import project_row
from streamdsl.plan.node import Chop, WindowAggregate, WindowApply
from streamdsl.temporal import CHT, INFINITY, CHTRow, Lifetime, Record
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.udm.invoke import EXCLUDED, MemberRow, Stamped, aggregate, guarded, operate, stamp
from streamdsl.windows import Windows


def window_aggregate(node: WindowAggregate, scope: Environment, rows: CHT[Any]) -> CHT[Any]:
    """One row per non-empty window: the projection of its aggregates."""
    return _per_window(node, scope, rows)


def window_apply(node: WindowApply, scope: Environment, rows: CHT[Any]) -> CHT[Any]:
    """Zero or more rows per non-empty window: the module's results, with lifetimes by the output policy."""
    return _per_window(node, scope, rows)


def arguments(node: WindowAggregate | WindowApply, scope: Environment, row: CHTRow[Any]) -> list[Any]:
    """Return what a member gives to each module."""
    if isinstance(node, WindowApply):
        return [project(node, scope, node.argument or Whole(), row)]
    return [EXCLUDED if left_out(node, scope, agg, row) else project(node, scope, agg.given, row) for agg in node.aggregates]


def results(node: WindowAggregate | WindowApply, scope: Environment, window: Lifetime, members: list[MemberRow]) -> list[Stamped]:
    """Return the results of one window. Members are in CHT order, which is `invoke.member_order`."""
    if isinstance(node, WindowApply):
        return operate(node.module, members, window, node.clip, node.output)
    values = {f"a{i}": aggregate(agg.function, i, members, window, node.clip) for i, agg in enumerate(node.aggregates)}
    payload = project_row(node.projection, (Record(values),), window, scope.key)
    return [Stamped(*stamp(window, node.output), payload)]


def chop(node: Chop, scope: Environment, rows: CHT[Any]) -> CHT[Any]:
    """The pieces of each row, one for each cell that it overlaps."""
    pieces = ((row, cell.intersect(life(row))) for row in rows for cell in node.cells.over([life(row)], scope.until))
    return CHT((CHTRow(*piece, row.payload) for row, piece in pieces), rows.unit)


def left_out(node: WindowAggregate, scope: Environment, agg: BoundAgg, row: CHTRow[Any]) -> bool:
    """Say whether an aggregate's `where` excludes a row."""
    return agg.where is not None and not holds(node, scope, agg.where, row)


def describe(windows: Windows, rows: CHT[Any], until: int = INFINITY) -> list[tuple[Lifetime, list[CHTRow[Any]]]]:
    """Return each non-empty window with its members, unclipped; both in order."""
    return windows.divide(rows, until)


def life(row: CHTRow[Any]) -> Lifetime:
    """Return a row's lifetime."""
    return Lifetime(row.le, row.re)


def _per_window(node: WindowAggregate | WindowApply, scope: Environment, rows: CHT[Any]) -> CHT[Any]:
    """Return the rows of all windows."""
    candidates = [MemberRow(*row, arguments(node, scope, row)) for row in rows]

    with UserCode(node, scope):
        divided = node.windows.divide(candidates, scope.until)

    def stamped() -> Iterator[Stamped]:
        for window, members in divided:
            compute = partial(results, node, scope, window, members)
            yield from guarded(scope.label(node), window, compute, [member.payload for member in members])

    return CHT((CHTRow(*row) for row in stamped()), rows.unit)
