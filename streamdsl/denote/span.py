"""What the operators over one input mean: each row by itself, but for `to_edges`, `distinct` and `stitch` (paper 001, II.D.1)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

from streamdsl.denote.scope import Scope, UserCode, holds, key_of, project, value
from streamdsl.errors import TimeOverflow, UnitError, shortened
from streamdsl.expr.nodes import Expr
from streamdsl.expr.schema import as_payload
from streamdsl.plan.node import (
    AlterLifetime,
    Calendar,
    ClipDuration,
    ClipInterval,
    Distinct,
    Extend,
    Quantize,
    Scan,
    Select,
    SelectMany,
    Shift,
    Stitch,
    ToEdges,
    ToPointsAtEnd,
    Where,
)
from streamdsl.temporal import (
    CHRONON,
    CHT,
    INFINITY,
    CHTRow,
    Lifetime,
    Unit,
    add_time,
    merge,
    payload_key,
    payload_order,
    to_duration,
    to_ticks,
)
from streamdsl.udm.stream_operator import processed


def where(node: Where, scope: Scope, rows: CHT[Any]) -> CHT[Any]:
    """The rows for which the predicate holds."""
    return CHT((row for row in rows if holds(node, scope, node.predicate, row)), rows.unit)


def select(node: Select, scope: Scope, rows: CHT[Any]) -> CHT[Any]:
    """Each row with the payload that the projection makes."""
    return CHT((row._replace(payload=project(node, scope, node.projection, row)) for row in rows), rows.unit)


def select_many(node: SelectMany, scope: Scope, rows: CHT[Any]) -> CHT[Any]:
    """For each row one row per item."""

    def items(row: CHTRow[Any]) -> list[Any]:
        with UserCode(node, scope, row):
            return [as_payload(item) for item in value(node, scope, node.items, row)]

    return CHT((row._replace(payload=item) for row in rows for item in items(row)), rows.unit)


def alter_lifetime(node: AlterLifetime, scope: Scope, rows: CHT[Any]) -> CHT[Any]:
    """Each row with the lifetime `[start, start + duration)`; a duration <= 0 drops it."""

    def ticks(convert: Callable[[object, Unit | None], int], expr: Expr, row: CHTRow[Any]) -> int:
        found = value(node, scope, expr, row)
        try:
            return convert(found, rows.unit)
        except (UnitError, TimeOverflow) as error:
            raise type(error)(f"operator {scope.label(node)}, event {shortened(row)}: {error}") from None

    def altered() -> Iterator[CHTRow[Any]]:
        for row in rows:
            start = row.le if node.start is None else ticks(to_ticks, node.start, row)
            duration = ticks(to_duration, node.duration, row)
            if duration > 0:
                yield CHTRow(start, add_time(start, duration), row.payload)

    return CHT(altered(), rows.unit)


def shift(node: Shift, scope: Scope, rows: CHT[Any]) -> CHT[Any]:
    """Each row with both ends moved."""
    return CHT((CHTRow(add_time(le, node.duration), add_time(re, node.duration), p) for le, re, p in rows), rows.unit)


def extend(node: Extend, scope: Scope, rows: CHT[Any]) -> CHT[Any]:
    """Each row with RE moved, if that is after its LE."""
    moved = (row._replace(re=add_time(row.re, node.duration)) for row in rows)
    return CHT((row for row in moved if row.le < row.re), rows.unit)


def clip_duration(node: ClipDuration, scope: Scope, rows: CHT[Any]) -> CHT[Any]:
    """Each row for at most the duration from its LE."""
    return CHT((CHTRow(le, min(re, le + max(node.duration, 0)), p) for le, re, p in rows), rows.unit)


def to_points_at_end(node: ToPointsAtEnd, scope: Scope, rows: CHT[Any]) -> CHT[Any]:
    """The point at the end of each row that has one."""
    return CHT((CHTRow(re, add_time(re, CHRONON), p) for _, re, p in rows if re != INFINITY), rows.unit)


def quantize(node: Quantize, scope: Scope, rows: CHT[Any]) -> CHT[Any]:
    """Each row from the latest start of the grid, until the first end of the grid that is a size later and not before its own."""

    def snapped() -> Iterator[CHTRow[Any]]:
        for le, re, payload in rows:
            start = add_time(le, -((le - node.offset) % node.period))
            least = max(re, add_time(start, node.size))
            yield CHTRow(start, add_time(least, (node.offset + node.size - least) % node.period), payload)

    return CHT(snapped(), rows.unit)


def to_edges(node: ToEdges, scope: Scope, rows: CHT[Any]) -> CHT[Any]:
    """Each row, ended at the next strictly later LE of its key; INFINITY if there is none."""
    keyed = [(key_of(node, scope, node.key, row), row) for row in rows]

    def next_start(key: object, le: int) -> int:
        return min((row.le for other, row in keyed if other == key and row.le > le), default=INFINITY)

    return CHT((row._replace(re=next_start(key, row.le)) for key, row in keyed), rows.unit)


def clip_interval(node: ClipInterval, scope: Scope, rows: CHT[Any]) -> CHT[Any]:
    """Each row for the time that it lives inside `[lo, hi)`."""
    return CHT((CHTRow(max(le, node.lo), min(re, node.hi), p) for le, re, p in rows), rows.unit)


def calendar(node: Calendar, scope: Scope, rows: CHT[Any]) -> CHT[Any]:
    """One row from the start, or from the first LE, until the end."""
    starts = [row.le for row in rows] if node.start is None else [node.start]
    return CHT([CHTRow(le, node.end, None) for le in sorted(starts)[:1] if le < node.end], rows.unit)


def scan(node: Scan, scope: Scope, rows: CHT[Any]) -> CHT[Any]:
    """Each row's results, from the state after all before it."""
    module = node.module
    found: list[CHTRow[Any]] = []
    state = module.create_state()
    for row in sorted(rows, key=lambda row: (row.le, payload_order(row.payload), row.re)):
        with UserCode(node, scope, row):
            state, results = processed(module, state, row.payload, row.le)
        found += [row._replace(payload=result) for result in results]
    return CHT(found, rows.unit)


def distinct(node: Distinct, scope: Scope, rows: CHT[Any]) -> CHT[Any]:
    """Each payload once, for the time that some row has it."""
    having: dict[Hashable, list[CHTRow[Any]]] = {}
    for row in rows:
        having.setdefault(payload_key(row.payload), []).append(row)
    pieces = ((same[0].payload, piece) for same in having.values() for piece in merge(Lifetime(row.le, row.re) for row in same))
    return CHT((CHTRow(*piece, payload) for payload, piece in pieces), rows.unit)


def stitch(node: Stitch, scope: Scope, rows: CHT[Any]) -> CHT[Any]:
    """Rows with equal payloads that meet, made one."""
    same: dict[Hashable, list[CHTRow[Any]]] = {}
    for row in rows:
        same.setdefault(payload_key(row.payload), []).append(row)
    return CHT((row for group in same.values() for row in _stitched(group)), rows.unit)


def _stitched(rows: list[CHTRow[Any]]) -> Iterator[CHTRow[Any]]:
    """Yield the chains of rows: at each time those that end there, by LE, go on as those that start there, by RE."""
    numbers = range(len(rows))
    next_of: dict[int, int] = {}
    for time in {row.re for row in rows}:
        ending = sorted((n for n in numbers if rows[n].re == time), key=lambda n: rows[n].le)
        starting = sorted((n for n in numbers if rows[n].le == time), key=lambda n: rows[n].re)
        next_of |= dict(zip(ending, starting, strict=False))
    for first in set(numbers) - set(next_of.values()):
        last = first
        while last in next_of:
            last = next_of[last]
        yield rows[first]._replace(re=rows[last].re)
