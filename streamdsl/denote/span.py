"""The denotations of operators over one input without windows; most treat each row by itself (paper 001, II.D.1)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from streamdsl.denote.environment import Environment, UserCode, holds, key_of, project, value
from streamdsl.errors import TimeOverflow, UnitError, shortened
from streamdsl.expr.schema import as_payload
from streamdsl.plan.node import (
    AlterLifetime,
    Calendar,
    Distinct,
    Scan,
    Select,
    SelectMany,
    Stitch,
    ToEdges,
    Where,
)
from streamdsl.temporal import (
    CHT,
    INFINITY,
    CHTRow,
    Lifetime,
    merge,
    payload_key,
    payload_order,
)
from streamdsl.udm.stream_operator import processed


def where(node: Where, scope: Environment, rows: CHT[Any]) -> CHT[Any]:
    """The rows for which the predicate holds."""
    return CHT((row for row in rows if holds(node, scope, node.predicate, row)), rows.unit)


def select(node: Select, scope: Environment, rows: CHT[Any]) -> CHT[Any]:
    """Each row, with the payload that the projection gives."""
    return CHT((row._replace(payload=project(node, scope, node.projection, row)) for row in rows), rows.unit)


def select_many(node: SelectMany, scope: Environment, rows: CHT[Any]) -> CHT[Any]:
    """One row per item of each row's iterable."""

    def items(row: CHTRow[Any]) -> list[Any]:
        with UserCode(node, scope, row):
            return [as_payload(item) for item in value(node, scope, node.items, row)]

    return CHT((row._replace(payload=item) for row in rows for item in items(row)), rows.unit)


def alter_lifetime(node: AlterLifetime, scope: Environment, rows: CHT[Any]) -> CHT[Any]:
    """Each row, with the lifetime that the expressions for LE and RE give; rows with an empty lifetime are dropped."""
    ends = node.in_unit(rows.unit)

    def altered() -> Iterator[CHTRow[Any]]:
        for row in rows:
            try:
                start = value(node, scope, ends.le, row)
                end = value(node, scope, ends.re, row, starts=(row.le, start))
            except (UnitError, TimeOverflow) as error:
                raise type(error)(f"operator {scope.label(node)}, event {shortened(row)}: {error}") from None
            if start < end:
                yield CHTRow(start, end, row.payload)

    return CHT(altered(), rows.unit)


def to_edges(node: ToEdges, scope: Environment, rows: CHT[Any]) -> CHT[Any]:
    """Each row, ended at the next strictly later LE of its key, or without end if there is none."""
    keyed = [(key_of(node, scope, node.key, row), row) for row in rows]

    def next_start(key: object, le: int) -> int:
        return min((row.le for other, row in keyed if other == key and row.le > le), default=INFINITY)

    return CHT((row._replace(re=next_start(key, row.le)) for key, row in keyed), rows.unit)


def calendar(node: Calendar, scope: Environment, rows: CHT[Any]) -> CHT[Any]:
    """One row from the start, or from the first LE, until the end."""
    starts = [row.le for row in rows] if node.start is None else [node.start]
    return CHT([CHTRow(le, node.end, None) for le in sorted(starts)[:1] if le < node.end], rows.unit)


def scan(node: Scan, scope: Environment, rows: CHT[Any]) -> CHT[Any]:
    """The results of each row, from the state after all rows before it in order of (LE, payload, RE)."""
    module = node.module
    found: list[CHTRow[Any]] = []
    state = module.create_state()
    for row in sorted(rows, key=lambda row: (row.le, payload_order(row.payload), row.re)):
        with UserCode(node, scope, row):
            state, results = processed(module, state, row.payload, row.le)
        found += [row._replace(payload=result) for result in results]
    return CHT(found, rows.unit)


def distinct(node: Distinct, scope: Environment, rows: CHT[Any]) -> CHT[Any]:
    """Each payload once, for the time that some row has it."""
    having: dict[Hashable, list[CHTRow[Any]]] = {}
    for row in rows:
        having.setdefault(payload_key(row.payload), []).append(row)
    pieces = ((same[0].payload, piece) for same in having.values() for piece in merge(Lifetime(row.le, row.re) for row in same))
    return CHT((CHTRow(*piece, payload) for payload, piece in pieces), rows.unit)


def stitch(node: Stitch, scope: Environment, rows: CHT[Any]) -> CHT[Any]:
    """Chains of rows with equal payloads, one ending as the next starts, joined into one row each."""
    same: dict[Hashable, list[CHTRow[Any]]] = {}
    for row in rows:
        same.setdefault(payload_key(row.payload), []).append(row)
    return CHT((row for group in same.values() for row in _stitched(group)), rows.unit)


def _stitched(rows: list[CHTRow[Any]]) -> Iterator[CHTRow[Any]]:
    """Yield the chains of rows: at each time the ending rows, by LE, are paired with the starting rows, by RE."""
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
