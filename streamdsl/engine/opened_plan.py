"""Plans as they are opened: in one unit of time, and rewritten for the way to emit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from streamdsl.emit import Emit, EmitMode, mode_of
from streamdsl.plan.node import Node
from streamdsl.plan.units import in_calendar
from streamdsl.rewrite import as_chosen


class OpenedPlan(NamedTuple):
    """A plan as written and as it runs, how its output is emitted, and the engine's own options."""

    written: Node
    plan: Node
    emit: EmitMode | Emit
    options: dict[str, Any]

    @classmethod
    def of(cls, plan: Node, emit: EmitMode | Emit, options: Mapping[str, Any] | None) -> OpenedPlan:
        """Return how a plan is opened; raises `QueryError` for what is no way to emit, and for a rule that there is none of.

        >>> from streamdsl.plan.node import Source
        >>> OpenedPlan.of(Source("trips"), Emit("5s"), None).emit.hold
        5000000
        """
        if isinstance(emit, Emit):
            plan = in_calendar(plan, *emit.durations)
            emit = emit.in_ticks(plan.unit)
        rewritten, own = as_chosen(plan, mode_of(emit), options)
        return cls(plan, rewritten, emit, own)
