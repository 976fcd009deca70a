"""What may still come: legal continuations of streams, which change all that can be changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from streamdsl.denote import denote
from streamdsl.plan.node import Node
from streamdsl.temporal import CHT, INFINITY, MIN_TIME, CHTRow
from tests.laws.fold import Fold
from tests.laws.harness import rows_without

Continuation: TypeAlias = Callable[[list[CHTRow[Any]], int, int], list[CHTRow[Any]]]
FAR = 100
"""A time after all that the laws' streams have."""


def nothing_more(rows: list[CHTRow[Any]], cti: int, soon: int) -> list[CHTRow[Any]]:
    """Nothing comes, but the ends of rows without one."""
    return rows


def long_rows(rows: list[CHTRow[Any]], cti: int, soon: int) -> list[CHTRow[Any]]:
    """A row like each that is there comes at the CTI, and stays for long."""
    return rows + [CHTRow(soon, FAR, row.payload) for row in rows]


def points(rows: list[CHTRow[Any]], cti: int, soon: int) -> list[CHTRow[Any]]:
    """A point like each row that is there comes at the CTI."""
    return rows + [CHTRow(soon, soon + 1, row.payload) for row in rows]


def early_ends(rows: list[CHTRow[Any]], cti: int, soon: int) -> list[CHTRow[Any]]:
    """Each row that can still end earlier does, or is taken back."""
    return [row._replace(re=max(row.le, min(row.re, cti))) for row in rows]


def late_ends(rows: list[CHTRow[Any]], cti: int, soon: int) -> list[CHTRow[Any]]:
    """Each row that can be taken back is, and of the others each that can end later does."""
    return [row._replace(re=FAR if row.re >= cti else row.re) for row in rows if row.le < cti]


CONTINUATIONS: tuple[Continuation, ...] = (nothing_more, long_rows, points, early_ends, late_ends)


def continued(inputs: Mapping[str, Fold], continuation: Continuation) -> dict[str, CHT[Any]]:
    """Return what inputs mean if all of them go on like that."""
    found = {}
    for name, fold in inputs.items():
        rows = [row._replace(re=min(row.re, FAR)) for row in fold.cht() if row.le < row.re]
        first = min([row.le for row in rows], default=0)
        soon = first if fold.cti == MIN_TIME else fold.cti
        found[name] = CHT(rows if fold.cti == INFINITY else continuation(rows, fold.cti, soon))
    return found


def possible_outputs(plan: Node, inputs: Mapping[str, Fold]) -> Iterator[tuple[str, CHT[Any]]]:
    """Yield what a plan means by the reference for each way in which the inputs may go on."""
    for continuation in CONTINUATIONS:
        yield continuation.__name__, denote(plan, continued(inputs, continuation))


def rows_that_stay(plan: Node, inputs: Mapping[str, Fold]) -> CHT[Any]:
    """Return the rows of the output that are there however the inputs go on."""
    (_, rows), *others = possible_outputs(plan, inputs)
    for _, other in others:
        changed = rows_without(rows, other)
        rows = CHT(rows_without(rows, CHT(changed)))
    return rows
