"""The denotation of a physical stream: its CHT, under the source's progress and violation policy (semantics, sections 1, 7)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from streamdsl.denote.environment import Environment
from streamdsl.expr.schema import as_payload
from streamdsl.io.payloads import schema_for
from streamdsl.plan.node import Source
from streamdsl.temporal import CHT, CHTRow, Cti, Event, EventTable, Insert, Rejections, Unit, plain


def source(node: Source, scope: Environment) -> CHT[Any]:
    """The rows of the source with this name."""
    rows = scope.inputs[node.source]
    return CHT((row._replace(payload=as_payload(row.payload)) for row in rows), rows.unit)


def history(node: Source, events: Iterable[Event[Any]], unit: Unit | None = None, rejected: Rejections | None = None) -> CHT[Any]:
    """Return the CHT of a source's physical events, given in order of arrival and in ticks.

    Each event is checked against the CTI that holds before it; the source's `progress` advances the CTI after each event. An
    event that violates the CTI raises `CtiViolation`, or is dropped or adjusted and added to `rejected`, by `on_violation`. A
    malformed event raises `EventError`. One that starts too far ahead, by the policy's `max_jump`, is dropped, and moves no CTI.
    """
    table = EventTable(node.source, node.on_violation)
    progress = node.progress.generator(unit) if node.progress else None
    schema = node.payload
    rows: list[CHTRow[Any]] = []
    row_of: dict[Hashable, int] = {}
    for event in events:
        if isinstance(event, Cti):
            table.advance(event.time)
            continue
        is_jump = progress is not None and isinstance(event, Insert) and progress.is_jump(event.le, table.cti)
        admitted = table.admit(event, is_jump=is_jump)
        if is_jump:
            continue
        if isinstance(admitted, Insert):
            schema = schema_for(schema, admitted.id, admitted.payload, node.source)
            row_of[admitted.id] = len(rows)
            rows.append(CHTRow(admitted.le, admitted.re, schema.build(list(map(plain, schema.values(admitted.payload))))))
        elif admitted is not None:
            row = row_of[admitted.id]
            rows[row] = rows[row]._replace(re=admitted.re_new)
        moved = progress.after(event.le if isinstance(event, Insert) else None) if progress else table.cti
        table.advance(moved)
    if rejected is not None:
        rejected.extend(table.rejected)
    return CHT(rows, unit)
