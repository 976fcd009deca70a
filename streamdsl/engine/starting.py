"""Opening and restoring of sessions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from streamdsl.emit import Emit, EmitMode
from streamdsl.engine.collector import collector_paused
from streamdsl.engine.opened_plan import OpenedPlan
from streamdsl.engine.query_session import Session
from streamdsl.io.binding import Bound
from streamdsl.plan.node import Node


def open_session(
    plan: Node,
    bindings: Mapping[str, Bound] | None = None,
    emit: EmitMode | Emit = "speculative",
    engine_options: Mapping[str, Any] | None = None,
) -> Session[Any]:
    """Return a new session of a plan; bindings tell its sources' units, and only those of tables are read."""
    session = _fresh(plan, bindings, emit, engine_options)
    session.load({name: bound for name, bound in (bindings or {}).items() if name in session.tables})
    return session


def restored(
    plan: Node, bindings: Mapping[str, Bound] | None, data: bytes, trust: bool = False, types: Iterable[type] = ()
) -> Session[Any]:
    """Return the session of a plan that `snapshot` has saved; bindings tell its sources' units, and nothing is read of them.

    `trust` and `types` as in `Stream.restore`.
    """
    from streamdsl.engine.state.checkpoint import Checkpoint

    saved = Checkpoint(data)
    session = saved.fresh(partial(_fresh, plan, bindings))
    with collector_paused():
        saved.lay_over(session, trust, types)
    return session


def _fresh(
    plan: Node, bindings: Mapping[str, Bound] | None, emit: EmitMode | Emit, options: Mapping[str, Any] | None
) -> Session[Any]:
    opened = OpenedPlan.of(plan, emit, options)
    session: Session[Any] = Session(opened.plan, bindings, opened.emit, opened.options, written=opened.written)
    session.emit, session.options = emit, dict(options or {})
    _ = session.described  # now: a module may change while it runs
    return session
