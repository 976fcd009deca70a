"""Runs: a speculative session over bounded inputs, from beginning to end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamdsl.engine.lower import Options
from streamdsl.engine.session import Session
from streamdsl.errors import QueryError
from streamdsl.io.binding import Bound
from streamdsl.plan.node import Node
from streamdsl.result import Result
from streamdsl.temporal import INFINITY, Event


def run(
    plan: Node, bindings: Mapping[str, Bound], until: int | None = None, engine_options: Options | None = None
) -> Result[Any]:
    """Push each source whole, tables first, then close; `until` ends the inputs with `Cti(until)` instead."""
    limit = INFINITY if until is None else until
    session: Session[Any] = Session(plan, bindings, engine_options=engine_options, until=limit)
    missing = [name for name in session.sources if name not in bindings]
    if missing:
        raise QueryError(f"nothing is bound to the source {missing[0]!r}", hint=f"query.run({{{missing[0]!r}: events_or_frame}})")
    out: list[Event[Any]] = []
    session.load({name: bound for name, bound in bindings.items() if name in session.tables})
    for name, bound in bindings.items():
        if name in session.sources and name not in session.tables:
            out += session.push(bound.whole(), source=name)
    return Result.from_events(out + session.end(limit), session.unit, session.rejected())
