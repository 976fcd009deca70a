"""The denotations of window-based operators: for each non-empty window a module's results (paper 001, II.E, V.A)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from streamdsl.denote.environment import Environment, UserCode, holds, project
from streamdsl.expr.nodes import Whole
from streamdsl.expr.row_evaluator import project_row
from streamdsl.plan.node import Chop, WindowAggregate, WindowApply, Windowed
from streamdsl.temporal import CHT, INFINITY, CHTRow, Lifetime, Record
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.udm.invoke import EXCLUDED, MemberRow, Stamped, aggregate, guarded, operate, stamp
from streamdsl.windows import Windows


def window_aggregate(node: WindowAggregate, scope: Environment, rows: CHT[Any]) -> CHT[Any]:
    """One row per non-empty window: the projection of its aggregates."""

    def arguments(row: CHTRow[Any]) -> list[Any]:
        return [EXCLUDED if left_out(node, scope, agg, row) else project(node, scope, agg.given, row) for agg in node.aggregates]

    def result(window: Lifetime, members: list[MemberRow]) -> list[Stamped]:
        values = {f"a{i}": aggregate(agg.function, i, members, window, node.clip) for i, agg in enumerate(node.aggregates)}
        payload = project_row(node.projection, (Record(values),), window, scope.key)
        return [Stamped(*stamp(window, node.output), payload)]

    return _per_window(node, scope, rows, arguments, result)


def window_apply(node: WindowApply, scope: Environment, rows: CHT[Any]) -> CHT[Any]:
    """Zero or more rows per non-empty window: the module's results, with lifetimes by the output policy."""

    def arguments(row: CHTRow[Any]) -> list[Any]:
        return [project(node, scope, node.argument or Whole(), row)]

    def results(window: Lifetime, members: list[MemberRow]) -> list[Stamped]:
        return operate(node.module, members, window, node.clip, node.output)

    return _per_window(node, scope, rows, arguments, results)


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


def _per_window(
    node: Windowed,
    scope: Environment,
    rows: CHT[Any],
    arguments: Callable[[CHTRow[Any]], list[Any]],
    results: Callable[[Lifetime, list[MemberRow]], list[Stamped]],
) -> CHT[Any]:
    """Return the rows of all windows. Members are in CHT order, which is `invoke.member_order`."""
    candidates = [MemberRow(*row, arguments(row)) for row in rows]

    with UserCode(node, scope):
        divided = node.windows.divide(candidates, scope.until)

    def stamped() -> Iterator[Stamped]:
        for window, members in divided:
            yield from guarded(scope.label(node), window, partial(results, window, members))

    return CHT((CHTRow(*row) for row in stamped()), rows.unit)
