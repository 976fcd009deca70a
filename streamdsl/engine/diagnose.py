"""Why a session emits nothing, or nothing more: the rows that are held back, and what keeps the output CTI from advancing.

The CTI is traced from the output back to the operator whose CTI is behind its input's, or else to the source that is behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from streamdsl.engine.egress import FinalEgress, HoldingEgress, SmoothEgress, SpeculativeEgress
from streamdsl.engine.lower import Graph
from streamdsl.engine.operator import Operator
from streamdsl.engine.operators.span import WhereOperator
from streamdsl.expr.describe import describe
from streamdsl.plan.node import AsofJoin, WindowAggregate, WindowApply
from streamdsl.temporal import INFINITY, MIN_TIME, Rejections, Unit, format_time
from streamdsl.windows import Count, Grid, Output, Session


class SourceStats(Protocol):
    """What feeds a source: how many events have arrived, how many changes were made of them, and which events were rejected."""

    @property
    def events_in(self) -> int:
        """The number of events, or of changes, that have arrived."""

    @property
    def changes_out(self) -> int:
        """The number of changes that were passed on."""

    @property
    def rejected(self) -> Rejections:
        """The events that were dropped or adjusted."""

    def stats(self) -> dict[str, int]:
        """Return its figures for `stats()`."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The state of a session, from which its text says what holds the output back."""

    graph: Graph
    egress: FinalEgress | SpeculativeEgress
    sources: Mapping[str, SourceStats]
    ctis: Mapping[str, int]
    unit: Unit | None

    def __str__(self) -> str:
        """Return the reason, empty if nothing is held back."""
        waiting, cause = self._waiting(), self._cause()
        if waiting:
            return f"{waiting}; {cause or self._slowest_source()}"
        return cause or self._swallowed()

    def _waiting(self) -> str:
        """Describe the rows that wait to be emitted."""
        if isinstance(self.egress, FinalEgress) and (ends := self._held_ends(self.egress)):
            first, what = min(ends), "1 row" if len(ends) == 1 else f"{len(ends)} rows"
            if isinstance(self.egress, HoldingEgress):
                until = self._time(self.egress.first_release())
                return f"sd.emit.Emit(hold=...) holds back {what}, the first until an event or a CTI of the input reaches {until}"
            if isinstance(self.egress, SmoothEgress):
                return f"sd.emit.Emit(every=...) holds back {what}, of which the first ends at {self._time(first)}"
            if first == INFINITY:
                return (
                    f'emit="final" holds back {what} without end until the session is closed (hint: clip_duration(d) ends rows)'
                )
            return f'emit="final" holds back {what}, of which the first ends at {self._time(first)}'
        for operator in self.graph.operators:
            if (first := operator.held_back()) < INFINITY:
                high_water = self._time(getattr(operator, "high_water", MIN_TIME))
                return (
                    f'{operator.label} holds back its windows from {self._time(first)} on: emit="watermark" shows a window '
                    f"once an event or a CTI reaches its end, and they have reached {high_water}"
                )
        return ""

    def _cause(self) -> str:
        """Describe what keeps the CTI from advancing."""
        name, cti = min(self.ctis.items(), key=lambda item: item[1])
        if cti == MIN_TIME and not any(source.events_in for source in self.sources.values()):
            return f"no events yet, and no CTI: source {name!r} has got nothing"
        if cti == MIN_TIME:
            return f"source {name!r} has sent no CTI yet; give it one, or a progress policy (progress=sd.Progress.slack(...))"
        held = self._holder()
        behind = [self._slowest_source()] if cti < max(self.ctis.values()) else []
        return "; ".join([*([self._reason(held)] if held else []), *behind])

    def _slowest_source(self) -> str:
        name, cti = min(self.ctis.items(), key=lambda item: item[1])
        if cti == max(self.ctis.values()):
            return f"source {name!r} has only reached the CTI {self._time(cti)}"
        ahead = max(self.ctis, key=lambda each: self.ctis[each])
        return (
            f"source {name!r} has only reached the CTI {self._time(cti)}, while {ahead!r} is at {self._time(self.ctis[ahead])} "
            f"(hint: if {name!r} is idle, push([sd.Cti(time)], source={name!r}))"
        )

    def _holder(self) -> Operator | None:
        """Return the operator nearest to the output whose CTI is behind its input's."""
        (at,) = self.graph.outputs
        while (operator := self.graph.stages[at].operator) is not None:
            if operator.input_ctis and operator.cti < min(operator.input_ctis) and not operator.trails_cti:
                return operator
            at = min(self.graph.stages[at].inputs, key=self._cti_of)
        return None

    def _cti_of(self, stage: int) -> int:
        found = self.graph.stages[stage]
        return self.ctis[found.source] if found.operator is None else found.operator.cti

    def _reason(self, operator: Operator) -> str:
        input = self._time(min(operator.input_ctis))
        node = getattr(operator, "node", None)
        if isinstance(node, (WindowAggregate, WindowApply)):
            settled = "not settled" if operator.cti == MIN_TIME else f"settled only up to {self._time(operator.cti)}"
            return f"{operator.label} has got the CTI {input}, but is {settled}: {self._window_reason(node, operator)}"
        if isinstance(node, AsofJoin):
            first = self._time(operator.cti)
            return (
                f"{operator.label} has got the CTI {input}, but the left row at {first} may still have a nearer right row "
                "(hint: tolerance=... says how far to look)"
            )
        what = f"{operator.label} reads RE or computes starts, so no CTI passes it before the last"
        return f"{what} (hint: see sd.checks.check(query))"

    def _window_reason(self, node: WindowAggregate | WindowApply, operator: Operator) -> str:
        group, windows = _slowest_group(operator), node.windows
        if isinstance(windows, Count):
            return f"{group}{windows.describe()} waits for later rows (hint: output=sd.Output.POINT_AT_END)"
        if isinstance(windows, Session) and windows.max_duration is None:
            return f"{group}a session goes on (hint: max_duration=... cuts it)"
        end = _end_of_first(windows, operator.cti) if isinstance(windows, Grid) else MIN_TIME
        if node.sees_ends and end <= min(operator.input_ctis):
            return f"{group}its module sees ends beyond the window, and a row's may still change (hint: clip=sd.Clip.RIGHT)"
        if isinstance(windows, Grid) and node.output is not Output.POINT_AT_END:
            return f"{group}its window [{self._time(operator.cti)}, {self._time(end)}) has not ended"
        return f"{group}{windows.describe()} waits for the end of a window"

    def _held_ends(self, egress: FinalEgress) -> list[int]:
        """Return the REs of the rows that are held back because they are not final."""
        return [*egress.held_ends(), *(end for operator in self.graph.operators for end in operator.held_ends())]

    def _swallowed(self) -> str:
        """Describe a source that has dropped all its events, or a filter that has passed no row, if so nothing was emitted."""
        for name, source in self.sources.items():
            if source.events_in and not source.changes_out and source.rejected:
                dropped = f"source {name!r} has dropped its {source.events_in} events"
                return f"{dropped}, which broke its CTI: session.rejected() lists them"
        operators = self.graph.operators
        if operators and not operators[-1].rows_out:
            for operator in operators:
                if isinstance(operator, WhereOperator) and operator.rows_in and not operator.rows_out:
                    return f"{operator.label} has let none of {operator.rows_in} rows pass: {describe(operator.predicate)}"
        return ""

    def _time(self, time: int) -> str:
        return format_time(time, self.unit)


def _end_of_first(grid: Grid, cti: int) -> int:
    """Return the end of the first window that is not closed, if the output CTI is where it starts, or in a gap before it."""
    return grid.end(max(grid.last_starting_by(cti), grid.first_ending_after(cti)))


def _slowest_group(operator: Any) -> str:
    """Return the group whose windows are the last to close."""
    if operator.key_table is None:
        return ""
    slowest = getattr(operator, "slowest_group", None)
    key = None if slowest is None else slowest(operator.input_ctis[0])
    if key is None:
        return ""
    (shown,) = operator.key_table.shown(np.array([key])).payloads()
    return f"in group {shown!r} "
